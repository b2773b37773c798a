"""Transceivers and power, worked by hand from the figures of the catalogue."""

import pytest

from linkwise.cluster import FabricKind
from linkwise.cluster.cluster import CableKind
from linkwise.network.clos import wire
from linkwise.network.optics import optics_of, switch_power_w

WIRING = wire(kind=FabricKind.FAT_TREE, nodes=64, nics=8, ports=64)


def test_twin_ports_halve_the_modules_at_switches():
    found = optics_of(WIRING, switch="quantum-2-qm9700", link="infiniband-ndr-400")
    # 512 cables to nodes and 512 to spines: 1,536 ends at switches, 512 at NICs
    assert (found.ends, found.modules) == (2048, 768 + 512)
    assert found.power_w == 768 * 17 + 512 * 9


@pytest.mark.parametrize(
    ("switch", "link", "modules", "power_w"),
    [
        ("quantum-qm8700", "infiniband-hdr-200", 2048, 2048 * 5),
        ("spectrum-4-sn5400", "roce-400", 2048, 2048 * 9),
        ("spectrum-4-sn5600", "roce-400", 1280, 768 * 17 + 512 * 9),
        ("spectrum-4-sn5600", "roce-800", 2048, 2048 * 17),
        ("quantum-x800-q3400", "infiniband-xdr-800", 1280, 768 * 27 + 512 * 13.5),
        ("sb7800-edr", "infiniband-edr-100", 2048, None),
    ],
)
def test_modules_by_link_and_switch(switch, link, modules, power_w):
    found = optics_of(WIRING, switch=switch, link=link)
    assert (found.modules, found.power_w) == (modules, power_w)
    assert found.words.startswith("optics: ")


NDR = {"switch": "quantum-2-qm9700", "link": "infiniband-ndr-400"}


def test_copper_has_no_transceivers_and_draws_next_to_nothing():
    found = optics_of(WIRING, **NDR, node_cables=CableKind.DAC)
    # 512 optical cables to spines: 1,024 ends on 512 twin-port modules; 1,024 ends of copper of 0.1 W.
    assert (found.ends, found.modules) == (2048, 512)
    assert found.power_w == pytest.approx(512 * 17 + 1024 * 0.1)
    assert found.cables == {CableKind.DAC: 512, CableKind.OPTICAL: 512}
    assert "0.1 W at each end of a copper cable" in found.words


def test_active_cables_have_no_transceivers_and_draw_as_much():
    found = optics_of(WIRING, **NDR, node_cables=CableKind.AOC, switch_cables=CableKind.AOC)
    assert (found.modules, found.by_module, found.cables) == (0, {}, {CableKind.AOC: 1024})
    assert found.power_w == optics_of(WIRING, **NDR).power_w


def test_optical_cables_of_200_gigabits_are_sold_as_active_ones():
    found = optics_of(WIRING, switch="quantum-qm8700", link="infiniband-hdr-200")
    assert found.cables == {CableKind.AOC: 1024}


def test_copper_needs_no_transceiver_of_the_catalogue():
    copper = {"node_cables": CableKind.DAC, "switch_cables": CableKind.DAC}
    found = optics_of(WIRING, switch="sb7800-edr", link="infiniband-edr-100", **copper)
    assert found.power_w == pytest.approx(2048 * 0.1)
    assert "no transceiver" not in found.words


def test_power_of_a_switch_is_typical_or_greatest_or_not_known():
    assert switch_power_w("quantum-2-qm9700") == (747, "747 W of a quantum-2-qm9700: typical, without optics")
    assert switch_power_w("quantum-x800-q3400")[0] == 3400
    assert switch_power_w("spectrum-4-sn5400")[0] is None
