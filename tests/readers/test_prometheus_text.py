"""Text of Prometheus metrics, and quantiles by its own rule."""

import math

import pytest

from linkwise.errors import InputError
from linkwise.readers.prometheus_text import Histogram, parse_exposition

_TEXT = """\
# HELP ttft_seconds Time to first token.
# TYPE ttft_seconds histogram
ttft_seconds_bucket{le="0.1",model="a"} 10
ttft_seconds_bucket{le="0.2",model="a"} 90
ttft_seconds_bucket{le="+Inf",model="a"} 100
ttft_seconds_sum{model="a"} 15
ttft_seconds_count{model="a"} 100
# TYPE waiting gauge
waiting{model="a"} 3
waiting{model="b"} 4
"""


def test_a_quantile_is_interpolated_in_its_bucket():
    found = parse_exposition(_TEXT, path="x").histogram("ttft_seconds")
    assert found.count == 100
    # The 50th of 100 is the 40th of the 80 between 0.1 and 0.2: halfway.
    assert found.quantile(0.5) == pytest.approx(0.15)
    # The first bucket begins at zero.
    assert found.quantile(0.05) == pytest.approx(0.05)
    # Above the last finite bound it is that bound, as histogram_quantile of Prometheus says.
    assert found.quantile(0.99) == pytest.approx(0.2)


def test_only_what_came_since_counts():
    now = parse_exposition(_TEXT, path="x").histogram("ttft_seconds")
    before = Histogram(counts={0.1: 10.0, 0.2: 10.0, math.inf: 10.0}, total=0.5)
    latest = now.since(before)
    assert latest.counts == {0.1: 0.0, 0.2: 80.0, math.inf: 90.0}
    assert latest.quantile(0.5) == pytest.approx(0.1 + 0.1 * 45 / 80)


def test_a_server_that_began_anew_is_taken_whole():
    now = parse_exposition(_TEXT, path="x").histogram("ttft_seconds")
    assert now.since(Histogram(counts={0.1: 500.0, math.inf: 500.0})) is now


def test_samples_are_summed_over_labels():
    shown = parse_exposition(_TEXT, path="x")
    assert shown.sum("waiting") == 7
    assert shown.sum("absent") is None
    assert shown.histogram("absent") is None


def test_no_observation_has_no_quantile():
    assert Histogram(counts={0.1: 0.0, math.inf: 0.0}).quantile(0.5) is None


def test_open_metrics_are_read_too():
    text = "# TYPE a_requests counter\na_requests_total 3.0\n# EOF\n"
    assert parse_exposition(text, path="x").sum("a_requests_total") == 3


@pytest.mark.parametrize("text", ["<html><body>404</body></html>", "", "# only a comment\n", "a b c d\n"])
def test_what_is_no_such_text_is_refused_with_its_address(text):
    with pytest.raises(InputError, match=r"http://there"):
        parse_exposition(text, path="http://there")
