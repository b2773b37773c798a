import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linkwise.rollout.measuring.kept_process import find_process, start_process

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc")


def _start(folder: Path, program: str, mark: str = "a1"):
    folder.mkdir(exist_ok=True)
    return start_process([sys.executable, "-c", program], environment=os.environ, folder=folder, mark=mark)


def test_output_and_exit_code_are_files(tmp_path):
    kept = _start(tmp_path / "run", "import sys; print('out'); print('said', file=sys.stderr); sys.exit(3)")
    assert kept.wait() == 3
    assert (tmp_path / "run" / "result.json").read_text() == "out\n"
    assert (tmp_path / "run" / "messages.log").read_text() == "said\n"
    assert not kept.is_running


def test_it_outlives_its_keeper_and_is_found_again(tmp_path):
    folder = tmp_path / "run"
    folder.mkdir()
    program = (
        "import os, sys, pathlib, time\n"
        "from linkwise.rollout.measuring.kept_process import start_process\n"
        "start_process([sys.executable, '-c', 'import time; time.sleep(1.5); print(7)'],\n"
        "              environment=os.environ, folder=pathlib.Path(sys.argv[1]), mark='b2')\n"
        "print('started', flush=True); time.sleep(60)\n"
    )
    keeper = subprocess.Popen([sys.executable, "-c", program, str(folder)], stdout=subprocess.PIPE)
    assert keeper.stdout.readline() == b"started\n"
    keeper.send_signal(signal.SIGKILL)
    keeper.wait()
    keeper.stdout.close()
    found = find_process(folder, "b2")
    assert found is not None
    assert found.wait() == 0
    assert (folder / "result.json").read_text() == "7\n"


def test_stopping_ends_it_with_what_it_started(tmp_path):
    program = (
        "import subprocess, sys, time\n"
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(300)'])\n"
        "print(child.pid, flush=True); time.sleep(300)\n"
    )
    kept = _start(tmp_path / "run", program)
    deadline = time.monotonic() + 20
    while not (text := (tmp_path / "run" / "result.json")).exists() or not text.read_text().endswith("\n"):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    grandchild = int(text.read_text())
    kept.stop()
    assert not kept.is_running
    assert kept.exit_code not in (None, 0)
    while Path(f"/proc/{grandchild}/stat").exists():
        if "Z" in Path(f"/proc/{grandchild}/stat").read_text().rsplit(")")[-1]:
            break
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_killed_it_leaves_no_exit_code(tmp_path):
    kept = _start(tmp_path / "run", "import time; time.sleep(300)")
    while not (tmp_path / "run" / "pid").exists():
        time.sleep(0.02)
    os.killpg(int((tmp_path / "run" / "pid").read_text()), signal.SIGKILL)
    assert kept.wait() is None


def test_nothing_is_found_where_nothing_was_started(tmp_path):
    assert find_process(tmp_path / "none", "c3") is None


def test_another_process_of_its_number_is_not_taken_for_it(tmp_path):
    (tmp_path / "pid").write_text(f"{os.getpid()}\n")
    found = find_process(tmp_path, "d4")
    assert found is not None
    assert not found.is_running
    assert found.wait() is None


def test_what_is_given_is_no_text_of_the_shell(tmp_path):
    folder = tmp_path / "a $(touch pwned) 'b'"
    kept = _start(folder, "print('$HOME')")
    assert kept.wait() == 0
    assert (folder / "result.json").read_text() == "$HOME\n"
    assert not (tmp_path / "pwned").exists()
