"""Rules on how processes are started: node ranks, localhost, processes and GPUs.

References
----------
PyTorch, documentation of torchrun (elastic/run). SchedMD, srun(1), sbatch(1). Open MPI, mpirun(1). DeepSpeed,
launcher/runner.py.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from linkwise.readers.environment import Assignment, Reach
from linkwise.readers.kubernetes import Container
from linkwise.readers.launch import Launch
from linkwise.readers.settings_file import SettingsFile
from linkwise.settings.finding import Finding, Severity, Subject

__all__ = [
    "SLURM",
    "deprecated_launcher",
    "localhost",
    "node_counts",
    "node_ranks",
    "number_in",
    "processes_per_node",
    "ranks_of_the_batch_script",
    "shared_memory",
    "started_twice",
    "tasks_per_node",
]

_TORCH = ("torchrun", "torch.distributed.launch")
_TORCHRUN = "PyTorch documentation, torchrun"
SLURM = "SchedMD, srun(1) and sbatch(1)"
_LOCAL = re.compile(r"(?<![\w.-])(?:localhost|127\.0\.0\.1|::1|0\.0\.0\.0)(?![\w.-])")
_GLOBAL_RANKS = ("SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK", "RANK")
_PER_NODE_TASKS = ("ntasks-per-node", "tasks-per-node")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """One launch and what is known around it."""

    subject: Subject
    file: SettingsFile
    launch: Launch

    @property
    def container(self) -> Container | None:
        return next((each for each in self.file.containers if each.scope == self.launch.scope), None)

    @property
    def outer(self) -> Launch | None:
        """Return the launcher that starts this one, or ``None``."""
        if not self.launch.parents:
            return None
        before = [each for each in self.file.launches if each.line <= self.launch.line]
        return next((each for each in reversed(before) if each.launcher == self.launch.parents[-1]), None)

    def nodes(self) -> int | None:
        """Return on how many nodes the job runs, where something says so."""
        stated = number_in(self.launch.value("nnodes", "num-nodes"))
        outer = self.outer
        asked = number_in(outer.value("nodes")) if outer is not None else None
        found = stated or asked or number_in(self.file.directive("nodes", "N"))
        if found is None and self.container is not None:
            found = self.container.pods
        return found

    def tasks_per_node(self) -> int | None:
        """Return how many times Slurm or MPI starts it on each node, where something says so."""
        outer = self.outer
        if outer is not None and (found := number_in(outer.value(*_PER_NODE_TASKS, "npernode"))):
            return found
        return number_in(self.file.directive(*_PER_NODE_TASKS)) if self.launch.parents == ("srun",) else None

    def gpus_per_node(self) -> tuple[int, str] | None:
        """Return how many GPUs a node has for the job, and what says so."""
        same = [each for each in self.file.assignments if each.scope == self.launch.scope]
        for each in reversed(same):
            if each.name == "CUDA_VISIBLE_DEVICES" and re.fullmatch(
                r"\d{1,3}(?:,\d{1,3}){0,99}", each.value or ""
            ):
                return len((each.value or "").split(",")), "CUDA_VISIBLE_DEVICES leaves"
        if self.container is not None and self.container.gpus:
            return self.container.gpus, "the container asks for"
        for name in ("gpus-per-node", "gres", "gpus-per-task"):
            given = self.file.directive(name)
            match = re.search(r"(?:^|:)(\d{1,3})$", given or "")
            if match is not None and (name != "gres" or "gpu" in (given or "")):
                return int(match[1]), f"--{name} asks for"
        cluster = self.subject.cluster
        return None if cluster is None else (cluster.gpus_per_node, "a node of the cluster has")

    def finding(
        self,
        severity: Severity,
        *,
        rule: str,
        option: str,
        value: str,
        what: str,
        todo: str,
        source: str = _TORCHRUN,
    ) -> Finding:
        return Finding(
            severity=severity,
            rule=rule,
            path=self.file.path,
            line=self.launch.line,
            name=f"{self.launch.launcher} --{option}" if option else self.launch.launcher,
            value=value[:100],
            scope=self.launch.scope,
            what=what,
            todo=todo,
            source=source,
        )


def node_ranks(subject: Subject) -> Iterator[Finding]:
    """Yield node ranks that are taken from a rank of processes, or are the same on every node."""
    for at in _started(subject, _TORCH):
        rank = at.launch.value("node-rank")
        if rank is None or at.launch.value("standalone") is not None:
            continue
        if at.launch.value("rdzv-backend") in ("c10d", "etcd", "etcd-v2"):
            if not rank.isdigit() or rank != "0":
                yield at.finding(
                    Severity.NO_EFFECT,
                    rule="node-rank-unused",
                    option="node-rank",
                    value=rank,
                    what=f"the rendezvous {at.launch.value('rdzv-backend')} gives out node ranks itself",
                    todo="leave --node-rank out",
                )
            continue
        yield from _global_rank(at, rank)
        yield from _same_rank(at, rank)


def _global_rank(at: _Started, rank: str) -> Iterator[Finding]:
    named = re.fullmatch(r"\$\{?(\w+)\}?", rank)
    if named is None or named[1] not in _GLOBAL_RANKS:
        return
    tasks = at.tasks_per_node()
    if named[1] == "RANK" and (
        (at.container is not None and at.container.kind == "PyTorchJob")
        or (at.launch.value("nnodes") or "").strip("${}") == "WORLD_SIZE"
    ):
        return  # there RANK counts pods, and WORLD_SIZE too
    if tasks == 1 or (named[1] == "SLURM_PROCID" and tasks is None):
        if named[1] == "SLURM_PROCID":
            yield at.finding(
                Severity.ADVICE,
                rule="node-rank-global",
                option="node-rank",
                value=rank,
                what="counts tasks; it is the number of the node only while each node has one task",
                todo="write SLURM_NODEID",
                source=SLURM,
            )
        return
    yield at.finding(
        Severity.HARMFUL,
        rule="node-rank-global",
        option="node-rank",
        value=rank,
        what="is the rank of a process in the whole job, not the number of the node: ranks collide or are "
        "missing, and the job hangs at its start",
        todo="use the number of the node: SLURM_NODEID, GROUP_RANK, or what the launcher of the nodes gives",
        source=SLURM if named[1] == "SLURM_PROCID" else _TORCHRUN,
    )


def _same_rank(at: _Started, rank: str) -> Iterator[Finding]:
    nodes = at.nodes()
    if "srun" not in at.launch.parents or at.launch.is_late or (nodes is not None and nodes < 2):
        return
    is_batch = re.search(r"\$\{?(?:SLURM_NODEID|SLURM_PROCID)\b", rank) is not None
    if is_batch or (rank.isdigit() and nodes is not None):
        why = "is put in by the batch script, on the first node, before srun starts the others"
        yield at.finding(
            Severity.HARMFUL,
            rule="node-rank-same",
            option="node-rank",
            value=rank,
            what=f"{why if is_batch else 'is written out'}: every node gets the same rank, and the job hangs",
            todo="srun bash -c 'torchrun --node-rank $SLURM_NODEID ...' in single quotes, "
            "or --rdzv-backend c10d without a node rank",
            source=SLURM,
        )


def ranks_of_the_batch_script(subject: Subject) -> Iterator[Finding]:
    """Yield ranks that the batch script exports: it runs once, and srun gives its value to all processes."""
    for file, each, value in subject.settings():
        if each.name not in ("RANK", "LOCAL_RANK", "NODE_RANK") or each.reach is not Reach.EXPORTED:
            continue
        is_batch = bool(file.directives) and any(launch.launcher == "srun" for launch in file.launches)
        if is_batch and re.search(r"\$\{?SLURM_(?:PROCID|LOCALID|NODEID)\b", value):
            yield subject.finding(
                file,
                each,
                Severity.HARMFUL,
                rule="rank-of-batch-script",
                what="is put in by the batch script, which is task 0: every process that srun starts gets it",
                todo=f"export it in what srun starts: srun bash -c 'export {each.name}={value[:40]}; ...'",
                source=SLURM,
            )


def localhost(subject: Subject) -> Iterator[Finding]:
    """Yield rendezvous addresses that are each node itself, in jobs of several nodes."""
    for at in _started(subject, (*_TORCH, "deepspeed")):
        nodes = at.nodes()
        if nodes is None or nodes < 2:
            continue
        if at.launch.value("standalone") is not None:
            yield at.finding(
                Severity.HARMFUL,
                rule="localhost",
                option="standalone",
                value="",
                what=f"makes each of the {nodes} nodes a job of its own",
                todo="write --rdzv-backend c10d --rdzv-endpoint HEAD:29500 instead",
            )
        for option in ("master-addr", "rdzv-endpoint"):
            value = at.launch.value(option)
            if value is not None and _LOCAL.search(value):
                yield at.finding(
                    Severity.HARMFUL,
                    rule="localhost",
                    option=option,
                    value=value,
                    what=f"is this node itself on each of {nodes} nodes: every node waits for itself",
                    todo="give the host name of the first node, and fail where it is not known",
                )
    yield from _local_variables(subject)


def _local_variables(subject: Subject) -> Iterator[Finding]:
    for file, each, value in subject.settings():
        if each.name not in ("MASTER_ADDR", "PET_MASTER_ADDR") or not _LOCAL.search(value):
            continue
        nodes = _nodes_of(file, each, subject)
        if nodes is None or nodes < 2:
            continue
        is_fallback = "$" in value or "|" in value
        what = "falls back to localhost where the name cannot be found" if is_fallback else "is localhost"
        yield subject.finding(
            file,
            each,
            Severity.HARMFUL,
            rule="localhost",
            what=f"{what}, in a job of {nodes} nodes: each becomes a job of its own, or waits for itself",
            todo="give the host name of the first node, and fail where it is not known",
            source=_TORCHRUN,
        )


def processes_per_node(subject: Subject) -> Iterator[Finding]:
    """Yield numbers of processes that are not the number of GPUs."""
    for at in _started(subject, (*_TORCH, "deepspeed")):
        option = "num-gpus" if at.launch.launcher == "deepspeed" else "nproc-per-node"
        processes, known = number_in(at.launch.value(option)), at.gpus_per_node()
        if processes is None or known is None:
            continue
        gpus, why = known
        tasks = at.tasks_per_node() or 1
        if tasks > 1 and at.launch.launcher in _TORCH and processes > 1:
            continue  # started_twice says so
        if processes * tasks > gpus:
            yield at.finding(
                Severity.HARMFUL,
                rule="processes-per-node",
                option=option,
                value=str(processes),
                what=f"{processes * tasks} processes on a node, and {why} {gpus} GPUs: two share one, "
                "which NCCL refuses (Duplicate GPU detected)",
                todo=f"write --{option} {gpus}",
            )
        elif processes * tasks < gpus:
            yield at.finding(
                Severity.ADVICE,
                rule="processes-per-node",
                option=option,
                value=str(processes),
                what=f"{processes * tasks} processes on a node, and {why} {gpus} GPUs: the others stay idle",
                todo=f"write --{option} {gpus}, if the job is to use all",
            )


def tasks_per_node(subject: Subject) -> Iterator[Finding]:
    """Yield numbers of tasks on a node, started by Slurm or MPI without torchrun, above its GPUs."""
    for at in _started(subject, ("srun", "mpirun")):
        inner = [each for each in at.file.launches if each.parents and each.line >= at.launch.line]
        known = at.gpus_per_node()
        stated = at.launch.value(*_PER_NODE_TASKS, "npernode")
        if stated is None and at.launch.launcher == "srun" and at.launch.value("nodes", "ntasks") is None:
            stated = at.file.directive(*_PER_NODE_TASKS)
        tasks = number_in(stated)
        if inner or known is None or tasks is None or tasks <= known[0]:
            continue
        option = "ntasks-per-node" if at.launch.launcher == "srun" else "npernode"
        yield at.finding(
            Severity.HARMFUL,
            rule="tasks-per-node",
            option=option,
            value=str(tasks),
            what=f"{tasks} processes on a node, and {known[1]} {known[0]} GPUs: two share one",
            todo=f"write --{option} {known[0]}",
            source=SLURM if at.launch.launcher == "srun" else "Open MPI, mpirun(1)",
        )


def started_twice(subject: Subject) -> Iterator[Finding]:
    """Yield launchers of a whole node that Slurm or MPI starts several times on each."""
    for at in _started(subject, _TORCH):
        tasks, processes = at.tasks_per_node(), number_in(at.launch.value("nproc-per-node"))
        if tasks is not None and tasks > 1 and (processes is None or processes > 1):
            yield at.finding(
                Severity.HARMFUL,
                rule="started-twice",
                option="nproc-per-node",
                value="" if processes is None else str(processes),
                what=f"{at.launch.parents[-1]} starts {tasks} of these on every node, and each starts "
                f"{processes or 'several'} processes",
                todo="set --ntasks-per-node=1: torchrun starts the processes of its node itself",
                source=SLURM,
            )


def node_counts(subject: Subject) -> Iterator[Finding]:
    """Yield numbers of nodes that do not agree with what is asked for, or with the cluster."""
    for at in _started(subject, _TORCH):
        nodes = number_in(at.launch.value("nnodes"))
        if nodes is None:
            continue
        is_elastic = ":" in (at.launch.value("nnodes") or "")
        for asked, what, todo in _asked_for(at):
            if asked != nodes and not is_elastic:
                yield at.finding(
                    Severity.HARMFUL,
                    rule="node-count",
                    option="nnodes",
                    value=str(nodes),
                    what=f"{what}: the rendezvous waits for {nodes}",
                    todo=todo,
                )
        cluster = subject.cluster
        if cluster is not None and nodes > cluster.nodes:
            yield at.finding(
                Severity.HARMFUL,
                rule="node-count",
                option="nnodes",
                value=str(nodes),
                what=f"the cluster has {cluster.nodes} nodes",
                todo=f"write at most --nnodes {cluster.nodes}",
            )


def _asked_for(at: _Started) -> Iterator[tuple[int, str, str]]:
    """Yield the nodes that something asks for, with words for it and what to write."""
    asked = number_in(at.file.directive("nodes", "N"))
    if asked is not None and "srun" in at.launch.parents:
        yield asked, f"sbatch asks for {asked} nodes", "write --nnodes $SLURM_NNODES"
    pods = None if at.container is None else at.container.pods
    if pods is not None and pods > 1:
        yield pods, f"the manifest starts {pods} pods", f"write --nnodes {pods}"


def deprecated_launcher(subject: Subject) -> Iterator[Finding]:
    """Yield torch.distributed.launch, which torchrun replaced."""
    for at in _started(subject, ("torch.distributed.launch",)):
        yield at.finding(
            Severity.ADVICE,
            rule="deprecated-launcher",
            option="",
            value="",
            what="is deprecated",
            todo="write torchrun; the script then reads LOCAL_RANK instead of --local-rank",
        )


def shared_memory(subject: Subject) -> Iterator[Finding]:
    """Yield containers with several GPUs whose /dev/shm has the 64 MB of a container."""
    for file in subject.files:
        for each in file.containers:
            if each.gpus > 1 and not each.has_memory_shm:
                yield Finding(
                    severity=Severity.ADVICE,
                    rule="shared-memory",
                    path=file.path,
                    line=each.line,
                    name="/dev/shm",  # noqa: S108 (named, not written to)
                    scope=each.scope,
                    what="has the 64 MB of a container; NCCL and data loaders need more",
                    todo="mount an emptyDir with medium: Memory at /dev/shm",
                    source="NCCL user guide, troubleshooting, shared memory",
                )


def _started(subject: Subject, launchers: tuple[str, ...]) -> Iterator[_Started]:
    for file in subject.files:
        for launch in file.launches:
            if launch.launcher in launchers:
                yield _Started(subject=subject, file=file, launch=launch)


def _nodes_of(file: SettingsFile, each: Assignment, subject: Subject) -> int | None:
    """Return the nodes of the job that a setting belongs to."""
    same = [launch for launch in file.launches if launch.scope == each.scope]
    counts = [_Started(subject=subject, file=file, launch=launch).nodes() for launch in same]
    counts += [number_in(launch.value("nodes")) for launch in same]
    counts.append(number_in(file.directive("nodes", "N")))
    counts += [container.pods for container in file.containers if container.scope == each.scope]
    known = [count for count in counts if count is not None]
    return max(known) if known else None


def number_in(text: str | None) -> int | None:
    """Return the number of nodes or processes in a text, of ``2:4`` the larger one, or ``None``.

    Parameters
    ----------
    text
        The value of an option.
    """
    match = re.fullmatch(r"(?:\d{1,6}[:-])?(\d{1,6})", text or "")
    return int(match[1]) if match else None
