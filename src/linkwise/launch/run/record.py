"""The record of a run: how it was started, what it said, how it ended; complete up to any fault.

A run folder holds ``record.json`` (`linkwise.run/1`), ``samples.jsonl`` with a line for each thing the job
said for us, and ``output.log`` with everything else it printed. The record is written when the run starts, as
``running``, and again when it ends.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from linkwise.errors import InputError
from linkwise.launch.run.checks import Check
from linkwise.launch.run.ending import Ending, Outcome

__all__ = ["RunFolder", "RunRecord", "record_json", "recorded_settings"]

_RESERVE_BYTES = 65_536
"""Kept free for the last record, should the disk be full by then [bytes]."""
_MOST_OUTPUT_BYTES = 64 * 2**20
_RECORDED = ("NCCL_", "GLOO_", "TORCH_", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "UCX_", "FI_")
"""Beginnings of the variables that a record holds; others may be secrets."""


_RUNNING = Ending(outcome=Outcome.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """How a run was started, and how it ended.

    Parameters
    ----------
    run_id
        Unlike that of any other run.
    what
        Such as ``bench collectives``.
    place
        Name of the place it ran on.
    argv
        The command.
    settings
        Variables that move communication, as the job saw them.
    plan_digest
        SHA-256 of what it was told to do.
    started, ended
        When, in UTC; ``ended`` is ``None`` while it runs.
    ranks
        Processes that were asked for [1].
    hosts
        Those that ranks named.
    versions
        Of Linkwise and of what the ranks named.
    transports
        What the log of NCCL showed between ranks; empty where it had none.
    samples
        Lines of samples [1].
    ending
        How it ended.
    checks
        What was planned beside what the kernel showed of its ranks; empty where they could not be seen.
    """

    run_id: str
    what: str
    place: str
    argv: tuple[str, ...]
    settings: Mapping[str, str]
    plan_digest: str
    started: dt.datetime
    ended: dt.datetime | None = None
    ranks: int
    hosts: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    transports: tuple[str, ...] = ()
    samples: int = 0
    ending: Ending = _RUNNING
    checks: tuple[Check, ...] = ()

    @property
    def is_valid(self) -> bool | None:
        """Return whether it was what was planned; ``None`` where that was not seen."""
        seen = [each.is_as_planned for each in self.checks]
        return False if False in seen else None if not seen or None in seen else True


def recorded_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables that move communication, by name.

    Parameters
    ----------
    environment
        All variables of a job.
    """
    return {name: environment[name] for name in sorted(environment) if name.startswith(_RECORDED)}


def record_json(record: RunRecord) -> str:
    """Return a record as `linkwise.run/1`.

    Parameters
    ----------
    record
        The record.
    """
    values: dict[str, Any] = {
        "schema": "linkwise.run/1",
        "id": record.run_id,
        "what": record.what,
        "place": record.place,
        "outcome": record.ending.outcome.value,
        "reason": record.ending.reason,
        "exit_code": record.ending.exit_code,
        "started": record.started.isoformat(timespec="milliseconds"),
        "ended": None if record.ended is None else record.ended.isoformat(timespec="milliseconds"),
        "ranks": record.ranks,
        "hosts": list(record.hosts),
        "argv": list(record.argv),
        "settings": dict(record.settings),
        "plan_digest": record.plan_digest,
        "versions": dict(record.versions),
        "transports": list(record.transports),
        "samples": record.samples,
        "valid": record.is_valid,
        "checks": [asdict(each) for each in record.checks],
    }
    return json.dumps(values, indent=2) + "\n"


class RunFolder:
    """The folder of one run, open for as long as it runs.

    Parameters
    ----------
    path
        The folder.

    Raises
    ------
    InputError
        When the folder cannot be written to.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._output_bytes = 0
        try:
            self._reserve().write_bytes(os.urandom(_RESERVE_BYTES))
            self._samples = (path / "samples.jsonl").open("x", encoding="utf-8", buffering=1)
            self._output = (path / "output.log").open("x", encoding="utf-8", buffering=1)
        except OSError as error:
            raise InputError(f"{path}: the run folder cannot be written ({error.strerror})") from None

    def _reserve(self) -> Path:
        return self.path / ".reserve"

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the files."""
        for file in (self._samples, self._output):
            with contextlib.suppress(OSError):
                file.close()
        self._reserve().unlink(missing_ok=True)

    def add_sample(self, line: str) -> None:
        """Append one line of samples.

        Parameters
        ----------
        line
            JSON, without a line break.
        """
        self._samples.write(line + "\n")

    def add_output(self, line: str) -> None:
        """Append one line of other output; past 64 MiB it is dropped.

        Parameters
        ----------
        line
            Without a line break.
        """
        self._output_bytes += len(line) + 1
        if self._output_bytes <= _MOST_OUTPUT_BYTES:
            self._output.write(line + "\n")

    def write_plan(self, text: str) -> Path:
        """Write what the job is told to do, and return its path.

        Parameters
        ----------
        text
            The plan as JSON.
        """
        target = self.path / "plan.json"
        target.write_text(text, encoding="utf-8")
        return target

    def write_record(self, record: RunRecord) -> None:
        """Write the record, so that at no time there is half of it.

        Parameters
        ----------
        record
            The record; its end takes what was kept free for it.
        """
        if record.ending.outcome is not Outcome.RUNNING:
            self._reserve().unlink(missing_ok=True)
        part = self.path / ".record.json"
        try:
            part.write_text(record_json(record), encoding="utf-8")
        except OSError:
            # Even so little may not fit; without the arguments it is shorter.
            part.write_text(record_json(replace(record, argv=(), settings={})), encoding="utf-8")
        part.replace(self.path / "record.json")
