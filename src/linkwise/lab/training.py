"""A job run in a lab for real, its computing slept: its bytes and steps beside those predicted."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from linkwise.lab.bench import TierBytes, host_calls, host_of, payload_of, tier_bytes
from linkwise.lab.calibration import Calibration, calibrated, calibration_calls
from linkwise.lab.design import LabDesign
from linkwise.lab.job import JobEnd, JobRequest
from linkwise.lab.lab_job import LabJob
from linkwise.lab.prediction import StepTime, WorkAlone, predicted_step, work_alone
from linkwise.lab.routes import counter_of, links_of
from linkwise.lab.traffic import ELEMENT_BYTES, mesh_of, parameters_of, step_loads

__all__ = ["RunResult", "run_request", "run_result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunResult:
    """What a run showed.

    Parameters
    ----------
    predicted
        The step, from the figures of the machine that were measured before it.
    steps_s, losses
        Of each measured step, of the slowest rank [s].
    tiers
        Bytes of a step by tier.
    calibration, alone
        What was measured first.
    wall_s
        Of the whole job, its start included [s].
    """

    predicted: StepTime
    steps_s: tuple[float, ...]
    losses: tuple[float, ...]
    tiers: tuple[TierBytes, ...]
    calibration: Calibration
    alone: WorkAlone
    wall_s: float

    @property
    def measured_s(self) -> float:
        """Return the median step [s]."""
        return statistics.median(self.steps_s)


def run_request(run: LabJob, design: LabDesign, *, steps: int, python: str) -> JobRequest:
    """Return what is run.

    Parameters
    ----------
    run
        The job.
    design
        The lab.
    steps
        Measured ones; one more is done before them [1].
    python
        The Python that has torch.
    """
    model, layout = run.job.model, run.layout
    work = {
        "calls": [*host_calls(), *calibration_calls(run.calls, design)],
        "shape": {
            name: getattr(model, name)
            for name in ("layers", "hidden", "heads", "kv_heads", "head_dim", "ffn", "vocab")
        },
        "mesh": mesh_of(layout, design),
        "zero_stage": layout.zero_stage,
        "micro_batch": layout.micro_batch,
        "micro_batches": run.micro_batches,
        "sequence_length": run.job.sequence_length,
        "forward_s": run.forward_s,
        "backward_s": run.backward_s,
        "optimizer_s": run.optimizer_s,
        "bucket_mib": _layer_bytes(run) / 2**20,
        "steps": steps,
        "warmup": 1,
    }
    return JobRequest(kind="training", work=work, python=python, timeout_s=120.0)


def run_result(lab: str, run: LabJob, design: LabDesign, end: JobEnd) -> RunResult:
    """Return what a run showed.

    Parameters
    ----------
    lab
        Name of the lab.
    run
        The job.
    design
        What the lab is.
    end
        How the job ended.
    """
    loopback = host_of(design, end).loopback_bytes_per_s
    first = len(host_calls())
    calibration = calibrated(run.calls, design, end, loopback_bytes_per_s=loopback, first=first)
    alone = work_alone(run, end, core_share=calibration.core_share)
    steps = [each for each in end.events if each["event"] == "step" and each["step"] >= 0]
    counted = {
        str(each["link"]): payload_of(each["bytes"], each["packets"]) / len(steps)
        for each in end.events
        if each["event"] == "counted step"
    }
    payload = {link: counted.get(counter_of(lab, link), 0.0) for link in links_of(design)}
    return RunResult(
        predicted=predicted_step(run, design, calibration, alone),
        steps_s=tuple(float(each["time_s"]) for each in steps),
        losses=tuple(float(each["loss"]) for each in steps),
        tiers=tuple(tier_bytes(step_loads(run.calls, design), payload)),
        calibration=calibration,
        alone=alone,
        wall_s=end.wall_s,
    )


def _layer_bytes(run: LabJob) -> float:
    shapes = parameters_of(run.job.model, tensor=run.layout.tensor)["layer"]
    return float(ELEMENT_BYTES * sum(rows * columns for rows, columns in shapes))
