"""What follows a fault: results that travel up, peers that see a closed socket, the framework's last words."""

from collections.abc import Iterable

from tests.job_logs.job import Rank
from tests.job_logs.script import Script

ERRORS = {
    1: (
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "ncclUnhandledCudaError: Call to CUDA function failed.",
    ),
    2: (
        "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.",
    ),
    3: (
        "internal error - please report this issue to the NCCL developers",
        "ncclInternalError: Internal check failed.",
    ),
    4: (
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "ncclInvalidArgument: Invalid value for an argument.",
    ),
    5: (
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.",
    ),
    6: (
        "remote process exited or there was a network error",
        "ncclRemoteError: A call failed possibly due to a network error or a remote process exiting prematurely.",
    ),
}
"""Result codes of NCCL: its own text, and PyTorch's."""

_STEPS = {
    "start": 0.2,
    "bootstrap": 0.5,
    "plugins": 0.8,
    "network": 1.1,
    "init": 1.5,
    "graph": 2.0,
    "channels": 2.5,
    "collective": 4.0,
}


def connecting(script: Script) -> str:
    """Return the phase in which ranks connect: at the first collective from 2.22 on."""
    return "collective" if script.job.release.is_from("2.22.3") else "channels"


def moment(phase: str, training_s: float = 31.0) -> float:
    """Return when a fault of that part of the run is seen [s]."""
    return _STEPS.get(phase, training_s)


def last_warn(script: Script, rank: Rank) -> str:
    """Return the text of the last WARN of a rank, which frameworks repeat as `Last error`; empty where it has none."""
    texts = [line.text for line in script.lines if line.rank.rank == rank.rank and line.level == "WARN"]
    return texts[-1] if texts else ""


def torch_error(script: Script, rank: Rank, code: int, phase: str, at_s: float) -> None:
    """Print the exception of torch.distributed with NCCL's last WARN."""
    text, explanation = ERRORS[code]
    version = script.release_of(rank)
    mark = f"[rank{rank.rank}]: " if version.is_from("2.20.5") else ""
    rows = [
        "Traceback (most recent call last):",
        '  File "/workspace/train.py", line 214, in <module>',
        "    main()",
        '  File "/workspace/train.py", line 163, in main',
        "    torch.distributed.barrier()",
        f"torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp:1331, {text}, NCCL version {version}",
        explanation,
    ]
    if version.is_from("2.13.0"):
        rows += ["Last error:", *last_warn(script, rank).split("\n")]
    for row in rows:
        script.print(rank, phase, mark + row, at_s=at_s)


def tests_error(script: Script, rank: Rank, code: int, phase: str, at_s: float) -> None:
    """Print how nccl-tests ends."""
    script.print(
        rank,
        phase,
        f"{rank.host}: Test NCCL failure common.cu:1005 '{ERRORS[code][0]} / {last_warn(script, rank)}'",
        at_s=at_s,
    )
    script.print(rank, phase, f" .. {rank.host} pid {rank.pid}: Test failure common.cu:891", at_s=at_s)


def give_up(script: Script, rank: Rank, code: int, phase: str, at_s: float) -> None:
    """Let the framework of this rank report a result code."""
    if script.job.framework == "pytorch":
        torch_error(script, rank, code, phase, at_s)
    elif script.job.framework == "nccl-tests":
        tests_error(script, rank, code, phase, at_s)


def peers_close(script: Script, victims: Iterable[Rank], culprit: Rank, phase: str, at_s: float) -> None:
    """Let other ranks see that the process which failed is gone."""
    for index, rank in enumerate(victims):
        seen_s = at_s + 0.02 * index
        peer = f"{culprit.address}<{41_000 + 13 * rank.rank}>"
        script.say(rank, phase, "closed_by_peer", peer=peer, at_s=seen_s)
        script.unwind(rank, phase, ("misc/socket.cc:749", "bootstrap.cc:452", "init.cc:1089"), 6, at_s=seen_s)
        script.unwind(rank, phase, ("group.cc:64",), 6, at_s=seen_s, thread="async", tag=" [Async thread]")
        give_up(script, rank, 6, phase, seen_s + 0.1)


