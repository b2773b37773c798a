"""The table of messages holds together, and says what each release prints."""

import pytest

from tests.job_logs.formats import default_subsystems, find, table
from tests.job_logs.releases import RELEASES, release

# Texts as they stand in the source at the release tags of github.com/NVIDIA/nccl, or in threads of its issue tracker.
PUBLISHED = [
    ("2.4.8", "bootstrap", "Bootstrap : Using [0]eth0:10.0.0.1<0>"),
    ("2.23.4", "bootstrap", "Bootstrap : Using eth0:10.0.0.1<0>"),
    ("2.24.3", "bootstrap", "Bootstrap: Using eth0:10.0.0.1<0>"),
    ("2.12.12", "no_plugin", "NET/Plugin : No plugin found (libnccl-net.so), using internal implementation"),
    ("2.25.1", "no_plugin", "NET/Plugin: Could not find: libnccl-net.so. Using internal network plugin."),
    ("2.27.5", "no_plugin", "NET/Plugin: Could not find: libnccl-net.so. Using internal net plugin."),
    ("2.28.9", "no_plugin", "NET/Plugin: Could not find: libnccl-net.so"),
    ("2.12.12", "shm_extend", "Error: failed to extend /dev/shm/nccl-a to 9 bytes"),
    (
        "2.28.9",
        "shm_extend",
        "Error: failed to extend /dev/shm/nccl-a to 9 bytes, error: No space left on device (28)",
    ),
    ("2.18.3", "closed_by_peer", "socketProgress: Connection closed by remote peer 10.0.0.2<4>"),
    ("2.14.3", "closed_by_peer", "Net : Connection closed by remote peer 10.0.0.2<4>"),
    ("2.22.3", "system_call", "Call to bind failed : No space left on device"),
    ("2.23.4", "system_call", "Call to bind failed: No space left on device"),
    (
        "2.23.4",
        "version_mismatch",
        "Mismatched NCCL version detected : rank 1 version 22304 rank 0 version 22403",
    ),
    ("2.21.5", "no_algorithm", "Error : no algorithm/protocol available"),
    ("2.18.3", "cu", "Cuda failure 'No space left on device'"),
    ("2.19.3", "cu", "Cuda failure 28 'No space left on device'"),
]
FIELDS = {
    "interface": "eth0", "address": "10.0.0.1", "path": "/dev/shm/nccl-a", "bytes": 9, "reason": "No space left on device",
    "errno": 28, "code": 28, "peer": "10.0.0.2<4>", "call": "bind", "a": 1, "a_code": 22304, "b": 0, "b_code": 22403,
}  # fmt: skip


@pytest.mark.parametrize(("version", "name", "text"), PUBLISHED)
def test_message_when_release_is_given(version, name, text):
    assert find(name, release(version)).text.format(**FIELDS) == text


def test_table_has_one_text_for_a_name_in_a_release():
    ranges = {}
    for message in table():
        assert message.first <= message.last
        for other in ranges.get(message.name, ()):
            assert message.last < other.first or other.last < message.first, message.name
        ranges.setdefault(message.name, []).append(message)


def test_message_is_absent_when_a_release_has_none():
    assert find("driver", release("2.12.12")) is None
    assert find("version_mismatch", release("2.22.3")) is None
    assert find("nvls_off", release("2.29.3")) is None


def test_every_message_serves_a_release():
    versions = [known.version for known in RELEASES.values()]
    unused = [m.name for m in table() if not any(m.first <= version <= m.last for version in versions)]
    assert unused == []


def test_code_of_a_release_is_that_of_nccl_get_version():
    assert release("2.7.8").code == 2708
    assert release("2.27.5").code == 22705


def test_default_subsystems_when_the_mask_grew():
    assert default_subsystems(release("2.14.3")) == {"INIT"}
    assert default_subsystems(release("2.18.3")) == {"INIT", "ENV"}
    assert default_subsystems(release("2.23.4")) == {"INIT", "ENV", "BOOTSTRAP"}
