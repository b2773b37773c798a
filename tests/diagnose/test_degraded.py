"""Counters and states of links that tools on the hosts print, and what rules make of them."""

import pytest

from linkwise.readers.job_log.reading import parse_job_log

_GPUS = [f"GPU {index}: NVIDIA H100 80GB HBM3 (UUID: GPU-{index}aaa-bbbb)" for index in range(4)]


def _nvlinks(*inactive):
    """Return `nvidia-smi nvlink -s` with so many inactive links on each GPU."""
    lines = []
    for head, count in zip(_GPUS, inactive, strict=True):
        lines.append(head)
        lines += [f"\t Link {link}: {'<inactive>' if link < count else '26.562 GB/s'}" for link in range(18)]
    return "\n".join(lines) + "\n"


def _lspci(*downgraded):
    lines = ["15:00.0 PCI bridge: Broadcom / LSI PEX890xx PCIe Gen 5 Switch (rev b0)"]
    lines.append("\t\tLnkSta:\tSpeed 16GT/s, Width x8 (downgraded)")
    for number, is_narrow in enumerate(downgraded):
        lines.append(f"{number + 1}8:00.0 3D controller: NVIDIA Corporation GH100 [H100 SXM5 80GB] (rev a1)")
        width = "x8 (downgraded)" if is_narrow else "x16"
        lines.append(f"\t\tLnkSta:\tSpeed 2.5GT/s (downgraded), Width {width}")
    return "\n".join(lines) + "\n"


def test_a_gpu_with_fewer_nvlinks_than_its_peers_is_named(job, doctor):
    found = doctor(job().healthy(), **{"nvlink.txt": _nvlinks(0, 0, 2, 0)})
    (finding,) = found.findings
    assert (finding.cause, finding.severity, finding.where) == ("gpu_hw", "slow", ("GPU 2",))
    assert [each.line for each in finding.evidence] == [39, 40, 41]


@pytest.mark.parametrize("inactive", [(0, 0, 0, 0), (18, 18, 18, 18), (2, 2, 0, 0)])
def test_gpus_that_are_alike_or_split_evenly_say_nothing(inactive, job, causes):
    assert causes(job().healthy(), **{"nvlink.txt": _nvlinks(*inactive)}) == []


def test_a_list_of_gpus_before_the_links_says_nothing(job, causes):
    assert causes(job().healthy(), **{"gpus.txt": "\n".join(_GPUS) + "\n" + _nvlinks(18, 18, 18, 18)}) == []


def test_a_gpu_with_fewer_lanes_than_its_peers_is_named(job, doctor):
    (finding,) = doctor(job().healthy(), **{"lspci.txt": _lspci(False, True, False)}).findings
    assert (finding.cause, finding.where) == ("gpu_hw", ("GPU at PCI 28:00.0",))


@pytest.mark.parametrize("downgraded", [(True, True, True), (False, False, False), (True,)])
def test_lanes_of_bridges_and_of_all_gpus_alike_say_nothing(downgraded, job, causes):
    assert causes(job().healthy(), **{"lspci.txt": _lspci(*downgraded)}) == []


_UNANSWERED = (
    "NET/IB : Got completion from peer 10.0.0.2<4711> with status=12 opcode=0 len=0 vendor err 129 (Send)"
)
_DOWNS = [
    "     link_down_events_phy: 3\n",
    "LinkDownedCounter:...............3\n",
    "/sys/class/infiniband/mlx5_0/ports/1/counters/link_downed: 3\n",
]


@pytest.mark.parametrize("line", _DOWNS)
def test_a_port_that_went_down_is_a_second_reading_of_an_unanswered_transfer(line, job, causes):
    failed = job().healthy().fault(0, _UNANSWERED, source="transport/net_ib.cc")
    assert "link_flap" not in {cause for cause, _, _ in causes(failed)}
    assert ("link_flap", "broken", "low") in causes(failed, **{"counters.txt": line})
    assert causes(job().healthy(), **{"counters.txt": line}) == []
    assert causes(failed, **{"counters.txt": line.replace("3", "0")}) == causes(failed)


@pytest.mark.parametrize(
    "line",
    [
        "     rx_discards_phy: 8123\n",
        "     rx_prio3_discards: 12\n",
        "     tx_pause_storm_error_events: 2\n",
        "SymbolErrorCounter:..............17\n",
        "PortXmitDiscards:................9\n",
        "link mlx5_0/1 rx_write_requests 5 out_of_sequence 0 local_ack_timeout_err 41 rnr_nak_retry_err 0\n",
        "/sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error: 17\n",
    ],
)
def test_losses_that_a_port_counts_stand_behind_an_error(line, job, doctor):
    failed = job().healthy().fault(0, _UNANSWERED, source="transport/net_ib.cc")
    first = doctor(failed, **{"counters.txt": line}).findings[0]
    assert first.cause == "ib_error"
    assert first.evidence[-1].text.strip() == line.strip()
    assert doctor(job().healthy(), **{"counters.txt": line}).findings == ()


def test_priorities_without_flow_control_stand_behind_an_error_on_roce(job, doctor):
    none = "PFC configuration:\n\tpriority    0   1   2   3   4   5   6   7\n\tenabled     {}\n"
    off = none.format("   ".join("00000000"))
    failed = job(link="RoCE").healthy().fault(0, _UNANSWERED, source="transport/net_ib.cc")
    found = {each.cause: each for each in doctor(failed, **{"mlnx_qos.txt": off}).findings}
    assert found["ib_error"].evidence[-1].text.split() == ["enabled", *"00000000"]
    on = {
        each.cause: each
        for each in doctor(failed, **{"mlnx_qos.txt": none.format("   ".join("00010000"))}).findings
    }
    assert on["ib_error"].evidence[-1].file == "job.log"


def test_a_port_that_ibstatus_calls_disabled_is_a_port_that_is_down():
    log = parse_job_log([("ibstatus", b"\tstate:\t\t 1: DOWN\n\tphys state:\t 3: Disabled\n")])
    assert log.sightings["port_down"][0].fields["state"] == "Disabled"
