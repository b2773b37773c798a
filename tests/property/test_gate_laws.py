"""What holds for every gate, whatever was measured."""

import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.rollout.gates.judging import judge_step, worst_of
from linkwise.rollout.plan import Against, Severity
from linkwise.rollout.runs import RunState, Side
from linkwise.rollout.verdicts import Outcome
from tests.rollout.making import TODAY, at_least, bad_run, objective, rollout, run, turns

BASELINE = [run(100 + place, 100.0 + place, side=Side.PROMOTED) for place in range(7)]
BARS = st.sampled_from([
    (at_least(0.95),), (at_least(95.0, Against.FLOOR),), (at_least(0.95, Against.BASELINE),),
    (at_least(0.9, Against.PREDICTION), at_least(0.95)),
])  # fmt: skip
VALUES = st.one_of(st.floats(80, 120), st.sampled_from([float("nan"), float("inf"), 0.0]))
GOODNESS = (Outcome.FAIL, Outcome.ERROR, Outcome.NO_DATA, Outcome.INCONCLUSIVE, Outcome.PASS)
BAD = st.sampled_from([RunState.INVALID, RunState.FAILED, RunState.CUT])


@st.composite
def values(draw, least):
    """Return pairs of candidate and control: alike, so that passes and fails are common, or anything."""
    count = draw(st.integers(least, 15))
    if draw(st.booleans()):
        return [(draw(VALUES), draw(VALUES)) for _ in range(count)]
    first, then = draw(
        st.sampled_from([(85.0, 85.0), (95.6, 80.0), (80.0, 95.6), (100.0, 100.0), (95.0, 97.0)])
    )
    change = draw(st.integers(0, count))
    noise = st.floats(-0.3, 0.3)
    return [
        ((first if place < change else then) + draw(noise), 100.0 + draw(noise)) for place in range(count)
    ]


@st.composite
def steps(draw, least=0):
    """Return a plan of one objective and runs in turns, some of them bad."""
    plan = rollout(
        objective(*draw(BARS)), repeats=draw(st.integers(5, 7)), most_repeats=draw(st.integers(7, 15))
    )
    pairs = draw(values(least))
    runs = turns(
        [one for one, _ in pairs], [other for _, other in pairs], predictions={"collective.busbw": 100.0}
    )
    if draw(st.booleans()):
        for turn in draw(st.sets(st.integers(0, max(0, len(runs) - 1)), max_size=3)) if runs else ():
            runs[turn] = bad_run(turn, draw(BAD), side=runs[turn].side)
    return plan, runs


def some_of(runs):
    """Return which runs go: those of a stretch, or any."""
    places = st.integers(0, len(runs) - 1)
    stretch = st.tuples(places, places).map(lambda ends: set(range(min(ends), max(ends) + 1)))
    return st.one_of(stretch, st.sets(places, min_size=1))


def said(plan, runs, **more):
    return judge_step(plan, plan.steps[0], runs, baseline=BASELINE, today=TODAY, **more).outcome


def is_better(one, other):
    return GOODNESS.index(one) > GOODNESS.index(other)


@given(steps(), BAD)
def test_no_data_never_passes(step, state):
    plan, runs = step
    none = [replace(each, samples={}) for each in runs]
    bad = [replace(each, state=state) for each in runs]
    warm = [replace(each, is_warmup=True) for each in runs]
    few = [each for each in runs if each.turn < 8]
    for each in ([], none, bad, warm, few):
        assert said(plan, each) is not Outcome.PASS


@settings(max_examples=500)
@given(steps(least=5), st.data())
def test_dropping_runs_never_turns_a_fail_into_a_pass(step, data):
    plan, runs = step
    whole = said(plan, runs)
    dropped = data.draw(some_of(runs))
    left = [each for place, each in enumerate(runs) if place not in dropped]
    started = [each.run_id for each in runs]
    assert said(plan, left, started=started) is Outcome.ERROR
    if whole is Outcome.FAIL and {each.turn for each in left} != set(range(len(left))):
        assert said(plan, left) is not Outcome.PASS


@settings(max_examples=500)
@given(steps(least=5), st.data())
def test_emptying_runs_never_turns_a_fail_into_a_pass(step, data):
    plan, runs = step
    emptied = data.draw(some_of(runs))
    left = [replace(each, samples={}) if place in emptied else each for place, each in enumerate(runs)]
    if said(plan, runs) is Outcome.FAIL:
        assert said(plan, left) is not Outcome.PASS


@settings(max_examples=500)
@given(steps(least=5), BAD, st.sampled_from([Side.CANDIDATE, Side.CONTROL]))
def test_adding_an_invalid_run_never_improves_a_verdict(step, state, side):
    plan, runs = step
    more = [*runs, bad_run(len(runs), state, side=side, run_id="more")]
    assert not is_better(said(plan, more), said(plan, runs))


@given(steps(), st.randoms(use_true_random=False))
def test_order_of_runs_and_of_objectives_does_not_matter(step, order: random.Random):
    plan, runs = step
    others = (
        replace(plan.objectives[0], name="second", comparisons=(at_least(99.0, Against.FLOOR),)),
        replace(plan.objectives[0], name="third", severity=Severity.WATCH),
        replace(plan.objectives[0], name="fourth", severity=Severity.SHOULD),
        replace(
            plan.objectives[0],
            name="fifth",
            severity=Severity.WATCH,
            comparisons=(at_least(105.0, Against.FLOOR),),
        ),
    )
    objectives = [plan.objectives[0], *others]
    mixed, shuffled = list(objectives), list(runs)
    order.shuffle(mixed)
    order.shuffle(shuffled)

    def judged(objectives, runs):
        names = tuple(each.name for each in objectives)
        changed = replace(
            plan, objectives=tuple(objectives), steps=(replace(plan.steps[0], objectives=names),)
        )
        verdict = judge_step(changed, changed.steps[0], runs, baseline=BASELINE, today=TODAY)
        return verdict.outcome, {
            each.objective: (each.outcome, each.low, each.high, each.judged) for each in verdict.objectives
        }

    assert judged(objectives, runs) == judged(mixed, shuffled)


@given(st.lists(st.sampled_from(list(Outcome)), min_size=1))
def test_worst_of_outcomes_is_none_better(outcomes):
    assert not any(is_better(worst_of(outcomes), each) for each in outcomes)


@settings(max_examples=200)
@given(steps(least=5), st.integers(0, 14), st.floats(0.5, 1.0))
def test_worse_runs_never_improve_a_verdict(step, place, factor):
    plan, runs = step
    candidates = [each for each in runs if each.side is Side.CANDIDATE and each.state is RunState.VALID]
    if not candidates:
        return
    chosen = candidates[place % len(candidates)]
    worse = replace(
        chosen,
        samples={"collective.busbw": tuple(factor * each for each in chosen.samples["collective.busbw"])},
    )
    left = [worse if each is chosen else each for each in runs]
    assert not is_better(said(plan, left), said(plan, runs))
