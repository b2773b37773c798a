"""PCIe and bonds: access control that breaks or slows devices, and one flow on one port of two."""

from collections.abc import Iterator

from tests.job_logs import hosts
from tests.job_logs.case import LogCase, healthy_case, runs, script_of
from tests.job_logs.faults.sequel import watchdog
from tests.job_logs.faults.verbs import NET, completion, echoes
from tests.job_logs.healthy import performance_table
from tests.job_logs.job import Network


def bond() -> Iterator[LogCase]:
    """One flow uses one port of a bonded NIC."""
    network = Network(link="RoCE", devices=("mlx5_bond_0",), speed_mbit_per_s=200_000)
    for number, version in enumerate(("2.18.3", "2.21.5", "2.27.5"), 1):
        case_id = f"bond-{number}"
        script = script_of(case_id, version, network=network, framework="")
        table = performance_table(script.job, peak_gb_per_s=11.6)
        side = {
            "allreduce.ncclt.txt": table + "\n",
            "host.bond.txt": hosts.bonding("bond0", ("ens2f0", "ens2f1"), 100_000),
            "host.speed.txt": hosts.interface_speed("bond0", 200_000),
        }
        yield LogCase(
            id=case_id,
            cause="bond",
            verdict="slow",
            script=script,
            side=side,
            facts=runs(script),
            basis="assumed",
        )
    script = script_of("bond-near-1", "2.24.3", network=network, framework="")
    yield healthy_case(
        "bond-near-1",
        script,
        "bond",
        side={
            "allreduce.ncclt.txt": performance_table(script.job, peak_gb_per_s=23.4) + "\n",
            "host.bond.txt": hosts.bonding("bond0", ("ens2f0", "ens2f1"), 100_000),
        },
    )
    single = Network(link="RoCE", devices=("mlx5_0",), speed_mbit_per_s=100_000)
    script = script_of("bond-near-2", "2.21.5", network=single, framework="")
    yield healthy_case(
        "bond-near-2",
        script,
        "bond",
        side={
            "allreduce.ncclt.txt": performance_table(script.job, peak_gb_per_s=11.6) + "\n",
            "host.speed.txt": hosts.interface_speed("ens2f0", 100_000),
        },
    )


def acs_iommu() -> Iterator[LogCase]:
    """PCIe access control or an IOMMU breaks or slows traffic between devices."""
    for number, version in enumerate(("2.18.3", "2.28.9"), 1):
        case_id = f"acs_iommu-{number}"
        script = script_of(case_id, version, nodes=1, intra="PCIe", multicast=False, framework="pytorch")
        script.cut("training")
        watchdog(script, script.ranks, sequence=1, numel=1, enqueued=1, completed=0, decisive=True)
        yield LogCase(
            id=case_id,
            cause="acs_iommu",
            script=script,
            side={"host.acs.txt": hosts.lspci_acs(redirects=True)},
            facts=runs(script),
        )
    for number, version in enumerate(("2.12.12", "2.21.5", "2.30.7"), 3):
        case_id = f"acs_iommu-{number}"
        script = script_of(case_id, version, steps=0, subsystems=NET, framework="pytorch")
        script.cut("end")
        rank, peer = script.ranks[1], script.ranks[2]
        completion(script, rank, peer, 4, 6.0)
        echoes(script, [r for r in script.ranks if r is not rank], rank, 6.0)
        side = {f"{rank.host}.acs.txt": hosts.lspci_acs(redirects=True)} if number != 4 else {}
        yield LogCase(
            id=case_id, cause="acs_iommu", also=("ib_error",), script=script, side=side, facts=runs(script)
        )
    script = script_of("acs_iommu-6", "2.14.3", nodes=1, intra="PCIe", multicast=False, framework="")
    script.cut("training")
    side = {
        "host.cmdline.txt": hosts.kernel_command_line("intel_iommu=on"),
        "host.dmesg.txt": hosts.dmesg(
            "[Tue Nov  4 08:16:01 2025] DMAR: DRHD: handling fault status reg 2",
            "[Tue Nov  4 08:16:01 2025] DMAR: [DMA Write NO_PASID] Request device [1b:00.0] fault addr 0x38fff0000000 [fault reason 0x05] PTE Write access is not set",
        ),
    }
    yield LogCase(id="acs_iommu-6", cause="acs_iommu", script=script, side=side, facts=runs(script))
    script = script_of("acs_iommu-7", "2.24.3", framework="")
    side = {
        "allreduce.ncclt.txt": performance_table(script.job, peak_gb_per_s=42.0) + "\n",
        "host.acs.txt": hosts.lspci_acs(redirects=True),
    }
    yield LogCase(
        id="acs_iommu-7",
        cause="acs_iommu",
        verdict="slow",
        script=script,
        side=side,
        facts=runs(script),
        basis="assumed",
    )
    yield from _acs_iommu_near()


def _acs_iommu_near() -> Iterator[LogCase]:
    script = script_of("acs_iommu-near-1", "2.21.5")
    yield healthy_case(
        "acs_iommu-near-1",
        script,
        "acs_iommu",
        side={
            "host.acs.txt": hosts.lspci_acs(redirects=False),
            "host.cmdline.txt": hosts.kernel_command_line("intel_iommu=on iommu=pt"),
        },
    )
    script = script_of(
        "acs_iommu-near-2", "2.27.5", nodes=1, intra="PCIe", multicast=False, framework="pytorch"
    )
    script.cut("end")
    watchdog(script, script.ranks[1:], decisive=True)
    script.print(
        script.ranks[0],
        "training",
        "[rank0]:[E1104 08:26:20.1 ProcessGroupNCCL.cpp:1537] [Rank 0] Received a dump signal due to a collective timeout from rank 1. Last enqueued NCCL work: 411, last completed NCCL work: 411.",
        at_s=641.0,
        decisive=True,
    )
    yield LogCase(
        id="acs_iommu-near-2",
        cause="desync",
        script=script,
        side={"host.acs.txt": hosts.lspci_acs(redirects=False)},
        facts=runs(script),
        near_miss_of="acs_iommu",
    )
