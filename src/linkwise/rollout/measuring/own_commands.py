"""Measuring with the commands of Linkwise itself, each run in its folder and found again after a kill."""

from __future__ import annotations

import contextlib
import datetime as dt
import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from linkwise.cluster.reading import load_cluster
from linkwise.errors import InputError
from linkwise.launch.run.proof import strangers
from linkwise.rollout.gates.priced import asked_samples
from linkwise.rollout.measuring.command_to_end import end_command, run_to_end
from linkwise.rollout.measuring.kept_process import KeptProcess, find_process, start_process
from linkwise.rollout.measuring.measure import RunRequest
from linkwise.rollout.measuring.measured_result import MeasuredResult, read_result
from linkwise.rollout.measuring.run_command import run_command
from linkwise.rollout.measuring.run_documents import cluster_text, job_text
from linkwise.rollout.plan import WorkloadKind
from linkwise.rollout.runs import RunState, StepRun
from linkwise.rollout.targets import target_gpus, target_nodes

__all__ = ["OwnCommands"]

_LARGEST_RESULT_BYTES = 256 << 20
_LINKWISE = "import sys; from linkwise.cli.main import main; sys.exit(main())"
"""What the command does: it need not be on the PATH."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnCommands:
    """A `Measure` that runs `linkwise bench` and `linkwise launch` as a person would.

    Parameters
    ----------
    linkwise
        The command of Linkwise.
    inherited
        Variables of the environment that runs are started with.
    folder
        Where commands of configurations run: that of the rollout's file, as for its way back.
    now
        The clock of the record.
    """

    linkwise: tuple[str, ...] = (sys.executable, "-c", _LINKWISE)
    inherited: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    folder: Path = field(default_factory=Path.cwd)
    now: Callable[[], dt.datetime] = lambda: dt.datetime.now(tz=dt.UTC)

    def measure(self, request: RunRequest) -> StepRun:
        """Return the run once it has ended, well or not.

        Parameters
        ----------
        request
            What is wanted.

        Notes
        -----
        The command goes on when this process is killed; `recover` then waits for it. A Ctrl-C stops it.
        """
        started = self.now()
        try:
            cluster = load_cluster(request.scope.cluster)
            gpus, nodes = (
                target_gpus(request.step.target, cluster),
                target_nodes(request.step.target, cluster),
            )
            self._put_in_force(request)
            kept = self._start(request, gpus, nodes)
        except (InputError, OSError) as error:
            return _run_of(request, started, RunState.FAILED, str(error), self.now())
        try:
            kept.wait()
        except BaseException:
            kept.stop()
            raise
        return self._read(request, kept, started)

    def recover(self, request: RunRequest) -> StepRun | None:
        """Return what a run left whose keeper was killed; a run that still goes on is waited for.

        Parameters
        ----------
        request
            As it was when the run was started.
        """
        kept = find_process(request.folder, request.run_id)
        if kept is None:
            end_command(_configuring(request))
            return None
        started = dt.datetime.fromtimestamp(request.folder.stat().st_ctime, tz=dt.UTC)
        kept.wait()
        return self._read(request, kept, started)

    def _put_in_force(self, request: RunRequest) -> None:
        """Run the command of the configuration, whose output is kept; it must be one that may be repeated."""
        request.folder.mkdir(parents=True)
        argv = request.configuration.command
        if not argv:
            return
        environment = {**self.inherited, "LINKWISE_SIDE": str(request.side)}
        mark = _configuring(request)
        ended = run_to_end(argv, environment=environment, mark=mark, folder=self.folder)
        log = request.folder / "configure.log"
        log.write_text(ended.output, encoding="utf-8")
        if ended.exit_code:
            raise InputError(f"{' '.join(argv)}: exit code {ended.exit_code}: {_last_words(log)}")

    def _start(self, request: RunRequest, gpus: int, nodes: int) -> KeptProcess:
        folder, configuration = request.folder, request.configuration
        (folder / "cluster.json").write_text(cluster_text(request.scope.cluster, gpus), encoding="utf-8")
        if request.workload.kind is WorkloadKind.JOB:
            if not configuration.job:
                raise InputError(
                    f"the {request.side} names no job, and the workload is a job; write job: PATH"
                )
            text = job_text(configuration.job, configuration.layout, steps=request.workload.steps)
            (folder / "job.json").write_text(text, encoding="utf-8")
        argv = run_command(request, gpus=gpus, nodes=nodes, documents=folder, output=folder / "run")
        environment = dict(self.inherited)
        if request.workload.kind is not WorkloadKind.JOB:  # launch plans them itself, and refuses others
            if others := strangers(tuple(environment), configuration.settings):
                raise InputError(f"{', '.join(others)} in this shell moves data and is not planned; unset it")
            environment.update(configuration.settings)
        return start_process(
            (*self.linkwise, *argv), environment=environment, folder=folder, mark=request.run_id
        )

    def _read(self, request: RunRequest, kept: KeptProcess, started: dt.datetime) -> StepRun:
        file = request.folder / "result.json"
        ended = self.now()
        code = kept.exit_code
        if code is None:
            return _run_of(request, started, RunState.CUT, "it was killed before it ended", ended)
        try:
            if file.stat().st_size > _LARGEST_RESULT_BYTES:
                raise InputError(f"result.json is larger than {_LARGEST_RESULT_BYTES >> 20} MiB")
            data = file.read_bytes()
            found = read_result(data.decode("utf-8", "replace"), path=str(file))
        except (InputError, OSError) as error:
            said = _last_words(request.folder / "messages.log") or str(error)
            state = RunState.CUT if code == 130 else RunState.FAILED
            return _run_of(request, started, state, f"exit code {code}: {said}", ended)
        state, reason = judged_state(request, found)
        samples, predictions = asked_samples(request, found)
        return replace(
            _run_of(request, started, state, reason, ended),
            samples=samples,
            predictions=predictions,
            gpu_s=found.ranks * found.duration_s,
            gpus=found.ranks,
            nodes=found.hosts,
            seen=found.seen,
            record=str(file),
            record_digest=hashlib.sha256(data).hexdigest(),
        )


def judged_state(request: RunRequest, found: MeasuredResult) -> tuple[RunState, str]:
    """Return whether a run counts, and why not.

    Parameters
    ----------
    request
        What was wanted.
    found
        What its result says.
    """
    if not found.is_done:
        return RunState.FAILED, found.reason
    left_out = request.valid_run.left_out
    unlike = [words for name, words in found.unlike.items() if name not in left_out]
    if found.is_as_planned is False and not found.unlike:
        unlike.append(found.reason or "it is not what was planned")
    unlike += _unlike(request, found)
    return (RunState.INVALID, "; ".join(unlike)) if unlike else (RunState.VALID, "")


def _unlike(request: RunRequest, found: MeasuredResult) -> Iterator[str]:
    """Yield what of a run is unlike the plan, where its own record proves nothing."""
    if found.is_as_planned is None:
        planned = request.configuration.settings
        wrong = {name: value for name, value in planned.items() if found.settings.get(name, value) != value}
        for name, value in wrong.items():
            yield f"environment: planned {name}={value}, seen {found.settings[name]}"
    most = request.valid_run.most_noise_fraction
    for name in request.metrics if most is not None else ():
        noise = found.noise_fractions.get(name, 0.0)
        if most is not None and noise > most:
            spread, bar = f"{100 * noise:.3g} %", f"{100 * most:.3g} %"
            yield f"noise: {name} spreads by {spread} within the run, {bar} is the most"


def _configuring(request: RunRequest) -> str:
    """Return the mark of the command that puts the configuration of a run in force."""
    return f"{request.run_id}-configure"


def _run_of(
    request: RunRequest, started: dt.datetime, state: RunState, reason: str, ended: dt.datetime
) -> StepRun:
    return StepRun(
        run_id=request.run_id,
        step=request.step.name,
        workload=request.workload_digest,
        side=request.side,
        configuration=request.configuration.digest,
        turn=request.turn,
        is_warmup=request.is_warmup,
        state=state,
        reason=reason,
        started=started,
        ended=ended,
    )


def _last_words(log: Path) -> str:
    """Return the end of what a command said."""
    with contextlib.suppress(OSError):
        lines = log.read_bytes()[-4000:].decode("utf-8", "replace").strip().splitlines()
        return " ".join(line.strip() for line in lines[-3:])[-400:]
    return ""
