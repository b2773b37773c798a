"""What runs on each node of a launched job in the place of torchrun: it looks, checks, starts and watches.

A copy of this file lies in the run folder and is run by the job's Python, which need not have Linkwise: it
imports the standard library alone. Before torchrun starts, every node writes what it has and waits for the
others, so that a node that does not answer, or has other versions, is found before ranks wait for it. While
ranks run, it writes what they were really given: rank, world size and environment, as the kernel shows them.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["complaints", "differences", "facts", "main", "ranks_of"]

FOLDER_VARIABLE = "LINKWISE_RUN_FOLDER"
WATCHED = ("NCCL_", "GLOO_", "UCX_", "FI_", "CUDA_VISIBLE_DEVICES", "TORCH_", "MASTER_ADDR")
"""Beginnings of the variables that are written down; others may be secrets."""
UNLIMITED = -1

_VERSIONED = ("torch", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "deepspeed", "megatron-core", "torchtitan")
_GPU = re.compile(r"nvidia\d{1,3}")
_TICK_S = 0.5
_LOOK_AGAIN_S = 5.0
_REFUSED = 3


def facts(folder: str) -> dict[str, Any]:
    """Return what this node has.

    Parameters
    ----------
    folder
        The run folder.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    return {
        "node": int(os.environ.get("SLURM_NODEID", "0")),
        "host": os.environ.get("SLURMD_NODENAME") or socket.gethostname().split(".")[0],
        "gpus": _gpus(),
        "shm_bytes": shutil.disk_usage("/dev/shm").free if Path("/dev/shm").is_dir() else None,  # noqa: S108
        "memlock_bytes": UNLIMITED if soft == resource.RLIM_INFINITY else soft,
        "interfaces": [name for _, name in socket.if_nameindex()],
        "devices": _listed("/sys/class/infiniband"),
        "free_bytes": shutil.disk_usage(folder).free,
        "versions": dict(_versions()),
    }


def _gpus() -> int:
    there = sum(1 for name in _listed("/dev") if _GPU.fullmatch(name))
    stated = os.environ.get("CUDA_VISIBLE_DEVICES")
    return there if stated is None else min(there, len([each for each in stated.split(",") if each.strip()]))


def _listed(folder: str) -> list[str]:
    try:
        return sorted(each.name for each in Path(folder).iterdir())
    except OSError:
        return []


def _versions() -> Iterator[tuple[str, str]]:
    yield "python", platform.python_version()
    for name in _VERSIONED:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            yield name, importlib.metadata.version(name)
    with contextlib.suppress(OSError, IndexError):
        driver = Path("/proc/driver/nvidia/version").read_text(encoding="ascii", errors="replace")
        yield "driver", re.findall(r"\b\d{3,4}\.\d[\d.]*", driver)[0]


