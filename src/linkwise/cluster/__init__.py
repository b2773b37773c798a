"""What there is: nodes, GPUs, NICs and the fabric between them, as one `Cluster` value.

It says nothing of how work is cut over the GPUs (`layout`) or how long a transfer takes (`network`).
Read first: `cluster.Cluster`, then `reading` (a `cluster/1` document or `dgx-h100:32` to that value).
"""

from typing import TYPE_CHECKING, Any

from linkwise.cluster.cluster import Cluster, Fabric, FabricKind, GpuLinks, Routing, RoutingKind

if TYPE_CHECKING:
    from linkwise.cluster.reading import cluster_from_shorthand, load_cluster, read_cluster

__all__ = [
    "Cluster",
    "Fabric",
    "FabricKind",
    "GpuLinks",
    "Routing",
    "RoutingKind",
    "cluster_from_shorthand",
    "load_cluster",
    "read_cluster",
]


def __getattr__(name: str) -> Any:
    """Return what reads documents, loaded when first used: it brings pydantic with it."""
    if name in ("cluster_from_shorthand", "load_cluster", "read_cluster"):
        from linkwise.cluster import reading

        return getattr(reading, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
