"""The `calibration/1` document and the cluster it is laid over."""

import datetime as dt
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.cluster import load_cluster
from linkwise.cluster.calibration import (
    FACTORS,
    CalibratedFactor,
    Calibration,
    MeasuredFile,
    calibrated,
    hardware_of,
)
from linkwise.cluster.calibration_document import calibration_text, read_calibration
from linkwise.errors import InputError

DIGEST = "0123456789abcdef"


def calibration(factors=(("nvlink_bandwidth", 0.9),), *, cluster="dgx-h100:2", name="a.log"):
    return Calibration(
        made=dt.date(2026, 11, 30),
        hardware=hardware_of(load_cluster(cluster)),
        constants=DIGEST,
        factors=tuple(
            CalibratedFactor(name=name, value=value, low=value / 1.5, high=value * 1.5)
            for name, value in factors
        ),
        files=(MeasuredFile(name=name, sha256=DIGEST, kind="nccl-tests"),),
    )


def written(tmp_path, text):
    path = tmp_path / "overlay.yaml"
    path.write_text(text)
    return str(path)


@settings(max_examples=20)
@given(
    factors=st.dictionaries(st.sampled_from(sorted(FACTORS)), st.floats(0.05, 20), max_size=8),
    cluster=st.sampled_from(["dgx-h100:2", "dgx-a100:1", "gb200-nvl72:18", "mgx-pcie-l40s-8:1"]),
    name=st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=40),
)
def test_document_that_was_written_is_read_back(tmp_path_factory, factors, cluster, name):
    put = calibration(factors.items(), cluster=cluster, name=name)
    path = tmp_path_factory.mktemp("overlay") / "overlay.yaml"
    path.write_text(calibration_text(put, comments={}), encoding="utf-8")
    back = read_calibration(path, constants=DIGEST)
    assert replace(back, path=None, factors=()) == replace(put, factors=())
    assert [each.name for each in back.factors] == [each.name for each in put.factors]
    for one, other in zip(back.factors, put.factors, strict=True):
        assert one.value == pytest.approx(other.value, rel=1e-4)


def test_calibration_holds_for_more_nodes_of_the_same_kind_and_for_no_others():
    assert (
        calibrated(load_cluster("dgx-h100:64"), calibration()).calibration.factor("nvlink_bandwidth") == 0.9
    )
    assert calibration().factor("network_latency") == 1.0
    with pytest.raises(InputError, match="is of another cluster than dgx-a100:2: gpu h100-sxm, not a100-sxm"):
        calibrated(load_cluster("dgx-a100:2"), calibration())


def test_stale_calibration_is_refused(tmp_path):
    path = written(tmp_path, calibration_text(calibration(), comments={}))
    with pytest.raises(InputError, match=r"is stale: made on 2026-11-30 .* calibrate again on a\.log"):
        read_calibration(path, constants="f" * 16)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("nvlink_bandwidth:", "nvlink_bandwith:", "did you mean nvlink_bandwidth"),
        ("value: 0.9", "value: 90", "90 is not between low and high"),
        ("value: 0.9", "value: fast", "factors.nvlink_bandwidth.value"),
        ("made: 2026-11-30", "made: yesterday", "is not a day"),
        ("calibration/1", "cluster/1", "calibration/1"),
        ("files:", "file:", "files"),
    ],
)
def test_fault_of_a_document_is_named(tmp_path, old, new, words):
    text = calibration_text(calibration(), comments={})
    assert old in text
    with pytest.raises(InputError, match=words):
        read_calibration(written(tmp_path, text.replace(old, new)), constants=DIGEST)