def complaints(found: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return what a node lacks, a sentence without a full stop each.

    Parameters
    ----------
    found
        As `facts` gives it.
    wanted
        ``gpus``, ``shm_bytes``, ``memlock_bytes``, ``free_bytes``; ``interfaces`` and ``devices`` are filters
        as NCCL reads them. What is not wanted is ``None``.
    """
    said = [
        _too_little(
            found,
            wanted,
            "gpus",
            "{0:g} GPUs are seen, {1:g} are planned: set the GPUs of the "
            "cluster to that, or take --device cpu for a trial on CPUs",
        ),
        _too_little(
            found,
            wanted,
            "shm_bytes",
            "shared memory (/dev/shm) has {0:.3g} bytes free, ranks need {1:.3g}: enlarge "
            "it (docker run --shm-size=8g, or an emptyDir of medium Memory)",
        ),
        _too_little(
            found,
            wanted,
            "free_bytes",
            "{0:.3g} bytes are free for the run folder, {1:.3g} are "
            "needed: free some, or name another folder with -o",
        ),
    ]
    locked = found.get("memlock_bytes")
    if wanted.get("memlock_bytes") is not None and locked is not None and locked != UNLIMITED:
        said.append(
            f"ulimit -l is {locked} bytes, and RDMA registers more: set it to unlimited "
            "(LimitMEMLOCK=infinity of the service, or limits.conf)"
        )
    for key, what in (("interfaces", "interface"), ("devices", "RDMA device")):
        said += [_unmatched(what, text, found[key]) for text in wanted.get(key) or ()]
    if not found["versions"].get("torch"):
        said.append("its Python has no torch: install it there, or name one that has with --python")
    if wanted.get("port") and found["node"] == 0 and not _is_free(int(wanted["port"])):
        said.append(
            f"port {wanted['port']} is taken, on which the nodes would meet: end what listens there "
            f"(ss -ltnp 'sport = :{wanted['port']}')"
        )
    return [each for each in said if each]


def _too_little(found: Mapping[str, Any], wanted: Mapping[str, Any], key: str, text: str) -> str:
    need, has = wanted.get(key), found.get(key)
    return text.format(has or 0, need) if need is not None and (has or 0) < need else ""


def _unmatched(what: str, text: str, names: Sequence[str]) -> str:
    """Return what to say where a filter leaves nothing; the rules are those of `settings.node.matches`."""
    rest = text.removeprefix("^")
    is_exact = rest.startswith("=")
    words = [each.split(":")[0] for each in rest.removeprefix("=").split(",") if each]
    hit = {name for name in names for word in words if (name == word if is_exact else name.startswith(word))}
    left = set(names) - hit if text.startswith("^") else hit
    return "" if left else f"no {what} is {text!r}; there are {', '.join(names) or 'none'}"


def _is_free(port: int) -> bool:
    with socket.socket(socket.AF_INET6 if socket.has_ipv6 else socket.AF_INET) as one:
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind(("", port))
        except OSError:
            return False
    return True


def differences(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the versions that are not alike on all nodes, a sentence each.

    Parameters
    ----------
    nodes
        Facts of each.
    """
    said = []
    for name in sorted({name for node in nodes for name in node["versions"]}):
        hosts: dict[str, list[str]] = {}
        for node in nodes:
            hosts.setdefault(node["versions"].get(name, "none"), []).append(node["host"])
        if len(hosts) > 1:
            told = ", ".join(f"{value} on {' '.join(each[:4])}" for value, each in sorted(hosts.items()))
            said.append(f"{name} differs: {told}; install the same everywhere")
    return said


def ranks_of(launcher: int, *, host: str, proc: Path = Path("/proc")) -> list[dict[str, Any]]:
    """Return what the ranks that a process started were given, as the kernel shows it.

    Parameters
    ----------
    launcher
        Process of torchrun.
    host
        Name of this node.
    proc
        Where the kernel shows processes.
    """
    found = []
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError, ValueError, IndexError):
            status = (entry / "stat").read_text(encoding="utf-8", errors="replace")
            if int(status.rpartition(")")[2].split()[1]) != launcher:
                continue
            words = (entry / "environ").read_bytes().decode(errors="replace").split("\0")
            given = dict(word.split("=", 1) for word in words if "=" in word)
            if {"RANK", "WORLD_SIZE", "LOCAL_RANK"} <= given.keys():
                found.append(_rank(int(entry.name), host, given))
    return sorted(found, key=lambda each: each["rank"])


def _rank(pid: int, host: str, given: Mapping[str, str]) -> dict[str, Any]:
    return {
        "rank": int(given["RANK"]),
        "ranks": int(given["WORLD_SIZE"]),
        "host": host,
        "pid": pid,
        "settings": {name: given[name] for name in sorted(given) if name.startswith(WATCHED)},
    }


def main(arguments: Sequence[str]) -> int:
    """Return the exit code of torchrun, or that of a refusal.

    Parameters
    ----------
    arguments
        Those of torchrun; ``--facts`` prints what this node has and what it lacks instead.
    """
    folder = Path(os.environ[FOLDER_VARIABLE])
    wanted = json.loads((folder / "agent" / "wanted.json").read_text(encoding="utf-8"))
    if wanted.get("device") == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""  # srun sets it again, whatever the batch script exports
    here = facts(str(folder))
    lacking = complaints(here, wanted)
    if list(arguments) == ["--facts"]:
        sys.stdout.write(json.dumps({**here, "lacking": lacking}) + "\n")
        return 0
    seen = folder / "seen"
    seen.mkdir(exist_ok=True)
    _write(seen / f"node-{here['node']}.json", here)
    held, taken = _hold(here, wanted)
    with contextlib.ExitStack() as stack:
        for each in held:
            stack.enter_context(each)
        refusal = [f"{here['host']}: {each}" for each in (*lacking, *taken)]
        refusal = refusal or _others(seen, int(wanted["nodes"]), float(wanted["patience_s"]))
        if refusal:
            _write(seen / f"refused-{here['node']}.json", refusal)
            sys.stderr.write("".join(f"linkwise: {each}\n" for each in refusal))
            return _REFUSED
        command = [sys.executable, "-m", "torch.distributed.run", *arguments]
        return _watch(command, seen, here, per_node=int(wanted["per_node"]))


