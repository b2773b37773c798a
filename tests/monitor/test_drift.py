"""Drift told from noise: simulated series, and healthy step times that were recorded."""

import math

import numpy as np
import pytest

from linkwise.monitor.drift import FALSE_ALARMS, DriftKind, DriftRule, DriftWatch
from tests.monitor.recorded import HELD_OUT, alarms_in, drifts_in, recorded_times

RULE = DriftRule()


def _noise(seed, count, *, level_s=1.0, spread=0.01):
    return level_s * (1 + spread * np.random.default_rng(seed).standard_normal(count))


def _delays(trials, *, seed, level_s=1.0, correlation=0.0, earliest=260, latest=900):
    """Return the steps from a rise of 3 % until it is told, in series of 1 % noise; inf where it is not."""
    source = np.random.default_rng(seed)
    for _ in range(trials):
        before = int(source.integers(earliest, latest))
        noise = source.standard_normal(before + 60)
        for at in range(1, len(noise)):
            noise[at] = correlation * noise[at - 1] + math.sqrt(1 - correlation**2) * noise[at]
        times = level_s * (1 + 0.01 * noise)
        times[before:] *= 1.03
        told = [each for each in drifts_in(times) if each.kind is DriftKind.LEVEL]
        early = [each for each in told if each.step < before]
        assert not early
        yield told[0].step - before + 1 if told else math.inf


@pytest.mark.parametrize("level_s", [0.02, 1.0, 30.0])
def test_three_percent_in_one_percent_of_noise_is_told_within_thirty_steps(level_s):
    delays = np.array(list(_delays(60, seed=1, level_s=level_s)))
    assert np.mean(delays <= 30) >= 0.95


def test_most_rises_soon_after_the_start_are_told_as_quickly():
    delays = np.array(list(_delays(60, seed=3, earliest=130, latest=260)))
    assert np.mean(delays <= 30) >= 0.75


@pytest.mark.full
def test_delays_of_two_thousand_series_are_as_the_page_says():
    delays = np.array(list(_delays(2000, seed=2)))
    assert np.mean(delays <= 30) >= 0.98
    assert np.median(delays) <= 24


@pytest.mark.full
def test_no_series_of_plain_noise_is_told_in_a_million_steps():
    told = sum(len(drifts_in(_noise(seed, 10_000))) for seed in range(100))
    assert told <= 2


def test_false_alarms_on_the_recordings_held_out_are_as_published():
    steps = alarms = 0
    for name in HELD_OUT:
        times, told_steps = recorded_times(name)
        steps += told_steps
        alarms += alarms_in(drifts_in(times))
    assert (alarms, steps) == (FALSE_ALARMS.alarms, FALSE_ALARMS.steps)
    assert FALSE_ALARMS.per_10_000_steps <= 1


def test_the_published_rate_rests_on_twenty_thousand_steps():
    assert FALSE_ALARMS.steps >= 20_000
    assert FALSE_ALARMS.per_10_000_steps <= 1


def test_one_recording_of_a_busy_machine_raises_no_alarm():
    times, _ = recorded_times(HELD_OUT[0])
    assert alarms_in(drifts_in(times[:4000])) <= 1


def test_nothing_is_told_before_there_are_steps_enough():
    watch = DriftWatch()
    assert all(watch.add(at, 1.0 if at < 100 else 9.0) is None for at in range(RULE.least_steps - 1))
    assert not watch.is_ready


def test_a_single_slow_step_is_no_drift():
    times = _noise(3, 2000)
    times[::50] *= 5
    assert drifts_in(times) == []


def test_a_burst_of_other_load_is_no_drift_and_one_that_lasts_is():
    source = np.random.default_rng(4)
    for length_s, is_told in ((60, False), (160, True)):
        times = _noise(5, 900, level_s=0.5)
        end = 500 + int(length_s / 0.8)
        times[500:end] = 0.8 * np.exp(0.3 * source.standard_normal(end - 500))
        told = [each for each in drifts_in(times) if each.kind in {DriftKind.LEVEL, DriftKind.SPREAD}]
        assert bool(told) is is_told
        assert all(not each.is_steady for each in told)


def test_a_large_change_is_told_though_the_job_scatters_anyway():
    source = np.random.default_rng(14)
    usual = np.exp(0.1 * source.standard_normal(3000)) * np.repeat(
        np.exp(0.2 * source.standard_normal(125)), 24
    )
    assert alarms_in(drifts_in(usual)) == 0
    usual[1500:] *= 2
    (first, *_) = drifts_in(usual)
    assert first.kind is DriftKind.LEVEL
    assert 1500 < first.step < 1800
    assert not first.is_steady


def test_a_spread_that_grows_is_told_once_it_lasted():
    times = np.concatenate([_noise(6, 600), _noise(7, 400, spread=0.04)])
    told = drifts_in(times)
    assert [each.kind for each in told] == [DriftKind.SPREAD]
    assert 600 + RULE.lasting_s <= told[0].step <= 800
    assert told[0].after == pytest.approx(0.04, rel=0.4)


def test_a_level_that_creeps_is_found_against_the_first_steps():
    times = _noise(8, 6000) * np.linspace(1, 1.12, 6000)
    told = drifts_in(times)
    assert DriftKind.CREEP in {each.kind for each in told}
    assert alarms_in(told) <= 3


def test_a_level_that_comes_back_is_told_as_over():
    times = _noise(9, 1500)
    times[600:900] *= 1.1
    told = drifts_in(times)
    assert [each.kind for each in told] == [DriftKind.LEVEL, DriftKind.RECOVERED]
    assert told[0].ratio == pytest.approx(1.1, rel=0.02)
    assert 900 < told[1].step < 970


def test_a_level_that_falls_is_no_alarm():
    times = _noise(10, 1500)
    times[700:] *= 0.8
    assert drifts_in(times) == []


def test_only_ratios_matter_where_a_change_is_steady():
    times = _noise(11, 900)
    times[500:] *= 1.03
    told = [[each.step for each in drifts_in(times * scale)] for scale in (0.01, 1.0, 100.0)]
    assert told[0] == told[1] == told[2]


def test_a_job_whose_level_wanders_needs_a_larger_change():
    alarms = 0
    for seed in range(10):
        source = np.random.default_rng(seed)
        wander = np.repeat(np.exp(0.05 * source.standard_normal(100)), 24)
        alarms += alarms_in(drifts_in(wander * _noise(seed, len(wander))))
    # 24,000 steps
    assert alarms <= 2
