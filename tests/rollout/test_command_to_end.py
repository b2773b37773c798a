"""Commands of a rollout file, run for real: how they end, and what they leave running."""

import os
import secrets
import signal
import time
from pathlib import Path

import pytest

from linkwise.launch.run.processes import living
from linkwise.rollout.measuring.command_to_end import end_command, run_to_end

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="no /proc")


@pytest.fixture
def mark():
    mark = secrets.token_hex(8)
    yield mark
    end_command(mark)


def run(mark, *argv, **more):
    return run_to_end(argv, environment=os.environ, mark=mark, **more)


def is_empty(mark):
    until_s = time.monotonic() + 10
    while tuple(living(mark)) and time.monotonic() < until_s:
        time.sleep(0.01)
    return not tuple(living(mark))


def test_command_is_run_in_its_folder_and_its_words_and_code_are_kept(tmp_path, mark):
    ended = run(mark, "/bin/sh", "-c", "pwd; echo no such image >&2; exit 3", folder=tmp_path)
    assert (ended.exit_code, ended.output) == (3, f"{tmp_path}\nno such image\n")


def test_the_end_of_much_output_is_kept(mark):
    ended = run(mark, "/bin/sh", "-c", "yes | head -c 1000000; echo last")
    assert len(ended.output) < 300_000
    assert ended.output.endswith("last\n")


def test_what_is_no_program_is_said(tmp_path, mark):
    ended = run(mark, str(tmp_path / "none"))
    assert ended.exit_code == 127
    assert "could not be started: No such file" in ended.output


def test_command_that_takes_too_long_is_ended_with_all_it_started(mark):
    ended = run(mark, "/bin/sh", "-c", "setsid sleep 600 & echo begun; sleep 600", longest_s=0.3)
    assert ended.exit_code == 124
    assert "begun" in ended.output
    assert "was ended after" in ended.output
    assert is_empty(mark)


@pytest.mark.parametrize("code", [0, 2])
def test_a_service_that_a_command_starts_stays_where_the_command_ended_well(code, mark):
    ended = run(mark, "/bin/sh", "-c", f"setsid sleep 600 & exit {code}")
    assert ended.exit_code == code
    if code:
        assert is_empty(mark)
    else:
        assert len(tuple(living(mark))) == 1


def test_nothing_is_left_of_a_command_whose_waiting_is_interrupted(mark):
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    signal.setitimer(signal.ITIMER_REAL, 0.3)
    try:
        with pytest.raises(KeyboardInterrupt):
            run(mark, "sleep", "600")
    finally:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
    assert is_empty(mark)
