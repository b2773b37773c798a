"""A bench as a job of torch: its script, its Python, its run folder."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linkwise.errors import InputError
from linkwise.launch.run.job import FinishedRun, Patience, run_job
from linkwise.launch.run.place import LocalPlace, Place, TorchJob
from linkwise.launch.run.record import RunFolder

__all__ = ["TorchBench", "run_folder", "run_torch"]

_SCRIPT = Path(__file__).parent / "torch_job" / "start.py"
_LEAST_TIMEOUT_S = 5.0
_TIMEOUT_FRACTION = 0.75
"""Ranks give up before the job is ended, so that they can say where they waited [s, 1]."""
_PROBE = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
_PROBE_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TorchBench:
    """Where and with what a bench runs.

    Parameters
    ----------
    device
        ``cuda`` or ``cpu``.
    ranks
        Processes [1].
    python
        The Python that has torch; that of Linkwise by default.
    settings
        Variables the job needs.
    folder
        The run folder, which must not hold a run; ``None`` for one that is removed afterwards.
    patience_s
        How long a job may say nothing [s].
    place
        Where it runs.
    nodes
        How many; on this machine alone each rank stands for one in `bench.pairs` [1].
    stage
        Puts what a job needs into its run folder, where nodes see nothing else of this machine; that folder
        is then made where this process is. ``None`` where they see all of it.
    """

    device: str
    ranks: int
    python: str = sys.executable
    settings: Mapping[str, str] = field(default_factory=dict)
    folder: Path | None = None
    patience_s: float = 120.0
    place: Place = field(default_factory=LocalPlace)
    nodes: int | None = None
    stage: Callable[[TorchJob, Path], TorchJob] | None = None


def run_torch(
    bench: TorchBench,
    kind: str,
    plan: Mapping[str, object],
    *,
    on_event: Callable[[Mapping[str, Any]], None] = lambda _: None,
    part: str = "",
) -> FinishedRun:
    """Return the run of a bench once it ended, well or not.

    Parameters
    ----------
    bench
        Where and with what it runs.
    kind
        ``collectives``, ``pairs`` or ``training``.
    plan
        What its ranks are told.
    on_event
        Called with everything a rank says.
    part
        Name of a folder inside the run folder, for a bench of several runs.

    Raises
    ------
    InputError
        When its Python has no torch, or the run folder cannot be used.

    Notes
    -----
    A call inside the job gives up before the job is given up for silent, so that its own words are heard.
    """
    if bench.stage is None:
        _check_torch(bench.python)
    timeout_s = max(_LEAST_TIMEOUT_S, _TIMEOUT_FRACTION * bench.patience_s)
    job = TorchJob(
        script=str(_SCRIPT),
        arguments=(kind,),
        ranks=bench.ranks,
        settings=bench.settings,
        python=bench.python,
        device=bench.device,
    )
    parent = None if bench.stage is None else Path.cwd()
    with run_folder(bench.folder, part, parent=parent) as path, RunFolder(path) as folder:
        return run_job(
            job if bench.stage is None else bench.stage(job, path.absolute()),
            {"device": bench.device, "timeout_s": timeout_s, **plan},
            what=f"bench {kind}",
            place=bench.place,
            folder=folder,
            patience=Patience(start_s=bench.patience_s, silence_s=bench.patience_s),
            on_event=on_event,
        )


def _check_torch(python: str) -> None:
    try:
        probe = subprocess.run(  # noqa: S603 (the user's own Python)
            [python, "-c", _PROBE], check=False, capture_output=True, timeout=_PROBE_TIMEOUT_S
        )
    except OSError as error:
        raise InputError(f"--python {python}: cannot be started ({error.strerror})") from None
    except subprocess.TimeoutExpired:
        raise InputError(f"--python {python}: gives no answer in {_PROBE_TIMEOUT_S:.0f} s") from None
    if probe.returncode != 0:
        raise InputError(
            f"{python} has no torch; pip install 'linkwise[torch]', or name one that has with --python"
        )


@contextmanager
def run_folder(path: Path | None, part: str, *, parent: Path | None = None) -> Iterator[Path]:
    """Give the run folder: a new one, or one that lasts as long as the run.

    Parameters
    ----------
    path
        The folder; ``None`` for one that is removed afterwards.
    part
        Name of a folder inside it, for a bench of several runs.
    parent
        Where one that is removed afterwards is made; where temporary files are by default.

    Raises
    ------
    InputError
        When there is something already, or it cannot be made.
    """
    if path is None:
        with tempfile.TemporaryDirectory(
            prefix="linkwise-bench-", dir=parent, ignore_cleanup_errors=True
        ) as name:
            yield Path(name)
        return
    target = path / part if part else path
    try:
        target.mkdir(parents=bool(part))
    except FileExistsError:
        if not target.is_dir() or any(target.iterdir()):
            raise InputError(
                f"-o {target}: there is something already; name a folder that does not exist"
            ) from None
    except OSError as error:
        raise InputError(f"-o {target}: cannot be made ({error.strerror})") from None
    try:
        yield target
    except InputError:
        with contextlib.suppress(OSError):
            if not (target / "record.json").exists():
                shutil.rmtree(target)
        raise
