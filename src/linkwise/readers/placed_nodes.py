"""Nodes with their place in the network, as schedulers' tools list them: topograph's JSON, Kubernetes nodes.

References
----------
NVIDIA, "Topograph", version 1.1, page "graph engine", 2026. NVIDIA, "GPU Feature Discovery", labels of nodes,
2025. The Kubernetes Authors, "Well-Known Labels, Annotations and Taints", 2025.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.readers.faults import Faults, excerpt
from linkwise.readers.json_text import looks_like_json, parse_json

__all__ = [
    "PlacedNode",
    "is_kubernetes_nodes",
    "is_topograph",
    "parse_kubernetes_nodes",
    "parse_topograph",
]

GPU_PRODUCT_LABELS = ("nvidia.com/gpu.product", "amd.com/gpu.product-name")
GPU_COUNT_LABEL = "nvidia.com/gpu.count"
"""Physical GPUs; the capacity counts each as often as it is shared."""
GPU_RESOURCES = ("nvidia.com/gpu", "amd.com/gpu")
NIC_RESOURCES = ("vpc.amazonaws.com/efa",)
INSTANCE_LABELS = ("node.kubernetes.io/instance-type", "beta.kubernetes.io/instance-type")
DOMAIN_LABELS = (
    "nvidia.com/gpu.clique",
    "accelerator.topograph.run/domain",
    "network.topology.nvidia.com/accelerator",
)
LAYER_LABELS = (
    "network.topology.nvidia.com/leaf",
    "network.topology.nvidia.com/spine",
    "network.topology.nvidia.com/core",
    "topology.k8s.aws/network-node-layer-3",
    "topology.k8s.aws/network-node-layer-2",
    "topology.k8s.aws/network-node-layer-1",
)
"""Labels that name the switches on the way up, those of a kind from the closest on."""

_TIER_LABEL = re.compile(r"fabric\.topograph\.run/tier-(\d{1,2})")
_DEEPEST = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedNode:
    """One node.

    Parameters
    ----------
    name
        Its name.
    layers
        Switches on the way up, the closest first.
    domain
        Its NVLink domain, where one is named.
    gpu
        Its GPU as the tool spells it: ``"NVIDIA-H100-80GB-HBM3"``.
    gpus
        GPUs of the node; ``None`` where not stated, 0 for a node without.
    nics
        NICs for the compute fabric, where stated.
    instance_type
        The shape that a cloud calls it: ``"p5.48xlarge"``.
    """

    name: str
    layers: tuple[str, ...] = ()
    domain: str | None = None
    gpu: str | None = None
    gpus: int | None = None
    nics: int | None = None
    instance_type: str | None = None


def is_topograph(text: str) -> bool:
    """Return whether `text` looks like the JSON of topograph's graph engine.

    Parameters
    ----------
    text
        The file, or its start.
    """
    return looks_like_json(text, "instances")


def parse_topograph(text: str, *, path: str | None = None) -> tuple[PlacedNode, ...]:
    """Return the instances in the JSON of topograph's graph engine.

    Parameters
    ----------
    text
        The file.
    path
        Its name, for messages.

    Raises
    ------
    DocumentError
        With all faults: JSON that is none, instances without or with the same id, layers that are no names.
    """
    faults = Faults(path=path)
    listed = _list_of(parse_json(text, faults), "instances", faults)
    nodes = []
    for place, instance in enumerate(listed):
        key = f"instances[{place}]"
        name = instance.get("id") if isinstance(instance, dict) else None
        if not isinstance(instance, dict) or not isinstance(name, str) or not name:
            faults.add("has no id", key=key)
            continue
        layers = instance.get("network_layers", [])
        if not isinstance(layers, list) or not all(isinstance(each, str) for each in layers[:_DEEPEST]):
            faults.add("network_layers are no list of names of switches", key=key)
            continue
        # Version 0.5 has attributes and a type where later ones have labels.
        labels = {**_texts(instance, "attributes"), **_texts(instance, "labels")}
        kind = instance.get("type")
        nodes.append(
            PlacedNode(
                name=name,
                layers=tuple(filter(None, layers[:_DEEPEST])),
                domain=_first(labels, (*DOMAIN_LABELS, "nvlink")),
                gpu=_first(labels, GPU_PRODUCT_LABELS) or (kind if isinstance(kind, str) else None),
            )
        )
    return _once(nodes, faults)


def is_kubernetes_nodes(text: str) -> bool:
    """Return whether `text` looks like what `kubectl get -o json` prints.

    Parameters
    ----------
    text
        The file, or its start.
    """
    return looks_like_json(text, "apiVersion", "kind")


def parse_kubernetes_nodes(text: str, *, path: str | None = None) -> tuple[PlacedNode, ...]:
    """Return the nodes in what `kubectl get nodes -o json` printed.

    Parameters
    ----------
    text
        The whole output.
    path
        The file it came from, for messages.

    Raises
    ------
    DocumentError
        With all faults: JSON that is none, objects that are no nodes, nodes without or with the same name,
        counts that are none.
    """
    faults = Faults(path=path)
    whole = parse_json(text, faults)
    if whole.get("kind") != "Node" and whole.get("items", []) in (None, []):
        what = "is a Kubernetes list without nodes; run 'kubectl get nodes -o json' where kubectl sees some"
        raise faults.refusal(what, key="items")
    listed = [whole] if whole.get("kind") == "Node" else _list_of(whole, "items", faults)
    nodes = []
    for place, item in enumerate(listed):
        key = f"items[{place}]"
        if not isinstance(item, dict) or item.get("kind", "Node") != "Node":
            kind = item.get("kind") if isinstance(item, dict) else item
            faults.add(f"{excerpt(str(kind))} is no node; give 'kubectl get nodes -o json'", key=key)
            continue
        name = _object(item, "metadata").get("name")
        if isinstance(name, str) and name:
            nodes.append(_node(name, item, faults, key))
        else:
            faults.add("has no metadata.name", key=key)
    return _once(nodes, faults)


def _node(name: str, item: Mapping[str, Any], faults: Faults, key: str) -> PlacedNode:
    labels = _texts(_object(item, "metadata"), "labels")
    status = _object(item, "status")
    capacity = {**_texts(status, "allocatable"), **_texts(status, "capacity")}
    tiers = sorted((int(match[1]), label) for label in labels if (match := _TIER_LABEL.fullmatch(label)))
    layers = [labels[label] for _, label in tiers] or [
        labels[each] for each in LAYER_LABELS if each in labels
    ]
    count = labels.get(GPU_COUNT_LABEL) or _first(capacity, GPU_RESOURCES) or "0"
    return PlacedNode(
        name=name,
        layers=tuple(layers[:_DEEPEST]),
        domain=_first(labels, DOMAIN_LABELS),
        gpu=_first(labels, GPU_PRODUCT_LABELS),
        gpus=_count(count, faults, key),
        nics=_count(_first(capacity, NIC_RESOURCES), faults, key),
        instance_type=_first(labels, INSTANCE_LABELS),
    )


def _count(given: str | None, faults: Faults, key: str) -> int | None:
    if given is None:
        return None
    if given.isascii() and given.isdigit() and len(given) <= 5:
        return int(given)
    faults.add(f"{excerpt(given)} is not a number of GPUs or NICs", key=key)
    return None


def _list_of(whole: Mapping[str, Any], key: str, faults: Faults) -> Sequence[Any]:
    listed = whole.get(key)
    if not isinstance(listed, list) or not listed:
        raise faults.refusal(f"has no list of {key}, or an empty one", key=key)
    return listed


def _object(whole: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = whole.get(key)
    return value if isinstance(value, dict) else {}


def _texts(whole: Mapping[str, Any], key: str) -> dict[str, str]:
    """Return the entries of an object that are text or whole numbers, as text."""
    return {
        name: str(value)
        for name, value in _object(whole, key).items()
        if isinstance(value, str | int) and not isinstance(value, bool)
    }


def _first(labels: Mapping[str, str], names: Sequence[str]) -> str | None:
    return next((labels[name] for name in names if labels.get(name)), None)


def _once(nodes: Sequence[PlacedNode], faults: Faults) -> tuple[PlacedNode, ...]:
    for name in _twice(nodes):
        faults.add(f"the node {excerpt(name)} is listed more than once; keep one")
    faults.raise_any()
    return tuple(nodes)


def _twice(nodes: Sequence[PlacedNode]) -> Iterator[str]:
    seen: set[str] = set()
    for node in nodes:
        if node.name in seen:
            yield node.name
        seen.add(node.name)
