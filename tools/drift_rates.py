"""False alarms and delays of drift detectors, on recorded and on simulated step times.

    .venv/bin/python tools/drift_rates.py [--trials 300] [--method NAME]... [--by-recording]
    .venv/bin/python tools/drift_rates.py --injected

Recordings are healthy: whatever is told of them is a false alarm. Those named ``-a`` were there when the
settings were chosen, those named ``-b`` were not. Simulated: after 260 to 900 steps of 1 % noise the mean
rises by 3 %; the delay is the steps from there until that is told. Methods of river are tried where it is
installed, with its own settings, on the logarithm of the step time; after an alarm each begins anew.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from linkwise.monitor.drift import DriftKind, DriftRule, DriftWatch
from tests.monitor.recorded import CHOSEN_ON, HELD_OUT, recorded_times

Detector = Callable[[Sequence[float]], list[int]]


def watch(rule: DriftRule, *, only_level: bool = False) -> Detector:
    """Return the detector of `linkwise watch`."""

    def told(times: Sequence[float]) -> list[int]:
        series = DriftWatch(rule=rule)
        found = ((at, series.add(at, float(each))) for at, each in enumerate(times))
        return [
            at
            for at, drift in found
            if drift is not None
            and drift.kind is not DriftKind.RECOVERED
            and (not only_level or drift.kind is DriftKind.LEVEL)
        ]

    return told


def rank_windows(times: Sequence[float]) -> list[int]:
    """Tell by a rank test of the last 40 steps against the 160 before (p below 1e-5) and a margin of 2 %."""
    from scipy.stats import mannwhitneyu

    found: list[int] = []
    start = 0
    for at in range(200, len(times), 5):
        if at - start < 200:
            continue
        window, before = times[at - 40 : at], times[at - 200 : at - 40]
        if median(window) > 1.02 * median(before) and mannwhitneyu(window, before).pvalue < 1e-5:
            found.append(at)
            start = at
    return found


def ewma(times: Sequence[float]) -> list[int]:
    """Tell by an EWMA chart (Roberts 1959): weight 0.2, limits of 3 sigma of the 200 steps before."""
    found: list[int] = []
    start = 0
    while start + 200 < len(times):
        first = np.log(times[start : start + 200])
        limit = 3 * float(first.std()) * math.sqrt(0.2 / 1.8)
        value = 0.0
        for at in range(start + 200, len(times)):
            value = 0.8 * value + 0.2 * (math.log(times[at]) - float(first.mean()))
            if value > limit:
                found.append(at)
                break
        else:
            return found
        start = at + 1
    return found


def of_river(make: Callable[[], Any]) -> Detector:
    """Return a detector of river."""

    def told(times: Sequence[float]) -> list[int]:
        found, detector = [], make()
        for at, each in enumerate(times):
            detector.update(math.log(each))
            if detector.drift_detected:
                found.append(at)
                detector = make()
        return found

    return told


def methods() -> dict[str, Detector]:
    """Return all detectors by name."""
    found: dict[str, Detector] = {
        "linkwise watch": watch(DriftRule()),
        "... without lasting": watch(DriftRule(lasting_s=0.0, lasting_steps=0)),
        "... without noise factors": watch(DriftRule(noise_factor=0.0, lasting_factor=0.0)),
        "rank test of 40 steps": rank_windows,
        "EWMA chart": ewma,
    }
    if importlib.util.find_spec("river") is not None:
        from river.drift import ADWIN, KSWIN, PageHinkley

        found |= {
            "ADWIN (river)": of_river(ADWIN),
            "Page-Hinkley (river)": of_river(PageHinkley),
            "KSWIN (river)": of_river(lambda: KSWIN(seed=1)),
        }
    return found


def false_alarms(detector: Detector, names: Sequence[str]) -> tuple[int, int]:
    """Return alarms and steps of recordings."""
    alarms = steps = 0
    for name in names:
        times, count = recorded_times(name)
        alarms += len(detector(times))
        steps += count
    return alarms, steps


def delays(detector: Detector, trials: int) -> tuple[float, float, float, float]:
    """Return shares seen within 30 steps and told too early, and median and 95th percentile of the delay."""
    source = np.random.default_rng(7)
    found, early = [], 0
    for _ in range(trials):
        begin = int(source.integers(260, 900))
        times = 1 + 0.01 * source.standard_normal(begin + 60)
        times[begin:] *= 1.03
        told = detector(times)
        early += any(at < begin for at in told)
        found.append(next((at - begin + 1 for at in told if at >= begin), math.inf))
    ordered = sorted(found)
    within = sum(each <= 30 for each in found) / trials
    return within, early / trials, ordered[trials // 2], ordered[int(0.95 * trials)]


def injected(detector: Detector, names: Sequence[str], ratio: float) -> tuple[float, float]:
    """Return the share of slowdowns that are told and the median delay, put into recordings at five places.

    Within the 5,000 steps after, or those that are left.
    """
    delays_found = []
    for name in names:
        times = np.array(recorded_times(name)[0])
        for begin in np.linspace(0.25, 0.7, 5) * len(times):
            slowed = times[: int(begin) + 5000].copy()
            slowed[int(begin) :] *= ratio
            told = [at for at in detector(slowed) if at >= int(begin)]
            delays_found.append(told[0] - int(begin) + 1 if told else math.inf)
    seen = [each for each in delays_found if each < math.inf]
    return len(seen) / len(delays_found), median(seen) if seen else math.inf


def print_injected(detector: Detector) -> None:
    """Print what of slowdowns put into recordings is told."""
    print("| recordings | slower by | told | delay, median steps |")
    print("| --- | --- | --- | --- |")
    for group in ("lab", "least-busy", "busy"):
        names = [each for each in (*CHOSEN_ON, *HELD_OUT) if each.startswith(group)]
        for ratio in (1.05, 1.1, 1.3, 2.0, 4.0):
            share, delay = injected(detector, names, ratio)
            print(f"| {group} | {ratio - 1:.0%} | {share:.0%} | {delay:g} |", flush=True)


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--trials", type=int, default=300)
    parser.add_argument("--method", action="append")
    parser.add_argument("--by-recording", action="store_true")
    parser.add_argument("--injected", action="store_true")
    given = parser.parse_args()
    if given.injected:
        print_injected(watch(DriftRule()))
        return
    heads = ("method", "false alarms, chosen on", "held out", "per 10,000 steps", "within 30 steps")
    heads += ("too early", "delay, median", "95 %")
    print(f"| {' | '.join(heads)} |")
    print("| --- " * len(heads) + "|")
    for name, detector in methods().items():
        if given.method and name not in given.method:
            continue
        chosen, held = false_alarms(detector, CHOSEN_ON), false_alarms(detector, HELD_OUT)
        within, early, middle, tail = delays(detector, given.trials)
        rate = 1e4 * held[0] / max(held[1], 1)
        print(
            f"| {name} | {chosen[0]} in {chosen[1]:,} | {held[0]} in {held[1]:,} | {rate:.2f} | {within:.1%} "
            f"| {early:.1%} | {middle:g} | {tail:g} |",
            flush=True,
        )
        if given.by_recording:
            for each in (*CHOSEN_ON, *HELD_OUT):
                alarms, steps = false_alarms(detector, (each,))
                print(f"    {each}: {alarms} in {steps:,}")


if __name__ == "__main__":
    main()