def _write(path: Path, value: object) -> None:
    part = path.with_name(f".{path.name}")
    part.write_text(json.dumps(value), encoding="utf-8")
    part.replace(path)


def _hold(here: Mapping[str, Any], wanted: Mapping[str, Any]) -> tuple[list[socket.socket], list[str]]:
    """Return what keeps other launches off the devices, and what another one holds already.

    Names of sockets in the abstract namespace vanish with the process, so that nothing is left behind.
    """
    stated = os.environ.get("CUDA_VISIBLE_DEVICES")
    names = ["cpu"]
    if wanted.get("gpus") is not None:
        names = stated.split(",") if stated else [str(number) for number in range(here["gpus"])]
    held: list[socket.socket] = []
    for name in names if sys.platform == "linux" else ():
        one = socket.socket(socket.AF_UNIX)
        held.append(one)
        try:
            one.bind(f"\0linkwise-launch/{here['host']}/{name.strip()}")
        except OSError:
            what = "its CPUs" if name == "cpu" else f"GPU {name}"
            return held, [f"another launch runs on {what}{_who()}; wait for it, or stop it"]
    return held, []


def _who() -> str:
    own = os.environ[FOLDER_VARIABLE]
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit():
                for word in (entry / "environ").read_bytes().split(b"\0"):
                    name, _, value = word.decode(errors="replace").partition("=")
                    if name == FOLDER_VARIABLE and value != own:
                        return f" (process {entry.name}, run folder {value})"
    return ""


def _others(seen: Path, nodes: int, patience_s: float) -> list[str]:
    """Wait for the facts of all nodes, and return why the job may not start."""
    until = time.monotonic() + patience_s
    while True:
        refused = sorted(seen.glob("refused-*.json"))
        if refused:
            return [str(each) for each in json.loads(refused[0].read_text(encoding="utf-8"))]
        there = sorted(seen.glob("node-*.json"))
        if len(there) >= nodes:
            return differences([json.loads(each.read_text(encoding="utf-8")) for each in there])
        if time.monotonic() > until:
            return [_absent(there, nodes, patience_s)]
        time.sleep(_TICK_S)


def _absent(there: Sequence[Path], nodes: int, patience_s: float) -> str:
    answered = [json.loads(each.read_text(encoding="utf-8")) for each in there]
    hosts = ", ".join(each["host"] for each in answered)
    missing = sorted(set(range(nodes)) - {each["node"] for each in answered})
    return (
        f"node {', '.join(map(str, missing))} of {nodes} did not answer in {patience_s:.0f} s; {hosts} did: "
        "look at that host, and whether it sees this folder at the same path"
    )


def _watch(command: Sequence[str], seen: Path, here: Mapping[str, Any], *, per_node: int) -> int:
    child = subprocess.Popen(list(command))  # noqa: S603 (torchrun, with the words of the plan)

    def forward(number: int, _frame: object) -> None:
        child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, forward)
    known: dict[int, dict[str, Any]] = {}
    look_at = 0.0
    while child.poll() is None:
        if time.monotonic() >= look_at:
            if _is_over(seen.parent):
                child.terminate()
            ranks = {**known, **{each["rank"]: each for each in ranks_of(child.pid, host=here["host"])}}
            if ranks != known:
                known = ranks
                with contextlib.suppress(OSError):  # a full disk must not end the one who watches
                    _write(seen / f"ranks-{here['node']}.json", list(known.values()))
            look_at = time.monotonic() + (_LOOK_AGAIN_S if len(known) >= per_node else 0.0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_TICK_S if known else 0.1)
    code = child.returncode
    return code if code >= 0 else 128 - code


def _is_over(folder: Path) -> bool:
    """Return whether the launcher has written that the run ended: a scheduler may have lost this node."""
    try:
        record = json.loads((folder / "record.json").read_text(encoding="utf-8"))
        return bool(record["outcome"] != "running")
    except (OSError, ValueError, KeyError, TypeError):
        return False


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
