"""Switches of NVIDIA's reference designs, from the systems and switches of the catalogue.

Sources: NVIDIA DGX SuperPOD reference architectures for DGX B200 (InfiniBand NDR, 32 nodes per scalable unit),
DGX B300 with InfiniBand XDR (72 nodes per unit) and DGX B300 with Ethernet in two planes (64 nodes per unit):
docs.nvidia.com/dgx-superpod. The largest XDR row prints 9,216 GPUs, but its 1,296 nodes and its cables are
those of 10,368.
"""

import pytest

from linkwise.cluster.reading import parse_cluster
from linkwise.network.clos import wiring_of

B200 = "node: dgx-b200"
B300_XDR = "node: dgx-b300"
B300_PLANES = (
    "node: dgx-b300\nfabric: {kind: rail-optimized, link: roce-400, switch: spectrum-4-sn5600, planes: 2}"
)

ROWS = [
    (B200, 512, (16, 8, 0)),
    (B200, 1024, (32, 16, 0)),
    (B200, 2048, (64, 32, 0)),
    (B200, 4096, (128, 128, 64)),
    (B200, 8192, (256, 256, 128)),
    (B200, 16384, (512, 512, 256)),
    (B300_XDR, 576, (8, 4, 0)),
    (B300_XDR, 1152, (16, 8, 0)),
    (B300_XDR, 2304, (32, 18, 0)),
    (B300_XDR, 4608, (64, 36, 0)),
    (B300_XDR, 10368, (144, 72, 0)),
    (B300_PLANES, 512, (16, 8, 0)),
    (B300_PLANES, 1024, (32, 16, 0)),
    (B300_PLANES, 2048, (64, 32, 0)),
    (B300_PLANES, 4096, (128, 64, 0)),
    (B300_PLANES, 8192, (256, 128, 0)),
]


@pytest.mark.parametrize(("design", "gpus", "switches"), ROWS)
def test_bill_of_materials_is_that_of_the_reference_design(design, gpus, switches):
    cluster = parse_cluster(f"linkwise: cluster/1\nnodes: {gpus // 8}\n{design}\n")
    wiring = wiring_of(cluster)
    planes = wiring.networks
    assert (planes * wiring.leaves, planes * wiring.spines, planes * wiring.cores) == switches
    # Non-blocking, every leaf full: as many cables between any two tiers as between nodes and leaves.
    assert wiring.node_cables == wiring.spine_cables == planes * gpus
    assert wiring.core_cables == (gpus if switches[2] else 0)
