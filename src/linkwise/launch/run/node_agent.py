"""What runs on each node of a launched job in the place of torchrun: it looks, checks, starts and watches.

A copy of this file and of `node_sight` lies in the run folder and is run by the job's Python, which need not
have Linkwise: they import the standard library alone. Before torchrun starts, every node writes what it has
and waits for the others, so that a node that does not answer, or has other versions, is found before ranks
wait for it. While ranks run, it writes what they were really given and do: rank, world size, environment and,
on CPUs, the ends of their connections, as the kernel shows them.
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

from linkwise.launch.run.node_sight import MOST_CONNECTIONS, addresses_of, connections_of, ranks_of

__all__ = ["complaints", "differences", "facts", "main"]

FOLDER_VARIABLE = "LINKWISE_RUN_FOLDER"
HOST_VARIABLE, NODE_VARIABLE = "LINKWISE_HOST", "LINKWISE_NODE"
"""Name and number of a node, where several share one kernel: those of an emulated cluster."""
UNLIMITED = -1

_VERSIONED = ("torch", "nvidia-nccl-cu12", "nvidia-nccl-cu13", "deepspeed", "megatron-core", "torchtitan")
_GPU = re.compile(r"nvidia\d{1,3}")
_TICK_S = 0.5
_SEARCH_S = 0.1
"""Between two looks for ranks and their first connections: a short job has them for a moment alone."""
_SETTLED_LOOKS = 10
"""So many looks without a change: ranks connect with one another in turns."""
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
        "node": int(os.environ.get(NODE_VARIABLE) or os.environ.get("SLURM_NODEID") or "0"),
        "host": _host(),
        "gpus": _gpus(),
        "shm_bytes": shutil.disk_usage("/dev/shm").free if Path("/dev/shm").is_dir() else None,  # noqa: S108
        "memlock_bytes": UNLIMITED if soft == resource.RLIM_INFINITY else soft,
        "interfaces": [name for _, name in socket.if_nameindex()],
        "addresses": addresses_of("self"),
        "devices": _listed("/sys/class/infiniband"),
        "free_bytes": shutil.disk_usage(folder).free,
        "versions": dict(_versions()),
    }


def _host() -> str:
    named = os.environ.get(HOST_VARIABLE) or os.environ.get("SLURMD_NODENAME")
    return named or socket.gethostname().split(".")[0]


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
    meeting = socket.socket() if wanted.get("meets") else None
    if meeting is not None:
        meeting.bind(("", 0))
        here["port"] = meeting.getsockname()[1]
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
        if meeting is not None:
            arguments = [*_rendezvous(seen, here, wanted), *arguments]
            meeting.close()  # held until now, so that nobody else was given the port
        command = [sys.executable, "-m", "torch.distributed.run", *arguments]
        is_traced = wanted.get("device") == "cpu" and int(wanted["nodes"]) * int(wanted["per_node"]) > 1
        ranks = _Ranks(here["host"], per_node=int(wanted["per_node"]), is_traced=is_traced)
        return _watch(command, seen / f"ranks-{here['node']}.json", ranks)


def _rendezvous(seen: Path, here: Mapping[str, Any], wanted: Mapping[str, Any]) -> list[str]:
    """Return the options by which torchrun of all nodes meets at a port that was free on the first."""
    first = json.loads((seen / "node-0.json").read_text(encoding="utf-8"))
    shape = ["--nnodes", str(wanted["nodes"]), "--nproc-per-node", str(wanted["per_node"])]
    place = ["--node-rank", str(here["node"]), "--master-addr", first["host"]]
    return [*shape, *place, "--master-port", str(first["port"])]


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
    own, network = os.environ[FOLDER_VARIABLE], Path("/proc/self/ns/net").readlink()
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            # Those of another network, such as a lab's on this machine, do not see this name.
            if entry.name.isdigit() and (entry / "ns" / "net").readlink() == network:
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


class _Ranks:
    """The ranks of a node as far as they are known, and the connections that each has had."""

    def __init__(self, host: str, *, per_node: int, is_traced: bool) -> None:
        self._host = host
        self._per_node = per_node
        self._is_traced = is_traced
        self._known: dict[int, dict[str, Any]] = {}
        self._unchanged = 0

    @property
    def is_complete(self) -> bool:
        """Return whether all are known, each with its connections if those are looked for."""
        enough = [each for each in self._known.values() if each.get("connections") or not self._is_traced]
        return len(enough) >= self._per_node and self._unchanged >= _SETTLED_LOOKS

    def look(self, launcher: int) -> list[dict[str, Any]] | None:
        """Return all that is known, where that is more than before.

        Parameters
        ----------
        launcher
            Process of torchrun.
        """
        before = {number: dict(each) for number, each in self._known.items()}
        if len(self._known) < self._per_node or self.is_complete or self._has_lost_one():
            for each in ranks_of(launcher, host=self._host):
                if self._known.get(each["rank"], {}).get("pid") != each["pid"]:
                    self._known[each["rank"]] = each
        for each in self._known.values() if self._is_traced else ():
            had = each.get("connections", [])
            found = connections_of(each["pid"], without_port=each["store_port"])
            each["connections"] = (had + [ends for ends in found if ends not in had])[:MOST_CONNECTIONS]
        self._unchanged = self._unchanged + 1 if self._known == before else 0
        return list(self._known.values()) if self._known != before else None

    def _has_lost_one(self) -> bool:
        return any(not Path(f"/proc/{each['pid']}").exists() for each in self._known.values())


def _watch(command: Sequence[str], target: Path, ranks: _Ranks) -> int:
    child = subprocess.Popen(list(command))  # noqa: S603 (torchrun, with the words of the plan)

    def forward(number: int, _frame: object) -> None:
        child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, forward)
    look_at = 0.0
    while child.poll() is None:
        if time.monotonic() >= look_at:
            if _is_over(target.parents[1]):
                child.terminate()
            if (known := ranks.look(child.pid)) is not None:
                with contextlib.suppress(OSError):  # a full disk must not end the one who watches
                    _write(target, known)
            look_at = time.monotonic() + (_LOOK_AGAIN_S if ranks.is_complete else 0.0)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(_TICK_S if ranks.is_complete else _SEARCH_S)
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
