"""Jobs with nothing wrong, on many stacks."""

from collections.abc import Iterator

from tests.job_logs.case import LogCase, healthy_case, script_of
from tests.job_logs.job import EFA, ETHERNET, FASTRAK, INFINIBAND, ROCE, TCPX, Network

_EIGHT = Network(devices=tuple(f"mlx5_{index}" for index in range(8)))
_EVERYTHING = frozenset({"INIT", "ENV", "NET", "GRAPH", "TUNING", "BOOTSTRAP", "P2P", "SHM"})


def stacks() -> Iterator[LogCase]:
    """Return healthy jobs: fabrics, clouds, racks, one node, old and new releases."""
    variants: tuple[tuple[str, str, dict[str, object]], ...] = (
        ("infiniband-8", "2.21.5", {"network": _EIGHT, "gpus_per_node": 8}),
        ("infiniband-4-nodes", "2.27.5", {"network": INFINIBAND, "nodes": 4, "gpus_per_node": 4}),
        ("infiniband-old", "2.4.8", {"network": INFINIBAND, "multicast": False}),
        ("infiniband-2.6", "2.6.4", {"network": INFINIBAND, "multicast": False}),
        ("infiniband-2.9", "2.9.9", {"network": INFINIBAND, "multicast": False}),
        ("infiniband-2.10", "2.10.3", {"network": INFINIBAND, "multicast": False, "framework": "nccl-tests"}),
        ("infiniband-2.16", "2.16.5", {"network": INFINIBAND, "multicast": False}),
        ("infiniband-2.32", "2.32.3", {"network": INFINIBAND}),
        ("everything-shown", "2.26.5", {"network": INFINIBAND, "subsystems": _EVERYTHING}),
        ("roce", "2.20.5", {"network": ROCE, "framework": "nccl-tests"}),
        ("roce-2.29", "2.29.3", {"network": ROCE}),
        ("efa", "2.23.4", {"network": EFA, "hosts": ("ip-10-20-0-11", "ip-10-20-0-12"), "gpus_per_node": 8}),
        ("fastrak", "2.26.5", {"network": FASTRAK, "hosts": ("a3mega-0", "a3mega-1"), "gpus_per_node": 8}),
        ("tcpx", "2.18.3", {"network": TCPX, "hosts": ("a3high-0", "a3high-1"), "gpus_per_node": 8}),
        ("ethernet", "2.18.3", {"network": ETHERNET, "intra": "PCIe", "multicast": False}),
        ("ethernet-2.30", "2.30.7", {"network": ETHERNET, "intra": "SHM", "multicast": False}),
        (
            "rack",
            "2.26.5",
            {
                "network": INFINIBAND,
                "rack": True,
                "hosts": ("gb-01", "gb-02", "gb-03", "gb-04"),
                "gpus_per_node": 4,
            },
        ),
        (
            "rack-2.30",
            "2.30.7",
            {"network": INFINIBAND, "rack": True, "hosts": ("gb-01", "gb-02"), "gpus_per_node": 4},
        ),
        (
            "one-node-nvlink",
            "2.28.9",
            {"network": INFINIBAND, "nodes": 1, "gpus_per_node": 8, "framework": "nccl-tests"},
        ),
        (
            "one-node-pcie",
            "2.21.5",
            {"network": ETHERNET, "nodes": 1, "gpus_per_node": 4, "intra": "PCIe", "multicast": False},
        ),
        ("one-gpu-per-node", "2.24.3", {"network": INFINIBAND, "nodes": 4, "gpus_per_node": 1}),
        ("only-warnings", "2.27.5", {"network": INFINIBAND, "subsystems": frozenset({"NONE"})}),
    )
    for name, version, fields in variants:
        case_id = f"healthy-{name}"
        script = script_of(case_id, version, **fields)
        if name == "only-warnings":
            yield healthy_case(case_id, script, facts=None)
        else:
            yield healthy_case(case_id, script)
    yield _rccl()
    yield _several_communicators()


def _rccl() -> LogCase:
    """Return a job on AMD GPUs; RCCL 2.18 prints NCCL's lines with a version line of its own."""
    case_id = "healthy-rccl"
    script = script_of(case_id, "2.18.3", multicast=False)
    script.change("version", lambda _: "RCCL version 2.18.3+hip6.0 HEAD:2f6d59e+")
    script.drop("driver", "multicast", "dmabuf")
    return healthy_case(case_id, script, basis="assumed")


def _several_communicators() -> LogCase:
    """Return a job whose ranks also share a communicator with those of their host, as tensor parallelism does."""
    case_id = "healthy-several-communicators"
    script = script_of(case_id, "2.27.5", gpus_per_node=4)
    for rank in script.ranks:
        child = f"{rank.comm[:-4]}{0xBEE0 + rank.device:04x}"
        fields = {
            "comm": child,
            "parent": rank.comm,
            "rank": rank.device,
            "ranks": 4,
            "color": rank.node,
            "key": rank.rank,
        }
        script.say(rank, "collective", "split_start", at_s=3.9, **fields)
        size = {"nodes": 1, "local_ranks": 4, "local": rank.device}
        script.say(rank, "collective", "size", at_s=4.0, comm=child, rank=rank.device, ranks=4, **size)
        script.say(rank, "collective", "split_complete", at_s=4.2, **fields)
    return healthy_case(case_id, script)
