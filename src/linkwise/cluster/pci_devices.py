"""GPUs and NICs of the catalogue by PCI vendor and device.

A device that is not here is not guessed at: cards of one chip share a compute capability, not their memory.

References
----------
Mares, M. and Kerner, M. (maintainers), "The PCI ID Repository" (pci.ids), 2023-04; later devices (H200, B200,
GB200, GB300, MI300 and after) as the drivers of their vendors list them, 2025.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["GPU_OF_PCI_ID", "NIC_OF_PCI_ID"]

GPU_OF_PCI_ID: Mapping[str, str] = {
    "10de:1b38": "tesla-p40",
    "10de:1db1": "v100-sxm2-16gb",
    "10de:1df5": "v100-sxm2-16gb",
    "10de:1db4": "v100-pcie-16gb",
    "10de:1db5": "v100-sxm2-32gb",
    "10de:1db8": "v100-sxm3-32gb",
    "10de:1e02": "titan-rtx",
    "10de:20b0": "a100-sxm-40gb",
    "10de:20b1": "a100-pcie-40gb",
    "10de:20f1": "a100-pcie-40gb",
    "10de:20b2": "a100-sxm-80gb",
    "10de:20b5": "a100-pcie-80gb",
    "10de:20f3": "a800-sxm-80gb",
    "10de:2204": "rtx-3090",
    "10de:2235": "a40",
    "10de:2236": "a10",
    "10de:2321": "h100-nvl",
    "10de:2324": "h800-sxm",
    "10de:2329": "h20",
    "10de:2330": "h100-sxm",
    "10de:2331": "h100-pcie",
    "10de:2335": "h200-sxm",
    "10de:233b": "h200-nvl",
    "10de:2684": "rtx-4090",
    "10de:26b9": "l40s",
    "10de:27b8": "l4",
    "10de:2901": "b200-sxm",
    "10de:2941": "gb200",
    "10de:29bc": "b100",
    "10de:31c2": "gb300",
    "1002:7408": "mi250x",
    "1002:74a1": "mi300x",
    "1002:74a5": "mi325x",
    "1002:75a0": "mi350x",
    "1002:75a3": "mi355x",
}
"""Name in the catalogue of a GPU."""

NIC_OF_PCI_ID: Mapping[str, str] = {
    "15b3:1013": "connectx-4",
    "15b3:1014": "connectx-4",
    "15b3:1017": "connectx-5",
    "15b3:1018": "connectx-5",
    "15b3:1019": "connectx-5",
    "15b3:101a": "connectx-5",
    "15b3:101b": "connectx-6",
    "15b3:101c": "connectx-6",
    "15b3:1021": "connectx-7",
    "15b3:1023": "connectx-8",
    "15b3:a2dc": "bluefield-3-supernic",
    "1d0f:efa0": "efa-v1",
    "1d0f:efa1": "efa-v2",
    "1d0f:efa2": "efa-v3",
}
"""Name in the catalogue of a NIC; virtual functions whose card is not known are left out."""
