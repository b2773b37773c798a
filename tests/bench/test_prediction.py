"""Predictions beside what was measured."""

import pytest

from linkwise.bench.collectives import MeasuredSize
from linkwise.bench.prediction import predict_sizes
from linkwise.cluster import load_cluster
from linkwise.errors import InputError
from linkwise.evidence.comparison import Standing
from linkwise.network.setting import Launch

H100 = load_cluster("dgx-h100:2")


def measured(*samples, size=2**30):
    return MeasuredSize(
        operation="all_reduce", size_bytes=size, calls=1, samples_s=samples, first_s=(), wrong=0
    )


def standing_of(*samples):
    ((found,), _) = predict_sizes(H100, [measured(*samples)], ranks=16, launch=Launch.OWN_THREADS)
    return found


def test_only_a_whole_interval_outside_stands_apart():
    predicted = standing_of(1.0)
    low, high = predicted.low_s, predicted.high_s
    assert low < predicted.time_s < high
    assert predicted.standing is None  # one sample
    assert standing_of(*[high * 1.01] * 5).standing is Standing.ABOVE
    assert standing_of(*[low * 0.99] * 5).standing is Standing.BELOW
    assert standing_of(*[high * 1.01] * 4, high * 0.99).standing is Standing.ACROSS


def test_prediction_is_that_of_the_model_for_who_called():
    by_torch, _ = predict_sizes(H100, [measured(1.0, size=8)], ranks=16, launch=Launch.FRAMEWORK)
    by_threads, _ = predict_sizes(H100, [measured(1.0, size=8)], ranks=16, launch=Launch.OWN_THREADS)
    assert by_torch[0].time_s > by_threads[0].time_s


def test_more_ranks_than_the_cluster_has_are_refused():
    with pytest.raises(InputError, match="more than the 16"):
        predict_sizes(H100, [measured(1.0)], ranks=17, launch=Launch.FRAMEWORK)
