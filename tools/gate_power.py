"""Print how often simulated gates are right: python tools/gate_power.py [--trials N] [--repeats N].

The table of docs/rollout.md. An objective of 95 % is judged on a healthy change and on one that is 8 % worse,
with at most fifteen runs and as many stored ones; each trial is judged look by look by the code that judges
rollouts. Behind each share stands its interval of Clopper and Pearson, 95 %.
"""

from __future__ import annotations

import argparse
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path

from scipy.stats import binomtest

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.rollout.power_cases import CASES, TRIALS, simulated


def _share(count: int, trials: int) -> str:
    low, high = binomtest(count, trials).proportion_ci(0.95, method="exact")
    return f"{100 * count / trials:.2f} % ({100 * low:.2f} to {100 * high:.2f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=TRIALS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    print("| against | runs | change | passes | fails | runs of the candidate |")
    print("| --- | --- | --- | --- | --- | --- |")
    with ProcessPoolExecutor(given.workers) as pool:
        powers = pool.map(partial(simulated, trials=given.trials, repeats=given.repeats), CASES)
        for case, power in zip(CASES, powers, strict=True):
            what = "healthy" if case.truth == 1 else "8 % worse"
            passed, failed = (_share(count, power.trials) for count in (power.passed, power.failed))
            print(f"| {case.against} | {case.words} | {what} | {passed} | {failed} | {power.mean_runs:.1f} |")


if __name__ == "__main__":
    main()
