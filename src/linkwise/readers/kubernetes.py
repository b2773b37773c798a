"""Kubernetes manifests as settings of containers, and how many GPUs and pods they ask for.

Read are the kinds that start pods (Pod, Job, JobSet, StatefulSet, PyTorchJob, MPIJob, TrainJob...), wherever
a pod template stands in them, and the data of a ConfigMap.

References
----------
Kubernetes API reference, PodSpec and Container. Kubeflow, documentation of PyTorchJob, MPIJob and TrainJob.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from linkwise.documents.tree import KeyPath, Plain, Tree, parse_yaml
from linkwise.errors import DocumentError, Fault
from linkwise.readers.environment import Assignment, Reach, assignment
from linkwise.readers.launch import Launch, find_launches
from linkwise.readers.launch_script import LaunchScript
from linkwise.readers.shell import Word

__all__ = ["Container", "Manifest", "parse_manifest"]

MOST_DOCUMENTS = 200
"""Documents of one file that are read."""
_GPU = "nvidia.com/gpu"
_SHELLS = ("bash", "sh", "/bin/bash", "/bin/sh")


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One container of a pod template.

    Attributes
    ----------
    scope
        Kind and name of the document, role and name of the container.
    kind
        Kind of the document: ``PyTorchJob``, ``Job``...
    line
        Line it starts in.
    pods
        Pods of the whole document; ``None`` where it does not say.
    gpus
        GPUs it asks for; 0 for none.
    has_memory_shm
        Whether a volume in memory is mounted at /dev/shm, or it is that of the host.
    """

    scope: str
    kind: str
    line: int | None
    pods: int | None
    gpus: int
    has_memory_shm: bool


@dataclass(slots=True, kw_only=True)
class Manifest:
    """All documents of a file."""

    containers: list[Container] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)


def parse_manifest(text: str, *, path: str | None = None) -> Manifest:
    """Return the settings and containers of a manifest.

    Parameters
    ----------
    text
        One YAML document or several.
    path
        The file, for messages.

    Raises
    ------
    DocumentError
        If the text is not YAML, or has more documents than `MOST_DOCUMENTS`.
    """
    manifest = Manifest()
    for number, (before, part) in enumerate(_documents(text)):
        if number >= MOST_DOCUMENTS:
            message = f"has more than {MOST_DOCUMENTS} documents; give the one that starts the job"
            raise DocumentError([Fault(path=path, line=before + 1, message=message)])
        tree = _tree(part, before, path)
        if isinstance(tree.value, dict):
            _Reader(manifest=manifest, root=tree.value, tree=tree, before=before).read()
    return manifest


def _documents(text: str) -> Iterator[tuple[int, str]]:
    """Yield each document and the number of lines before it."""
    part: list[str] = []
    before = 0
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"---(?:\s|$)", line):
            if any(each.strip() for each in part):
                yield before, "\n".join(part)
            part, before = [], number
        else:
            part.append(line)
    if any(each.strip() for each in part):
        yield before, "\n".join(part)


def _tree(part: str, before: int, path: str | None) -> Tree:
    try:
        tree = parse_yaml(part, path=path)
    except DocumentError as error:
        raise DocumentError(_moved(error.faults, before)) from None
    if tree.faults:
        raise DocumentError(_moved(tree.faults, before))
    return tree


def _moved(faults: tuple[Fault, ...], before: int) -> Iterator[Fault]:
    for fault in faults:
        line = None if fault.line is None else fault.line + before
        yield Fault(path=fault.path, line=line, key=fault.key, message=fault.message)


