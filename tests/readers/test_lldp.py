"""The neighbours that lldpctl lists."""

import json
from pathlib import Path

import pytest

from linkwise.errors import DocumentError
from linkwise.readers.lldp import is_lldp, parse_lldp

DATA = Path(__file__).parents[1] / "data/imports"
SWITCH = {
    "leaf1": {"id": {"type": "mac", "value": "00:11"}, "capability": {"type": "Bridge", "enabled": True}}
}
PORT = {"id": {"type": "ifname", "value": "swp1"}}


def printed(**interfaces):
    return json.dumps({"lldp": {"interface": [{name: each} for name, each in interfaces.items()]}})


def test_interfaces_of_a_node_are_read():
    text = (DATA / "lldp-roce.json").read_text()
    assert is_lldp(text)
    ports = parse_lldp(text)
    # 1000Base is 1 Gbit/s, 400GBase 400 Gbit/s.
    assert [port.bytes_per_s for port in ports] == [0.125e9] + [50e9] * 8
    assert (ports[1].interface, ports[1].neighbour, ports[1].port) == ("eth0", "leaf0", "swp1")


def test_one_interface_alone_and_a_switch_without_name_are_read():
    unnamed = {"id": {"type": "mac", "value": "00:11"}}
    text = json.dumps({"lldp": {"interface": {"eth0": {"chassis": unnamed, "port": PORT}}}})
    (port,) = parse_lldp(text)
    assert (port.neighbour, port.is_switch, port.bytes_per_s) == ("00:11", True, None)


@pytest.mark.parametrize(
    ("medium", "bytes_per_s"),
    [("10GigBaseLR - X fiber", 1.25e9), ("100GBaseCR4", 12.5e9), ("unknown", None), (7, None)],
)
def test_rate_is_that_of_the_medium(medium, bytes_per_s):
    port = {**PORT, "auto-negotiation": {"current": medium}}
    assert parse_lldp(printed(e={"chassis": SWITCH, "port": port}))[0].bytes_per_s == bytes_per_s


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (printed(), "no interface has a neighbour"),
        ('{"lldp": [{"interface": []}]}', "is of lldpctl -f json0; give that of lldpctl -f json"),
        ('{"lldp": {}}', "no interface has a neighbour"),
        (printed(e={"chassis": SWITCH}), "lldp.interface.e: has no neighbour with a name and a port"),
        (printed(e=7), "lldp.interface.e: '7' is no interface"),
        (
            printed(
                e={"chassis": {"n1": {"capability": [{"type": "Station", "enabled": True}]}}, "port": PORT}
            ),
            "no neighbour is a switch; run lldpctl on a node",
        ),
        (printed(e={"chassis": SWITCH, "port": PORT})[:-4], "not valid JSON"),
    ],
)
def test_fault_is_told(text, said):
    with pytest.raises(DocumentError) as told:
        parse_lldp(text)
    assert said in str(told.value)
