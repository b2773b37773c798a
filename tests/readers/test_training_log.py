"""Steps of training logs, two releases of each framework."""

import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linkwise.errors import InputError
from linkwise.readers.training_log import is_training_log, parse_training_log, steps_of_lines

LOGS = Path(__file__).parent.parent / "data" / "training_logs"
STEP_S = 4.4
"""Of the logs, within a few percent."""
BATCH, TOKENS, GPUS = 128, 128 * 8192, 32


def read(name):
    return (LOGS / f"{name}.log").read_bytes().decode()


def seconds(step):
    if step.time_s is not None:
        return step.time_s
    if step.samples_per_s is not None:
        return BATCH / step.samples_per_s
    return TOKENS / step.tokens_per_s_per_gpu / GPUS


@pytest.mark.parametrize(
    ("name", "framework"),
    [
        ("megatron-2021", "megatron"),
        ("megatron-2025", "megatron"),
        ("nemo-1", "nemo"),
        ("nemo-2", "nemo"),
        ("torchtitan-2024", "torchtitan"),
        ("torchtitan-2026", "torchtitan"),
        ("deepspeed-2021", "deepspeed"),
        ("deepspeed-2025", "deepspeed"),
    ],
)
def test_log_gives_every_step_once(name, framework):
    text = read(name)
    log = parse_training_log(text)
    assert is_training_log(text)
    assert log.framework == framework
    assert len({step.number for step in log.steps}) == len(log.steps) == 12
    assert all(seconds(step) == pytest.approx(STEP_S, rel=0.04) for step in log.steps[1:])


def test_megatron_names_batch_and_the_slowest_rank_of_timers():
    step = parse_training_log(read("megatron-2025")).steps[0]
    assert step.global_batch == 128
    assert set(step.phases_s) == {"forward-backward", "all-grads-sync", "optimizer"}
    line = "    forward-backward ....: (1000.00, 1250.50)"
    told = parse_training_log(
        f" iteration 1/ 10 | elapsed time per iteration (ms): 1300.5 | global batch size: 8 |\n{line}"
    )
    assert told.steps[0].time_s == pytest.approx(1.3005)
    assert told.steps[0].phases_s == {"forward-backward": 1.2505}


def test_deepspeed_takes_the_current_rate_and_leaves_micro_batches_out():
    step = parse_training_log(read("deepspeed-2021")).steps[0]
    assert set(step.phases_s) == {"forward", "backward", "backward_inner", "backward_allreduce", "step"}
    line = "epoch=0/micro_step=8/global_step=1, RunningAvgSamplesPerSec=1.0, CurrSamplesPerSec=2.5, MemAllocated=1GB"
    assert parse_training_log(line).steps[0].samples_per_s == 2.5


def test_gpt_neox_prints_both_and_the_time_of_megatron_counts():
    text = (
        "[timer.py:215:stop] epoch=0/micro_step=34/global_step=34, RunningAvgSamplesPerSec=7.8, CurrSamplesPerSec=8.0,\n"
        " samples/sec: 7.799 | iteration       34/   10000 | elapsed time per iteration (ms): 4103.1 | lm_loss: 1.1 |\n"
    )
    log = parse_training_log(text)
    assert (log.framework, log.steps[0].time_s) == ("megatron", pytest.approx(4.1031))


def test_log_without_steps_says_what_is_looked_for():
    with pytest.raises(
        InputError, match=r"train\.log: has no step of Megatron-LM, NeMo, torchtitan or DeepSpeed"
    ):
        parse_training_log("epoch 1 done\n", path="train.log")
    assert not is_training_log("epoch 1 done\n")


@settings(max_examples=40)
@given(st.data())
def test_any_cut_or_change_of_a_log_is_read_or_refused(data):
    text = read(data.draw(st.sampled_from(sorted(path.stem for path in LOGS.glob("*.log")))))
    low = data.draw(st.integers(0, len(text)))
    noise = data.draw(st.text(max_size=30))
    changed = text[:low] + noise + text[low + data.draw(st.integers(0, 400)) :]
    try:
        log = parse_training_log(changed)
    except InputError:
        return
    assert all(seconds(step) > 0 for step in log.steps)


@given(st.text(max_size=400))
def test_any_text_is_refused_or_read(text):
    try:
        parse_training_log(
            f"step: 1 loss: 1 tps: {text}\nelapsed time per iteration (ms): {text} | iteration 1/2 |"
        )
    except InputError:
        return


@pytest.mark.parametrize(
    ("line", "loss"),
    [
        ("step 3 loss 5.7431 time 0.1 s tokens/s 10", 5.7431),
        ("step 3 loss nan time 0.1 s tokens/s 10", math.nan),
        (" iteration       30/     100 | elapsed time per iteration (ms): 12.5 | lm loss: 1.05E+01 | grad norm: 1.2 |", 10.5),
        (" iteration       30/     100 | elapsed time per iteration (ms): 12.5 | lm loss: 1.05", None),  # cut short
        ("step: 10  loss:  7.1234  memory: 1.0GiB(1%)  tps: 1,000  tflops: 1.0  mfu: 1.0%", 7.1234),
        ("Training epoch 0, iteration 1/9 | lr: 1e-6 | global_batch_size: 8 | global_step: 1 | reduced_train_loss: 10.5 | train_step_timing in s: 2.5", 10.5),
    ],
)  # fmt: skip
def test_loss_is_as_printed_where_what_is_behind_it_is_there_too(line, loss):
    (_, step), = steps_of_lines(line.encode())  # fmt: skip
    assert step.loss == pytest.approx(loss, nan_ok=True) if loss is not None else step.loss is None
