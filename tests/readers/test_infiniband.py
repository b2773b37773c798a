"""ibnetdiscover and iblinkinfo, with headers and by lines."""

from pathlib import Path

import pytest

from linkwise.errors import DocumentError
from linkwise.readers.iblinkinfo import is_iblinkinfo, parse_iblinkinfo
from linkwise.readers.ibnetdiscover import is_ibnetdiscover, parse_ibnetdiscover
from linkwise.readers.infiniband_fabric import is_adapter_name

DATA = Path(__file__).parents[1] / "data/imports"
SCAN = """\
switchguid=0xa(a)
Switch\t65 "S-0a"\t\t# "MF0;leaf:MQM9700/U1" enhanced port 0 lid 1 lmc 0
[1]\t"H-0b"[1](b) \t\t# "n1 mlx5_0" lid 2 4xNDR
[2]\t"H-0c"[1](c) \t\t# "n2 mlx5_0" lid 3 4xNDR

Ca\t1 "H-0b"\t\t# "n1 mlx5_0"
[1](b) \t"S-0a"[1]\t\t# lid 2 lmc 0 "MF0;leaf:MQM9700/U1" lid 1 4xNDR

Ca\t1 "H-0c"\t\t# "n2 mlx5_0"
[1](c) \t"S-0a"[2]\t\t# lid 3 lmc 0 "MF0;leaf:MQM9700/U1" lid 1 4xNDR
"""
LINKS = """\
Switch: 0x000000000000000a MF0;leaf:MQM9700/U1:
          1    1[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>       2    1[  ] "n1 mlx5_0" ( )
          1    2[  ] ==( 4X        106.25 Gbps Active/  LinkUp)==>       3    1[  ] "n2 mlx5_0" ( )
          1    3[  ] ==(                Down/ Polling)==>             [  ] "" ( )
"""


def test_fabric_of_ibnetdiscover_has_each_cable_once():
    text = (DATA / "ibnetdiscover-rails.txt").read_text()
    assert is_ibnetdiscover(text)
    assert not is_iblinkinfo(text)
    fabric = parse_ibnetdiscover(text)
    # 32 ports of nodes, a login host, a port inside a switch, 16 up-links.
    assert len(fabric.links) == 32 + 1 + 1 + 16
    assert sum(device.is_switch for device in fabric.devices.values()) == 10
    rates = sorted({link.bytes_per_s for link in fabric.links})
    # 2xNDR and 4xHDR are 200 Gbit/s, 4xNDR 400 Gbit/s.
    assert rates == [25e9, 50e9]


def test_fabric_of_iblinkinfo_has_each_cable_once():
    text = (DATA / "iblinkinfo-leaf-spine.txt").read_text()
    assert is_iblinkinfo(text)
    assert not is_ibnetdiscover(text)
    fabric = parse_iblinkinfo(text)
    assert len(fabric.links) == 6 + 8
    slow = [link for link in fabric.links if link.speed == "EDR"]
    assert [link.remark for link in slow] == ["Could be 53.125 Gbps"]


def test_links_by_lines_tell_adapters_by_their_names():
    fabric = parse_iblinkinfo((DATA / "iblinkinfo-lines.txt").read_text())
    assert sorted((device.name, device.is_switch) for device in fabric.devices.values()) == [
        ("MF0;sw1:MQM9700/U1", True),
        ("gpu0 mlx5_0", False),
        ("gpu0 mlx5_1", False),
        ("gpu1 mlx5_0", False),
        ("gpu1 mlx5_1", False),
    ]
    assert len(fabric.links) == 4


@pytest.mark.parametrize("name", ["n1 mlx5_0", "n1.site HCA-2", "n1 mlx5_bond_0"])
def test_names_of_adapters_are_known(name):
    assert is_adapter_name(name)


@pytest.mark.parametrize("name", ["MF0;leaf:MQM9700/U1", "n1", ""])
def test_other_names_are_not_of_adapters(name):
    assert not is_adapter_name(name)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (SCAN[: SCAN.index('Ca\t1 "H-0c')], "f:4: H-0c is linked to but not listed; the file is cut short"),
        (SCAN.replace("lid 2 4xNDR", "lid 2"), "f:3: port 1 has no rate such as 4xNDR"),
        (SCAN.replace('[1](c) \t"S-0a"[2]', '[1](c) \t"S-0a"[1]'), "f:10: port 1 of 'n2 mlx5_0' has another far end"),
        (SCAN + 'Ca\t1 "H-0b"\t# "n1 mlx5_0"\n', "f:11: the device 'n1 mlx5_0' is listed twice"),
        ('[1]\t"H-0b"[1](b) # "x" lid 2 4xNDR\n' + SCAN, "f:1: a port stands in front of the first device"),
        (SCAN + "what is this\n", "f:11: 'what is this' is no line of ibnetdiscover"),
        ('Switch\t65 "S-0a"\n', "no port has a link"),
    ],
)  # fmt: skip
def test_fault_of_ibnetdiscover_is_told(text, said):
    with pytest.raises(DocumentError) as told:
        parse_ibnetdiscover(text, path="f")
    assert said in str(told.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LINKS.replace("106.25", "99.9"), "f:2: 99.9 Gbps is the rate of no InfiniBand lane"),
        (LINKS.replace("1    2[", "1    1["), "f:3: port 1 of 'MF0;leaf:MQM9700/U1' has another far end"),
        (LINKS + "   1   4[  ] ==( 4X  106.25 Gbps Active/ LinkUp)==>  3", "f:5: '1   4[  ] ==( 4X"),
        (LINKS + "what is this\n", "f:5: 'what is this' is no line of iblinkinfo"),
        (LINKS.splitlines()[3], "no port has a link"),
    ],
)
def test_fault_of_iblinkinfo_is_told(text, said):
    with pytest.raises(DocumentError) as told:
        parse_iblinkinfo(text, path="f")
    assert said in str(told.value)
