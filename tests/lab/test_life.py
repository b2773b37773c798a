"""Labs on the kernel: up, down, beside one another, and after kill -9."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linkwise.errors import InputError
from linkwise.lab.folder import HOME
from linkwise.lab.life import Ground, clear_leftovers, lab_in_use, lab_states, take_down, take_up
from linkwise.lab.shell import system_shell
from linkwise.lab.wires import namespaces_of
from tests.lab.test_design import cluster, design_of

pytestmark = pytest.mark.requires("netns")

KILLED = """\
import sys, time
from linkwise.lab.life import Ground, take_up
from linkwise.lab.shell import system_shell
from tests.lab.test_life import design_of, cluster
def stalls(argv, given):
    if argv[0] == "tc":
        print("stalled", flush=True)
        time.sleep(60)
    return system_shell(argv, given)
take_up(design_of(cluster()), name=sys.argv[1], ground=Ground(shell=stalls))
"""


KILLED_JOB = """\
import sys
from linkwise.lab.job import JobRequest, run_job
from tests.lab.test_life import design_of, cluster
request = JobRequest(kind="bench", work={}, python=sys.argv[2])
run_job(request, lab=sys.argv[1], design=design_of(cluster(nodes=2)))
"""


@pytest.fixture
def ground():
    return Ground()


@pytest.fixture
def name(ground):
    name = f"t{os.getpid()}"
    yield name
    if (HOME / name).exists() or namespaces_of(name, ground.namespaces()):
        take_down(name, ground=ground)


def interfaces():
    return system_shell(("ip", "-br", "link"))


def state_of(name, ground):
    return next((each for each in lab_states(ground) if each.name == name), None)


def test_a_lab_comes_up_and_leaves_nothing(ground, name):
    before, design = interfaces(), design_of(cluster("leaf-spine, oversubscription: 2"))
    begin = time.monotonic()
    take_up(design, name=name, ground=ground)
    assert time.monotonic() - begin < 3.0
    assert state_of(name, ground).design == design
    assert len(state_of(name, ground).namespaces) == 5
    assert interfaces() == before
    rates = system_shell(("tc", "-n", f"lw-{name}-sw", "class", "show", "dev", "leaf0up"))
    assert "rate 10Mbit" in rates
    take_down(name, ground=ground)
    assert state_of(name, ground) is None
    assert not (HOME / name).exists()


def test_a_second_lab_of_the_name_is_refused_and_the_first_stays(ground, name):
    take_up(design_of(cluster()), name=name, ground=ground)
    with pytest.raises(InputError, match="is there already"):
        take_up(design_of(cluster(nodes=2)), name=name, ground=ground)
    assert state_of(name, ground).design.nodes == 4


def test_two_jobs_are_not_in_one_lab(ground, name):
    take_up(design_of(cluster(nodes=2)), name=name, ground=ground)
    with lab_in_use(name, ground=ground):
        assert state_of(name, ground).is_busy
        with pytest.raises(InputError, match="another job runs in it"), lab_in_use(name, ground=ground):
            pass


def test_processes_in_a_lab_end_with_it(ground, name):
    take_up(design_of(cluster(nodes=2)), name=name, ground=ground)
    process = subprocess.Popen(["ip", "netns", "exec", f"lw-{name}-n0", "sleep", "60"])
    while not state_of(name, ground).processes:
        time.sleep(0.02)
    assert take_down(name, ground=ground) == 1
    assert process.wait(timeout=5) == -signal.SIGKILL


def test_what_kill_9_left_is_cleared_by_the_next(ground, name, request):
    process = subprocess.Popen([sys.executable, "-c", KILLED, name], stdout=subprocess.PIPE)
    request.addfinalizer(process.kill)
    assert process.stdout.readline() == b"stalled\n"
    assert state_of(name, ground).is_busy
    assert name not in clear_leftovers(ground)
    process.kill()
    process.wait()
    process.stdout.close()
    left = state_of(name, ground)
    assert left.design is None
    assert not left.is_busy
    assert left.namespaces
    clear_leftovers(ground)
    assert state_of(name, ground) is None


def test_what_a_killed_job_left_goes_with_its_lab(ground, name, tmp_path, request):
    take_up(design_of(cluster(nodes=2)), name=name, ground=ground)
    program = tmp_path / "python"
    program.write_text(
        f'#!/bin/sh\necho $$ "$2" > {tmp_path}/told.part\nmv {tmp_path}/told.part {tmp_path}/told\nexec sleep 60\n'
    )
    program.chmod(0o755)
    keeper = subprocess.Popen([sys.executable, "-c", KILLED_JOB, name, str(program)])
    request.addfinalizer(keeper.kill)
    while not (tmp_path / "told").exists():
        assert keeper.poll() is None
        time.sleep(0.02)
    process, plan = (tmp_path / "told").read_text().split()
    keeper.kill()
    keeper.wait()
    with contextlib.suppress(ProcessLookupError):
        os.kill(int(process), signal.SIGKILL)  # a real one ends with its keeper by itself
    assert Path(plan).exists()
    take_down(name, ground=ground)
    assert not Path(plan).exists()
    assert not (HOME / name).exists()


def test_a_command_that_fails_leaves_nothing(ground, name):
    def fails(argv, given=""):
        if argv[0] == "tc":
            raise InputError("no tc")
        return system_shell(argv, given)

    with pytest.raises(InputError, match="no tc"):
        take_up(design_of(cluster()), name=name, ground=Ground(shell=fails))
    assert state_of(name, ground) is None


def test_namespaces_without_a_folder_are_cleared_and_others_stay(ground, name):
    other = f"other-{name}-n0"
    system_shell(("ip", "netns", "add", f"lw-{name}-n0"))
    system_shell(("ip", "netns", "add", other))
    try:
        clear_leftovers(ground)
        assert f"lw-{name}-n0" not in ground.namespaces()
        assert other in ground.namespaces()
    finally:
        system_shell(("ip", "netns", "del", other))
