"""Where nodes sit, for schedulers of Kubernetes: topograph's JSON, and a Topology of Kueue with node labels.

References
----------
NVIDIA topograph 1.1, labels ``fabric.topograph.run/tier-N`` and ``accelerator.topograph.run/domain``.
Kueue, Topology-Aware Scheduling, ``kueue.x-k8s.io/v1beta1``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from linkwise.cluster import Cluster
from linkwise.network.exports.places import Places, places_of

__all__ = ["kueue_yaml", "topograph_json"]

_TIER = "fabric.topograph.run/tier-"
_DOMAIN = "accelerator.topograph.run/domain"


def topograph_json(cluster: Cluster) -> str:
    """Return the nodes with the layers of the network above each, the closest first, and their labels.

    Parameters
    ----------
    cluster
        What there is.

    Raises
    ------
    InputError
        When its fabric cannot be wired.
    """
    instances = [
        {"id": name, "network_layers": layers, "labels": labels}
        for name, layers, labels in _nodes(places_of(cluster))
    ]
    return json.dumps({"instances": instances}, indent=2) + "\n"


def kueue_yaml(cluster: Cluster) -> str:
    """Return a Topology of Kueue and, for each node, the labels it goes by.

    Parameters
    ----------
    cluster
        What there is.

    Raises
    ------
    InputError
        When its fabric cannot be wired.
    """
    places = places_of(cluster)
    name = re.sub("[^a-z0-9]+", "-", cluster.name.lower()).strip("-")[:63].strip("-") or "cluster"
    lines = ["apiVersion: kueue.x-k8s.io/v1beta1", "kind: Topology", "metadata:", f"  name: {name}"]
    lines += ["spec:", "  levels:", *(f"    - nodeLabel: {each}" for each in _levels(places))]
    lines += ["    - nodeLabel: kubernetes.io/hostname"]
    lines += ["# node names are assumed: give yours in the same order, then kubectl apply --server-side -f"]
    for node, _, labels in _nodes(places):
        lines += ["---", "apiVersion: v1", "kind: Node", "metadata:", f"  name: {node}", "  labels:"]
        lines += [f"    {key}: {value}" for key, value in labels.items()]
    return "\n".join(lines) + "\n"


def _levels(places: Places) -> list[str]:
    """Return the labels of nested sets of nodes, the widest first; NVLink domains only where they nest."""
    sets = [(places.unit_nodes, f"{_TIER}0")]
    if places.pods > 1:
        sets.append((places.pod_nodes, f"{_TIER}1"))
    if places.domain_nodes > 1 and _nests(places.domain_nodes, [size for size, _ in sets]):
        sets.insert(0, (places.domain_nodes, _DOMAIN))
    return [label for _, label in sorted(sets, key=lambda each: -each[0])]


def _nests(size: int, others: list[int]) -> bool:
    return all(size % other == 0 or other % size == 0 for other in others)


def _nodes(places: Places) -> Iterator[tuple[str, list[str], dict[str, str]]]:
    """Yield name, layers from the closest, and labels of each node."""
    for node in range(places.nodes):
        layers = [f"unit-{node // places.unit_nodes}"]
        if places.pods > 1:
            layers += [f"pod-{node // places.pod_nodes}", "core"]
        elif places.units > 1:
            layers += ["spine"]
        labels = {f"{_TIER}{tier}": layer for tier, layer in enumerate(layers[:2])}
        if places.domain_nodes > 1:
            labels[_DOMAIN] = f"domain-{node // places.domain_nodes}"
        yield f"node-{node}", layers, labels