@dataclass(slots=True, kw_only=True)
class _Reader:
    """Reads one document."""

    manifest: Manifest
    root: Mapping[str, Plain]
    tree: Tree
    before: int

    def read(self) -> None:
        if self.root.get("kind") == "ConfigMap":
            self.config_map()
        elif self.root.get("kind") == "TrainJob":
            self.trainer()
        else:
            self.walk(dict(self.root), (), self.pods())

    @property
    def kind(self) -> str:
        return str(self.root.get("kind", ""))[:60]

    def name(self) -> str:
        metadata = self.root.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        return f"{self.kind}/{str(name)[:80]}"

    def line(self, at: KeyPath) -> int | None:
        found = self.tree.lines.get(at)
        return None if found is None else found + self.before

    def pods(self) -> int | None:
        """Return how many pods take part, where the document says so."""
        spec = self.root.get("spec")
        if not isinstance(spec, dict):
            return None
        if self.kind == "Pod":
            return 1
        replicas = next((spec[key] for key in spec if key.endswith("ReplicaSpecs")), None)
        if isinstance(replicas, dict):
            parts = [part.get("replicas", 1) for part in replicas.values() if isinstance(part, dict)]
            if self.kind == "MPIJob":
                parts = [
                    part.get("replicas", 1)
                    for role, part in replicas.items()
                    if isinstance(part, dict) and role != "Launcher"
                ]
            return sum(part for part in parts if isinstance(part, int))
        count = spec.get("parallelism", spec.get("replicas"))
        return count if isinstance(count, int) and not isinstance(count, bool) else None

    def walk(self, value: Plain, at: KeyPath, pods: int | None) -> None:
        """Find every pod spec: a mapping with containers."""
        if isinstance(value, dict):
            containers = value.get("containers")
            if isinstance(containers, list):
                for number, each in enumerate(containers):
                    if isinstance(each, dict):
                        self.container(each, (*at, "containers", number), value, pods)
                return
            for key, inner in value.items():
                self.walk(inner, (*at, key), pods)
        elif isinstance(value, list):
            for number, inner in enumerate(value):
                self.walk(inner, (*at, number), pods)

    def container(
        self, value: Mapping[str, Plain], at: KeyPath, pod: Mapping[str, Plain], pods: int | None
    ) -> None:
        roles = [
            str(part) for part in at if isinstance(part, str) and part in ("Master", "Worker", "Launcher")
        ]
        scope = " ".join([self.name(), *roles, str(value.get("name", ""))[:80]]).strip()
        self.manifest.containers.append(
            Container(
                scope=scope,
                kind=self.kind,
                line=self.line(at),
                pods=pods,
                gpus=_gpus(value.get("resources")),
                has_memory_shm=_has_memory_shm(value, pod),
            )
        )
        self.environment(value.get("env"), (*at, "env"), scope)
        self.command(value, at, scope)

    def environment(self, value: Plain, at: KeyPath, scope: str) -> None:
        for number, each in enumerate(value if isinstance(value, list) else []):
            if isinstance(each, dict) and "value" in each and isinstance(each.get("name"), str):
                given = each["value"]
                text = given if isinstance(given, str) else str(given).lower()
                self.keep(str(each["name"]), text, (*at, number), scope)

    def keep(self, name: str, text: str, at: KeyPath, scope: str) -> None:
        found = assignment(name, text, line=self.line(at), reach=Reach.MANIFEST, scope=scope)
        if found is not None:
            self.manifest.assignments.append(found)

    def command(self, value: Mapping[str, Plain], at: KeyPath, scope: str) -> None:
        words = []
        for key in ("command", "args"):
            given = value.get(key)
            for number, each in enumerate(given if isinstance(given, list) else []):
                words.append(Word(text=str(each), line=self.line((*at, key, number)) or 1))
        for place in range(1, len(words)):
            is_script = words[place - 1].text.startswith("-") and words[place - 1].text.endswith("c")
            if is_script and place > 1 and words[place - 2].text in _SHELLS:
                script = LaunchScript(scope=scope)
                text = words[place].text
                script.read(text, first_line=words[place].line + ("\n" in text.rstrip("\n")))
                self.manifest.assignments.extend(script.assignments)
                self.manifest.launches.extend(script.launches)
                return
        self.manifest.launches.extend(find_launches(words, scope=scope))

    def config_map(self) -> None:
        data = self.root.get("data")
        for key, value in (data if isinstance(data, dict) else {}).items():
            self.keep(key, str(value), ("data", key), self.name())

    def trainer(self) -> None:
        spec = self.root.get("spec")
        trainer = spec.get("trainer") if isinstance(spec, dict) else None
        if not isinstance(trainer, dict):
            return
        at: KeyPath = ("spec", "trainer")
        nodes = trainer.get("numNodes")
        self.manifest.containers.append(
            Container(
                scope=self.name(),
                kind=self.kind,
                line=self.line(at),
                pods=nodes if isinstance(nodes, int) else None,
                gpus=_gpus(trainer.get("resourcesPerNode")),
                has_memory_shm=True,  # the runtime it refers to mounts it, or not: the document does not say
            )
        )
        self.environment(trainer.get("env"), (*at, "env"), self.name())
        self.command(trainer, at, self.name())


def _gpus(resources: Plain) -> int:
    found = 0
    for part in ("requests", "limits"):
        asked = resources.get(part) if isinstance(resources, dict) else None
        count = asked.get(_GPU) if isinstance(asked, dict) else None
        if isinstance(count, int) or (isinstance(count, str) and count.isdigit() and len(count) < 8):
            found = max(found, int(count))
    return found


def _has_memory_shm(container: Mapping[str, Plain], pod: Mapping[str, Plain]) -> bool:
    if pod.get("hostIPC") is True:
        return True  # its /dev/shm is that of the host
    mounts, volumes = container.get("volumeMounts"), pod.get("volumes")
    names = {
        each.get("name")
        for each in (mounts if isinstance(mounts, list) else [])
        if isinstance(each, dict) and str(each.get("mountPath", "")).rstrip("/") == "/dev/shm"  # noqa: S108
    }
    for each in volumes if isinstance(volumes, list) else []:
        if isinstance(each, dict) and each.get("name") in names:
            empty = each.get("emptyDir")
            return not isinstance(empty, dict) or empty.get("medium") == "Memory"
    return False
