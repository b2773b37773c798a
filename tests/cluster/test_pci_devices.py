"""Devices by their PCI ids are all in the catalogue."""

import pytest

from linkwise import catalog
from linkwise.cluster.guess import nvlinks_of
from linkwise.cluster.pci_devices import GPU_OF_PCI_ID, NIC_OF_PCI_ID


def test_gpus_and_nics_are_those_of_the_catalogue():
    assert all(catalog.gpu(name).name == name for name in GPU_OF_PCI_ID.values())
    assert all(catalog.nic(name).name == name for name in NIC_OF_PCI_ID.values())


@pytest.mark.parametrize(
    ("gpu", "links"),
    [
        ("v100-sxm2-32gb", 6),
        ("a100-sxm-80gb", 12),
        ("a800-sxm-80gb", 8),
        ("h100-sxm", 18),
        ("h100-pcie", 12),
        ("b200-sxm", 18),
        ("mi300x", None),
        ("l40s", None),
    ],
)
def test_links_of_a_gpu_follow_from_its_rate(gpu, links):
    # Links of one GPU as NVIDIA's data sheets count them.
    assert nvlinks_of(gpu) == links
