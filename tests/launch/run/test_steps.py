"""Steps in the words of programs."""

import pytest

from linkwise.launch.run.steps import StepLog, steps_in

LINES = {
    b"[default0]:step 7 loss 5.9289 time 0.0319 s tokens/s 8024\n": (7, 0.0319),
    b" iteration       10/     100 | consumed samples:  10 | elapsed time per iteration (ms): 250.5 | x\n": (
        10,
        0.2505,
    ),
    b"step:  3  loss:  8.1  memory: 1.0GiB(1%)  tps: 2,000  tflops: 1.0\n": (3, 0.5),
}


@pytest.mark.parametrize("line", LINES)
def test_step_is_read_from_a_line(line):
    assert [(each.number, each.time_s) for each in steps_in(line, tokens_per_step_per_gpu=1000)] == [
        LINES[line]
    ]


def test_words_that_are_no_step_are_passed_over():
    text = b"step size 0.1\niteration of thoughts\nstep 3 loss nan time 0.0 s tokens/s 1\n"
    assert list(steps_in(text, tokens_per_step_per_gpu=1)) == []


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
    (rank / "stdout.log").write_bytes(line.replace(b"step 7", b"step 8") + b"x" * 10_000)
    log.look()
    assert log.read() == 1
    assert sorted(log.steps) == [7, 8]
