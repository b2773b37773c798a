"""Counters of RDMA ports, from a folder like that of the kernel."""

import pytest

from linkwise.monitor.host_counters import PortsWatch, read_ports


@pytest.fixture
def port(tmp_path):
    folder = tmp_path / "mlx5_0" / "ports" / "1"
    (folder / "counters").mkdir(parents=True)
    (folder / "hw_counters").mkdir()
    (folder / "state").write_text("4: ACTIVE\n")
    for name, value in (
        ("symbol_error", 7),
        ("link_downed", 1),
        ("port_xmit_data", 1000),
        ("port_rcv_data", 0),
    ):
        (folder / "counters" / name).write_text(f"{value}\n")
    (folder / "hw_counters" / "out_of_sequence").write_text("0\n")
    return folder


def test_ports_and_their_counters_are_read(port, tmp_path):
    (found,) = read_ports(tmp_path)
    assert (found.port, found.state) == ("mlx5_0/1", "ACTIVE")
    assert found.values["symbol_error"] == 7
    assert found.values["out_of_sequence"] == 0


def test_old_errors_are_no_growth_and_new_ones_are(port, tmp_path):
    watch = PortsWatch(root=tmp_path)
    assert watch.look(0.0)[0].errors == {}
    (port / "counters" / "symbol_error").write_text("9\n")
    (port / "hw_counters" / "out_of_sequence").write_text("3\n")
    assert watch.look(5.0)[0].errors == {"symbol_error": 2, "out_of_sequence": 3}


def test_data_counters_are_words_of_four_bytes(port, tmp_path):
    watch = PortsWatch(root=tmp_path)
    assert watch.look(0.0)[0].sent_bytes_per_s is None
    (port / "counters" / "port_xmit_data").write_text("6000\n")
    growth = watch.look(2.0)[0]
    assert growth.sent_bytes_per_s == 10_000
    assert growth.received_bytes_per_s == 0


def test_a_counter_that_was_cleared_gives_no_rate(port, tmp_path):
    watch = PortsWatch(root=tmp_path)
    watch.look(0.0)
    (port / "counters" / "port_xmit_data").write_text("10\n")
    assert watch.look(1.0)[0].sent_bytes_per_s is None


def test_a_host_without_such_devices_has_no_port(tmp_path):
    assert PortsWatch(root=tmp_path / "none").look(0.0) == ()


def test_what_cannot_be_read_is_left_out(port, tmp_path):
    (port / "counters" / "symbol_error").write_text("no number\n")
    (port / "state").unlink()
    (found,) = read_ports(tmp_path)
    assert "symbol_error" not in found.values
    assert found.state == ""
