"""What is to be run: model, batch, sequence, precision, framework, and the layout if it is fixed.

It holds no estimate and no hardware; which layouts a framework allows stands here too.
Read first: `job.Job`, then `reading` (a `job/1` document or options to that value).
"""

from typing import TYPE_CHECKING, Any

from linkwise.job.job import Job, Precision

if TYPE_CHECKING:
    from linkwise.job.reading import job_from_options, load_job, read_job

__all__ = ["Job", "Precision", "job_from_options", "load_job", "read_job"]


def __getattr__(name: str) -> Any:
    """Return what reads documents, loaded when first used: it brings pydantic with it."""
    if name in ("job_from_options", "load_job", "read_job"):
        from linkwise.job import reading

        return getattr(reading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
