"""Steps of a launched job, in the words of every program, as its output grows."""

import itertools
import random
from pathlib import Path

import pytest

from linkwise.launch.run.steps import StepLog

LOGS = Path(__file__).parents[2] / "data" / "training_logs"
LINES = {
    b"[default0]:step 7 loss 5.9289 time 0.0319 s tokens/s 8024\n": (7, 0.0319),
    b" iteration       10/     100 | consumed samples:  10 | elapsed time per iteration (ms): 250.5 | x\n": (
        10,
        0.2505,
    ),
    b"step:  3  loss:  8.1  memory: 1.0GiB(1%)  tps: 2,000  tflops: 1.0\n": (3, 0.5),
    b"[x] epoch=0/micro_step=8/global_step=4, RunningAvgSamplesPerSec=1.0, CurrSamplesPerSec=16.0, MemAllocated=1GB\n": (
        4,
        0.5,
    ),
    b"\rEpoch 0:   1%| | 2/100 [00:01<10:00, 4.4s/it, global_step=1.0, train_step_timing in s=4.417]\r": (
        1,
        4.417,
    ),
}


def log_of(path):
    log = StepLog(path, tokens_per_step_per_gpu=1000, sequences_per_step=8)
    log.look()
    return log


@pytest.mark.parametrize("line", LINES)
def test_step_is_read_from_a_line(line, tmp_path):
    (tmp_path / "output.log").write_bytes(line)
    log = log_of(tmp_path)
    assert log.read() == 1
    assert [(each.number, each.time_s) for each in log.steps.values()] == [LINES[line]]


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.log")), ids=lambda path: path.stem)
def test_log_of_every_framework_is_read_as_it_grows_whatever_the_cuts(path, tmp_path):
    data, cuts = path.read_bytes(), random.Random(path.stem)
    log = StepLog(tmp_path, tokens_per_step_per_gpu=128 * 8192 / 32, sequences_per_step=128)
    (tmp_path / "output.log").touch()
    log.look()
    at = 0
    while at < len(data):
        upto = at + cuts.randrange(1, 400)
        with (tmp_path / "output.log").open("ab") as file:
            file.write(data[at:upto])
        log.read()
        at = upto
    with (tmp_path / "output.log").open("ab") as file:
        file.write(b"\n")
    log.read()
    assert len(log.steps) == 12
    assert all(each.time_s == pytest.approx(4.4, rel=0.04) for each in list(log.steps.values())[1:])


@pytest.mark.parametrize("path", sorted(LOGS.glob("*.log")), ids=lambda path: path.stem)
def test_ranks_that_break_into_one_anothers_lines_give_no_wrong_time(path, tmp_path):
    text, cuts = path.read_text(), random.Random(path.stem)
    words = text.replace("\r", "\n").split("\n")
    broken = []
    for one, other in itertools.pairwise(words):
        at, upto = cuts.randrange(len(one) + 1), cuts.randrange(len(other) + 1)
        broken += [one[:at] + other[:upto], one[at:] + other[upto:]]
    (tmp_path / "output.log").write_text("\n".join(broken) + "\n")
    log = StepLog(tmp_path, tokens_per_step_per_gpu=128 * 8192 / 32, sequences_per_step=128)
    log.look()
    log.read()
    # A first step is three times as long where single steps are printed; a figure cut short would be far off.
    for each in log.steps.values():
        assert each.time_s == pytest.approx(4.4, rel=0.04) or each.time_s == pytest.approx(13.2, rel=0.04)


def test_two_steps_in_one_line_are_both_read(tmp_path):
    (tmp_path / "output.log").write_bytes(b"".join(line.strip() for line in list(LINES)[:1]) + b"[rank1]:step 8 loss 1 "
                                          b"time 0.5 s tokens/s 1\n")  # fmt: skip
    log = log_of(tmp_path)
    log.read()
    assert sorted(log.steps) == [7, 8]


def test_words_that_are_no_step_are_passed_over(tmp_path):
    text = b"step size 0.1\niteration of thoughts\nstep 3 loss nan time 0.0 s tokens/s 1\nstep: 4 loss: 1 tps: 0\n"
    (tmp_path / "output.log").write_bytes(text)
    log = log_of(tmp_path)
    assert log.read() == 0
    assert log.steps == {}


def test_program_that_prints_in_two_ways_is_read_by_one(tmp_path):
    both = (
        "epoch=0/micro_step=3/global_step=3, RunningAvgSamplesPerSec=7.8, CurrSamplesPerSec=8.0, x\n"
        " samples/sec: 7.799 | iteration       3/   100 | elapsed time per iteration (ms): 4103.1 | lm_loss: 1.1 |\n"
    )
    (tmp_path / "output.log").write_text(both)
    log = log_of(tmp_path)
    log.read()
    assert [each.time_s for each in log.steps.values()] == [pytest.approx(4.1031)]


def test_step_log_reads_what_was_added_whatever_the_cut(tmp_path):
    line = next(iter(LINES))
    log = StepLog(tmp_path, 1.0)
    (tmp_path / "output.log").write_bytes(line[:20])
    log.look()
    assert log.read() == 0
    (tmp_path / "output.log").write_bytes(line * 2)
    assert log.read() == 1
    rank = tmp_path / "logs-7" / "node-1" / "x" / "3"
    rank.mkdir(parents=True)
    (rank / "stderr.log").write_bytes(line.replace(b"step 7", b"step 8") + b"x" * 10_000)
    log.look()
    assert log.read() == 1
    assert sorted(log.steps) == [7, 8]
