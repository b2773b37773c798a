"""A real Slurm in a lab: up, down, mended, and after kill -9."""

import os
import signal
import subprocess
import sys
import time

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode, InputError
from linkwise.lab.life import Ground, clear_leftovers, lab_in_use, lab_states, take_down, take_up
from linkwise.lab.slurm import slurm_down, slurm_state, slurm_up
from tests.lab.slurm_labs import SlurmLab, comm, is_bridge_there, left_of
from tests.lab.test_design import cluster, design_of

pytestmark = [pytest.mark.requires("netns"), pytest.mark.requires("slurm"), pytest.mark.slow]
NAME = f"sl{os.getpid()}"
STALLED = """\
import sys, time
from linkwise.lab.life import Ground
from linkwise.lab.shell import system_shell
from linkwise.lab.slurm import slurm_up
def stalls(argv, given=""):
    said = system_shell(argv, given)
    if "slurmd" in argv:
        print("stalled", flush=True)
        time.sleep(60)
    return said
slurm_up(sys.argv[1], ground=Ground(shell=stalls))
"""


@pytest.fixture
def lab():
    ground, design = Ground(), design_of(cluster(nodes=2))
    take_up(design, name=NAME, ground=ground)
    yield SlurmLab(NAME, design, ground)
    if any(each.name == NAME for each in lab_states(ground)):
        take_down(NAME, ground=ground)
    assert left_of(NAME) == []


def wait_until(is_so, what):
    for _ in range(200):
        if is_so():
            return
        time.sleep(0.05)
    pytest.fail(f"it was never so that {what}")


def test_slurm_comes_up_runs_jobs_and_leaves_the_lab_as_it_was(lab):
    begin = time.monotonic()
    state = slurm_up(NAME, ground=lab.ground)
    assert time.monotonic() - begin < 5.0
    assert [(each.name, each.state) for each in state.nodes] == [("n0", "idle"), ("n1", "idle")]
    said = lab.says("srun", "-N2", "--gpus-per-node=2", "sh", "-c", "echo $(hostname) $CUDA_VISIBLE_DEVICES")
    assert sorted(said.splitlines()) == ["n0 0,1", "n1 0,1"]
    assert lab.says("srun", "-w", "n1", "printenv", "SLURM_TOPOLOGY_ADDR") == "leaf0.n1"
    assert lab.says("srun", "-w", "n1", "getent", "hosts", "n0").split() == ["198.18.0.1", "n0"]
    assert lab.says("hostname") == "head"
    slurm_down(NAME, ground=lab.ground)
    assert not slurm_state(NAME, ground=lab.ground).is_up
    assert not is_bridge_there(NAME)
    after = next(each for each in lab_states(lab.ground) if each.name == NAME)
    assert (after.design, after.processes) == (lab.design, 0)


def test_lab_goes_down_with_its_slurm_and_its_jobs_and_is_not_used_beside_one(lab, capsys):
    slurm_up(NAME, ground=lab.ground)
    job = subprocess.Popen(lab.words("srun", "-N2", "sleep", "300"), stderr=subprocess.DEVNULL)
    wait_until(lambda: lab.processes("sleep", 1), "the job runs")
    with pytest.raises(InputError, match="its Slurm runs a job"), lab_in_use(NAME, ground=lab.ground):
        pass
    assert run(["lab", "slurm", "status", NAME]) == ExitCode.DONE
    assert "n0 n1 mixed; 1 job running, 0 waiting" in " ".join(capsys.readouterr().out.split())
    take_down(NAME, ground=lab.ground)
    job.wait(timeout=20)


def test_what_kill_9_left_is_cleared_by_the_next_lab_up(lab, request):
    process = subprocess.Popen([sys.executable, "-c", STALLED, NAME], stdout=subprocess.PIPE)
    request.addfinalizer(process.kill)
    assert process.stdout.readline() == b"stalled\n"
    clear_leftovers(lab.ground)
    assert lab.processes("slurmd", 0)  # who works on it is alive
    process.kill()
    process.wait()
    process.stdout.close()
    assert not slurm_state(NAME, ground=lab.ground).is_up
    clear_leftovers(lab.ground)
    assert not lab.home.exists()
    assert not lab.processes("slurmd", 0)
    assert next(each for each in lab_states(lab.ground) if each.name == NAME).design == lab.design


def test_slurm_that_does_not_start_says_why_and_leaves_nothing(lab):
    def breaks(argv, given=""):
        if "slurmctld" in argv:
            with (lab.home / "slurm.conf").open("a") as file:
                file.write("SchedulerType=sched/nonsense\n")
        return lab.ground.shell(argv, given)

    with pytest.raises(InputError, match="slurmctld"):
        slurm_up(NAME, ground=Ground(shell=breaks))
    assert not lab.home.exists()
    assert not is_bridge_there(NAME)


def test_daemon_that_died_is_told_and_started_again(lab, capsys):
    slurm_up(NAME, ground=lab.ground)
    (pid,) = lab.processes("slurmd", 1)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: comm(pid) != "slurmd", "slurmd is gone")
    assert run(["lab", "slurm", "status", NAME]) == ExitCode.AGAINST
    assert "slurmd of n1 not running" in " ".join(capsys.readouterr().out.split())
    assert run(["lab", "slurm", "up", NAME, "--format", "json"]) == ExitCode.DONE
    assert '"missing": []' in capsys.readouterr().out


def test_wrong_use_is_told(lab, capsys, monkeypatch):
    for words, said in (
        (["shell", "--name", NAME, "sinfo"], f"'linkwise lab slurm up {NAME}' starts one"),
        (["down", NAME], "has no Slurm"),
        (["status", "other"], "there is no lab 'other'"),
    ):
        assert run(["lab", "slurm", *words]) == ExitCode.WRONG_INPUT
        assert said in capsys.readouterr().err
    monkeypatch.setattr("shutil.which", lambda name, **_: None if name == "slurmd" else f"/bin/{name}")
    assert run(["lab", "slurm", "up", NAME]) == ExitCode.WRONG_INPUT
    assert "needs slurmd, not found here; install Slurm" in " ".join(capsys.readouterr().err.split())
