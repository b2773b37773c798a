"""Measured times laid over the model."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.network.collective_time import collective_times
from linkwise.network.measured_collective import measured_collective, override_times
from linkwise.readers.nccl_tests import parse_nccl_tests

LOGS = Path(__file__).parents[1] / "data" / "nccl_tests"


def read(name):
    return parse_nccl_tests((LOGS / name).read_text(encoding="utf-8"), path=name)


@pytest.fixture(scope="module")
def measured():
    return measured_collective("all_reduce", load_cluster("dgx-h100:2"), read("all-reduce-2n.txt"))


def test_sizes_of_the_log_have_its_times(measured):
    found = override_times(measured, measured.size_bytes)
    assert found.times.time_s == pytest.approx(measured.time_s)
    # 1 GiB: 4512.86 us out of place, 4606.05 us in place.
    place = measured.size_bytes.tolist().index(2.0**30)
    assert (found.low_s[place], found.times.time_s[place]) == pytest.approx((4512.86e-6,) * 2)
    assert found.high_s[place] == pytest.approx(4606.05e-6)
    assert set(found.basis) == {"measured"}


def test_sizes_outside_are_scaled_by_the_nearest(measured):
    sizes = np.array([4.0, 2.0**34])
    found = override_times(measured, sizes)
    model = collective_times("all_reduce", measured.setting, np.array([4.0, 8.0, 2.0**33, 2.0**34])).time_s
    assert found.times.time_s[0] == pytest.approx(model[0] * measured.time_s[0] / model[1])
    assert found.times.time_s[1] == pytest.approx(model[3] * measured.time_s[-1] / model[2])
    assert found.basis == ("scaled", "scaled")


@given(power=st.floats(3.0, 33.0))
def test_between_sizes_the_ratio_lies_between_theirs(measured, power):
    size = np.array([2.0**power])
    found = override_times(measured, size)
    model = collective_times("all_reduce", measured.setting, measured.size_bytes).time_s
    ratios = measured.time_s / model
    after = int(np.searchsorted(measured.size_bytes, size[0]))
    around = ratios[max(after - 1, 0) : after + 1]
    ratio = found.times.time_s[0] / collective_times("all_reduce", measured.setting, size).time_s[0]
    assert min(around) * 0.999999 <= ratio <= max(around) * 1.000001
    assert found.low_s[0] <= found.times.time_s[0] * 1.000001 <= found.high_s[0] * 1.000002


def test_runs_that_do_not_fit_are_refused():
    run = read("all-reduce-2n.txt")
    for operation, cluster, asked, says in (
        ("all_gather", "dgx-h100:2", {}, "the log is of all_reduce_perf"),
        ("all_reduce", "dgx-h100:4", {"gpus": 32}, "the log has 16 GPUs"),
        ("all_reduce", "gh200-4:4", {}, "16 GPUs on 2 hosts"),
    ):
        with pytest.raises(InputError, match=says):
            measured_collective(operation, load_cluster(cluster), run, **asked)
    wrong = replace(run, rows=(replace(run.rows[0], wrong=3.0), *run.rows[1:]))
    with pytest.raises(InputError, match="wrong results"):
        measured_collective("all_reduce", load_cluster("dgx-h100:2"), wrong)
