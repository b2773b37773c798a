"""The verb lab, as a person calls it."""

import json
import os

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode
from linkwise.lab.life import Ground, find_lab, lab_in_use, lab_states
from tests.lab.test_design import DOCUMENT

LAB = f"c{os.getpid()}"


@pytest.fixture
def document(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(DOCUMENT.format(kind="single-switch", nodes=2, gpus=2, nics=1))
    return str(path)


@pytest.fixture
def lab(document, capsys):
    assert run(["lab", "up", document, "--name", LAB]) == ExitCode.DONE
    yield capsys.readouterr().out
    run(["lab", "down", LAB])


@pytest.mark.parametrize("scale", ["fast", "0", "-3", "nan", "inf"])
def test_a_scale_that_is_none_is_refused(document, capsys, scale):
    assert run(["lab", "up", document, f"--scale={scale}"]) == ExitCode.WRONG_INPUT
    assert "is no factor" in capsys.readouterr().err


@pytest.mark.requires("netns")
def test_up_explains_the_dilation_and_status_lists_the_lab(lab, capsys):
    assert "Dilation 10,000" in lab
    assert "400 Gbit/s" in lab
    assert "40 Mbit/s" in lab
    run(["lab", "status", "--format", "json"])
    shown = json.loads(capsys.readouterr().out)
    own = next(each for each in shown["labs"] if each["name"] == LAB)
    assert (own["state"], own["ranks"], own["dilation"]) == ("up", 4, 10_000.0)


@pytest.mark.requires("netns")
def test_a_size_that_is_none_names_its_option(lab, capsys):
    assert run(["lab", "bench", LAB, "--size", "5"]) == ExitCode.WRONG_INPUT
    assert "--size: '5' has no unit; write a size in bytes as '1 MiB'" in capsys.readouterr().err


@pytest.mark.requires("netns")
def test_a_lab_that_is_not_there_is_named(capsys):
    assert run(["lab", "down", "no-such"]) == ExitCode.WRONG_INPUT
    assert "there is no lab" in capsys.readouterr().err


@pytest.mark.requires("netns")
def test_a_busy_lab_is_taken_down_by_its_name_alone(lab, monkeypatch, capsys):
    ground = Ground()
    # Labs of others may stand on this machine: here the one of this test is the only one.
    monkeypatch.setattr(
        "linkwise.lab.life.find_lab", lambda name, ground: find_lab(name or LAB, ground=ground)
    )
    with lab_in_use(LAB, ground=ground):
        assert run(["lab", "down"]) == ExitCode.WRONG_INPUT
        assert f"linkwise lab down {LAB}" in capsys.readouterr().err
        assert LAB in {state.name for state in lab_states(ground)}
    assert run(["lab", "down"]) == ExitCode.DONE
    assert LAB not in {state.name for state in lab_states(ground)}


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_bench_counts_the_bytes_it_predicts(lab, capsys):
    words = ["lab", "bench", LAB, "--operation", "all_reduce", "--size", "1 MiB", "--repeats", "2"]
    assert run([*words, "--format", "json"]) == ExitCode.DONE
    result = json.loads(capsys.readouterr().out)
    (call,) = result["calls"]
    assert max(tier["worst_fraction"] for tier in call["tiers"]) <= 0.03
    # two nodes of two ranks: 2 x 3/4 of a MiB cross each way
    across = next(tier for tier in call["tiers"] if tier["tier"] == "node to leaf")
    assert across["predicted_bytes"] == pytest.approx(1.5 * 2**20)
    assert 0.8 <= call["measured_s"] / call["predicted_s"] <= 3.0


@pytest.mark.requires("netns")
def test_bench_without_torch_says_so(lab, tmp_path, capsys):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho \"ModuleNotFoundError: No module named 'torch'\" >&2\nexit 1\n")
    python.chmod(0o755)
    assert run(["lab", "bench", LAB, "--python", str(python)]) == ExitCode.NOT_MEASURED
    assert "has no torch" in capsys.readouterr().err
