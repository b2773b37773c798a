"""Names taken out of texts: every kind, wherever it stands, each by one pseudonym; what a diagnosis needs stays."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.rollout.carrying.redaction import Redactor

NAMES = {
    "host": ["gpu-node-17", "gpu-node-17.hpc.example.org", "login.cluster.local"],
    "address": ["10.0.17.4", "192.168.1.255", "fe80::ba3f:d2ff:fe12:3456", "2001:db8:0:1:1:1:1:1", "2001:db8::1"],
    "mac": ["b8:3f:d2:12:34:56", "b8-3f-d2-12-34-56"],
    "guid": ["0xb83fd20300123456", "b83f:d203:0012:3456"],
    "gpu": ["GPU-5c1f0c35-9b3e-11ee-8c90-0242ac120002"],
    "path": ["/home/mira/train/run.py", "/mnt/lustre/projects/secret-llm", "~/runs/a"],
    "mail": ["mira@example.org"],
    "user": ["mira"],
}  # fmt: skip
AROUND = ("{}", " {} ", "x={}", '"{}"', "({})", "seen {}, then", "[{}]\n", "{}:", "\t{}\t")


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind, names in NAMES.items() for name in names])
def test_a_name_of_each_kind_is_taken_out(kind, name, around):
    redactor = Redactor(known={"host": ["gpu-node-17"], "user": ["mira"]})
    told = redactor.redact(around.format(name))
    assert name not in told
    assert redactor.counts[kind]["places"] >= 1


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("export WANDB_API_KEY=0123456789abcdef", "0123456789abcdef"),
        ('{"hf_token": "hf_abcDEF123"}', "hf_abcDEF123"),
        ("postgresql://ops:hunter2@db.example.org/rollouts", "hunter2"),
        ("Serial Number : 1654023012345", "1654023012345"),
        ("password: hunter2", "hunter2"),
    ],
)
def test_a_secret_is_taken_out(text, secret):
    assert secret not in Redactor().redact(text)


@pytest.mark.parametrize(
    "text",
    [
        "NCCL version 2.30.4+cuda12.8",
        "NCCL_SOCKET_IFNAME=eth0 NCCL_IB_HCA=mlx5_0:1",
        "127.0.0.1 localhost",
        "/dev/shm 64G /usr/lib/libnccl.so.2 /sys/class/infiniband/mlx5_0/ports/1",
        "12:34:56.789 step 3/100: 0.5 s/step",
        "2026-12-01T06:19:25+00:00 busbw 412.1 GB/s 97 %",
        "rank 3 [0] via P2P/CUMEM, Channel 00/24 : 0 1 2 3",
        "https://docs.nvidia.com".replace("docs.nvidia.com", "x"),
    ],
)
def test_what_a_diagnosis_needs_stays(text):
    assert Redactor(known={"user": ["mira"], "host": ["node7"]}).redact(text) == text


def test_one_name_has_one_pseudonym_in_all_texts():
    redactor = Redactor(known={"host": ["node7", "node8"]})
    first = redactor.redact("node7:12:12 [0] NCCL INFO 10.0.0.7")
    second = redactor.redact("NODE7 lost 10.0.0.7; node8 did not")
    assert first == "host-1:12:12 [0] NCCL INFO address-1"
    assert second == "host-1 lost address-1; host-2 did not"
    assert redactor.names == {"host-1": "node7", "address-1": "10.0.0.7", "host-2": "node8"}


def test_the_host_of_a_line_of_nccl_is_found_though_nobody_named_it():
    assert (
        Redactor().redact("weka-h100-3:77:99 [2] NCCL INFO Using network IB").startswith("host-1:77:99 [2]")
    )


def test_a_known_name_in_a_path_of_the_system_is_taken_out():
    assert "mira" not in Redactor(known={"user": ["mira"]}).redact("/etc/ssh/mira.pub")


def test_redacted_json_is_json():
    text = json.dumps({"path": "/home/mira/x", "hosts": ["node7"], "note": 'said "10.1.2.3"'})
    assert json.loads(Redactor(known={"host": ["node7"]}).redact(text))["hosts"] == ["host-1"]


@pytest.mark.parametrize("name", [name for names in NAMES.values() for name in names] + ["m\u00fcller"])
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_no_name_hides_behind_the_escapes_of_json(name, depth):
    text = f"first\n{name}\t{name}\n"
    for _ in range(depth):
        text = json.dumps({"text": text, name: [text]})
    for given_text in (text, f"a log line with {text}", f"{text}\n{text}\n", json.dumps([text], indent=2)):
        told = Redactor(known={"user": ["mira", "m\u00fcller"], "host": ["gpu-node-17"]}).redact(given_text)
        assert name not in told
        assert json.dumps(name)[1:-1] not in told or given_text.startswith("a log")


def test_json_keeps_its_meaning_but_for_names():
    value = {"a": [1, 2.5, None, True, "node7"], "b": {"text": '{"c": "node7"}'}, "node7": 3}
    told = json.loads(Redactor(known={"host": ["node7"]}).redact(json.dumps(value)))
    assert told == {"a": [1, 2.5, None, True, "host-1"], "b": {"text": '{"c": "host-1"}'}, "host-1": 3}


@given(st.text(), st.sampled_from([name for names in NAMES.values() for name in names]), st.text())
def test_no_text_around_a_known_name_hides_it(before, name, after):
    redactor = Redactor(known={"host": [name]})
    told = redactor.redact(f"{before} {name} {after}")
    assert f" {name} " not in told
