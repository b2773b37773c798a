"""Logs of jobs that never ran: NCCL's own messages, release by release, for every cause a doctor should know.

What it is not: it shares no code with the rules that read logs, and its texts are facts of NCCL's releases, not copies of
logs. Read `job` and `healthy` first, then any module of `faults`. `cases()` gives them all.
"""

from tests.job_logs.case import LogCase
from tests.job_logs.cases import cases

__all__ = ["LogCase", "cases"]
