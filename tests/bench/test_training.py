"""What ranks are told to train, and what is made of their steps."""

import pytest

from linkwise.bench.training import Shape, TrainingPlan, measured_cuts
from linkwise.errors import InputError


def test_parameters_are_those_of_the_modules():
    # hidden 64, 2 layers, vocabulary 128, 32 positions: attention 4 (64 x 64 + 64) = 16,640, MLP 64 x 256 + 256 +
    # 256 x 64 + 64 = 33,088, norms 4 x 64 = 256, twice; embeddings and head 2 x 128 x 64, positions 32 x 64, norm 128.
    shape = Shape(layers=2, hidden=64, heads=4, vocabulary=128, sequence_length=32)
    assert shape.parameters == 2 * (16_640 + 33_088 + 256) + 2 * 8192 + 2048 + 128


@pytest.mark.parametrize(
    ("plan", "ranks", "message"),
    [
        (TrainingPlan(steps=4), 2, "--steps 4"),
        (TrainingPlan(shape=Shape(hidden=100)), 2, "8 heads"),
        (TrainingPlan(), 3, "tensor: 8 heads"),
        (TrainingPlan(cuts=("pipeline",)), 5, "pipeline: 4 layers"),
    ],
)
def test_a_model_that_cannot_be_cut_so_is_refused(plan, ranks, message):
    with pytest.raises(InputError, match=message):
        plan.told(ranks)


def steps(cut, losses):
    for number, loss in enumerate(losses):
        yield {
            "event": "step",
            "cut": cut,
            "step": number,
            "loss": loss,
            "step_time_s": 0.5,
            "phases": {"forward_s": 0.2},
        }


def test_losses_that_differ_by_more_than_one_percent_are_not_the_same_training():
    ddp, close, far = (
        measured_cuts(steps("ddp", losses))[0] for losses in ([5.0, 4.0], [5.04, 4.03], [5.0, 4.05])
    )
    assert not close.differs_from(ddp)
    assert far.differs_from(ddp)


def test_steps_are_kept_with_their_phases():
    (found,) = measured_cuts(steps("fsdp", [5.0] * 6))
    assert (found.cut, found.samples_s, found.phases_s) == ("fsdp", (0.5,) * 6, {"forward": (0.2,) * 6})
    assert found.step_time_s.median == 0.5


@pytest.mark.parametrize(
    "change", [{"cut": "zigzag"}, {"loss": "low"}, {"step_time_s": 0}, {"phases": {"forward_s": -1}}]
)
def test_a_step_that_is_none_is_refused(change):
    (event,) = steps("ddp", [5.0])
    with pytest.raises(InputError, match="a rank said"):
        measured_cuts([{**event, **change}])