def collapse(
    script: Script,
    culprit: Rank,
    phase: str,
    *,
    code: int,
    places: tuple[str, ...] = ("transport/net.cc:692", "transport.cc:165", "init.cc:1222"),
    proxy: str = "",
    at_s: float | None = None,
) -> None:
    """Let a fault on one rank end the job: its result travels up, then its peers lose it.

    Parameters
    ----------
    script : Script
        The job; the WARN of the culprit is already there.
    culprit : Rank
        Whose fault it is.
    phase : str
        The part of the run.
    code : int
        The result of NCCL.
    places : tuple[str, ...]
        Where the result passes, deepest first.
    proxy : str
        The operation of the proxy thread that failed, which adds its secondary messages: Setup, Connect, Init.
    at_s : float, optional
        When the WARN was printed, where it is not the usual moment of that phase [s].
    """
    at_s = (moment(phase) if at_s is None else at_s) + 0.05
    script.unwind(culprit, phase, places, code, at_s=at_s, thread="proxy" if proxy else "init")
    if proxy:
        script.say(culprit, phase, "proxy_operation", operation=proxy, code=code, thread="proxy", at_s=at_s)
        script.say(culprit, phase, "closed_by_peer", peer=f"{culprit.address}<40031>", at_s=at_s)
        script.say(
            culprit, phase, "proxy_poll", op=f"0x7f20b81c{culprit.pid % 4096:04x}", at_s=at_s
        ) or script.say(culprit, phase, "proxy_call", operation=proxy, at_s=at_s)
        script.unwind(
            culprit, phase, ("transport/net.cc:304", "transport.cc:165", "init.cc:1222"), 3, at_s=at_s
        )
    script.unwind(culprit, phase, ("group.cc:64",), code, at_s=at_s, thread="async", tag=" [Async thread]")
    give_up(script, culprit, 3 if proxy else code, phase, at_s + 0.1)
    peers_close(
        script, [rank for rank in script.ranks if rank.rank != culprit.rank], culprit, phase, at_s + 0.6
    )


def watchdog(
    script: Script,
    ranks: Iterable[Rank],
    *,
    sequence: int = 412,
    numel: int = 67_108_864,
    operation: str = "ALLREDUCE",
    at_s: float = 640.0,
    enqueued: int | None = None,
    completed: int | None = None,
    decisive: bool = False,
) -> None:
    """Print what ProcessGroupNCCL's watchdog of these ranks says when a collective does not end in time."""
    for rank in ranks:
        head = f"[rank{rank.rank}]:[E1104 08:26:1{rank.rank % 10}.480213577 ProcessGroupNCCL.cpp:632] [Rank {rank.rank}] "
        work = f"WorkNCCL(SeqNum={sequence}, OpType={operation}, NumelIn={numel}, NumelOut={numel}, Timeout(ms)=600000)"
        script.print(
            rank,
            "training",
            f"{head}Watchdog caught collective operation timeout: {work} ran for 600012 milliseconds before timing out.",
            at_s=at_s + rank.rank * 0.03,
            decisive=decisive,
        )
        last = sequence if enqueued is None else enqueued
        done = sequence - 1 if completed is None else completed
        script.print(
            rank,
            "training",
            f"{head}failure detected by watchdog at work sequence id: {sequence} PG status: last enqueued work: {last}, last completed work: {done}",
            at_s=at_s + rank.rank * 0.03 + 0.001,
            decisive=decisive,
        )


def elastic_failure(
    script: Script, rank: Rank, exit_code: int, at_s: float, *, decisive: bool = False
) -> None:
    """Print how torchrun reports a worker that ended."""
    head = "E1104 08:26:21.104000 1204 torch/distributed/elastic/multiprocessing/api.py:874] "
    text = f"failed (exitcode: {exit_code}) local_rank: {rank.device} (pid: {rank.pid}) of binary: /usr/bin/python3"
    script.print(rank, "training", head + text, at_s=at_s, decisive=decisive)
