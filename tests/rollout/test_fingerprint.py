"""What was seen of a cluster against what a file is for, and against what was seen before."""

import pytest

from linkwise.rollout.carrying.fingerprint import changed, fingerprint_digest, mismatches


@pytest.mark.parametrize(
    ("wanted", "seen", "fits"),
    [
        (">=2.28,<2.32", "2.30.4", True),
        (">=2.28,<2.32", "2.32.0", False),
        (">=2.28,<2.32", "2.9.1", False),
        ("==2.30", "2.30.0", True),
        ("!=2.30.4", "2.30.4", False),
        (">=6.1", "6.1.0-13-amd64", True),
        (">=2.6", "2.13.0+cpu", True),
        (">550", "550", False),
        ("28.39.1002", "28.39.1002", True),
        ("28.39.1002", "28.39.1003", False),
        (">=2.28", "unknown", False),
    ],
)
def test_a_version_is_held_to_its_bounds(wanted, seen, fits):
    assert bool(mismatches({"nccl": wanted}, {"nccl": seen})) is not fits


@pytest.mark.parametrize(
    ("wanted", "seen", "fits"),
    [
        ("h100-sxm", "NVIDIA H100 80GB HBM3", True),
        ("h100-sxm", "NVIDIA A100-SXM4-80GB", False),
        ("my own", "My Own", True),
    ],
)
def test_a_gpu_is_known_by_its_name_in_the_catalogue_and_by_the_drivers(wanted, seen, fits):
    assert bool(mismatches({"gpu": wanted}, {"gpu": seen})) is not fits


def test_what_was_not_seen_is_no_mismatch():
    assert mismatches({"driver": ">=550"}, {}) == ()


def test_what_changed_is_named_but_for_what_the_change_is_about():
    before, now = (
        {"nccl": "2.28", "driver": "550", "gone": "x"},
        {"nccl": "2.30", "driver": "560", "new": "y"},
    )
    assert changed(before, now) == ("driver was 550 and is 560", "nccl was 2.28 and is 2.30")
    assert changed(before, now, kind="nccl") == ("driver was 550 and is 560",)
    assert changed(before, now, kind="driver") == ("nccl was 2.28 and is 2.30",)


def test_the_digest_of_what_was_seen_hangs_on_no_order():
    assert fingerprint_digest({"a": "1", "b": "2"}) == fingerprint_digest({"b": "2", "a": "1"})
