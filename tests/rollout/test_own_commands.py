import dataclasses
import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linkwise.launch.run.processes import living
from linkwise.rollout.measuring.measure import RunRequest
from linkwise.rollout.measuring.own_commands import OwnCommands
from linkwise.rollout.plan import (
    Configuration,
    Scope,
    Step,
    Target,
    TargetKind,
    ValidRun,
    Workload,
    WorkloadKind,
)
from linkwise.rollout.runs import RunState, Side

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "tests" / "data" / "rollout" / "results"
TRAINING = Workload(kind=WorkloadKind.TRAINING, cut="ddp", steps=8)

pytestmark = pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="no /proc")


def _request(under: Path, **changes: object) -> RunRequest:
    request = RunRequest(
        run_id="r1",
        step=Step(name="one", target=Target(kind=TargetKind.NODES, amount=1), objectives=("steps",)),
        workload=TRAINING,
        workload_digest="w",
        metrics=("train.step_time", "train.loss"),
        side=Side.CANDIDATE,
        configuration=Configuration(digest="c", job=str(ROOT / "examples" / "lab-ddp.yaml")),
        scope=Scope(cluster=str(ROOT / "examples" / "lab-2x2.yaml"), place="local", device="cpu"),
        valid_run=ValidRun(),
        turn=4,
        is_warmup=False,
        folder=under / "r1",
    )
    return dataclasses.replace(request, **changes)


def _standing_in(folder: Path, program: str) -> OwnCommands:
    """Measure with a program in the place of the command of Linkwise."""
    file = folder / "stand_in.py"
    file.write_text(f"import os, sys, time, pathlib\nRESULTS = pathlib.Path({str(RESULTS)!r})\n{program}")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("NCCL_", "GLOO_"))}
    return OwnCommands(linkwise=(sys.executable, str(file)), inherited=clean)


_GOOD = "print((RESULTS / 'bench_training.json').read_text())"


def test_a_good_run_is_valid_and_has_its_record(tmp_path):
    run = _standing_in(tmp_path, _GOOD).measure(_request(tmp_path))
    assert (run.state, run.reason, run.turn, run.side) == (RunState.VALID, "", 4, Side.CANDIDATE)
    assert set(run.samples) == {"train.step_time", "train.loss"}
    assert run.nodes == ("node-1",)
    assert run.gpu_s > 0
    assert Path(run.record).read_text(encoding="utf-8").startswith("{")


def test_settings_of_the_configuration_reach_a_bench(tmp_path):
    told = "print(os.environ['NCCL_ALGO'], file=sys.stderr); sys.exit(4)"
    configuration = Configuration(settings={"NCCL_ALGO": "Ring"}, digest="c")
    run = _standing_in(tmp_path, told).measure(_request(tmp_path, configuration=configuration))
    assert (run.state, run.reason) == (RunState.FAILED, "exit code 4: Ring")


def test_variables_of_the_shell_that_nobody_planned_are_refused(tmp_path):
    measure = _standing_in(tmp_path, _GOOD)
    measure = dataclasses.replace(measure, inherited={**measure.inherited, "NCCL_IB_DISABLE": "1"})
    run = measure.measure(_request(tmp_path))
    assert run.state is RunState.FAILED
    assert "NCCL_IB_DISABLE in this shell moves data" in run.reason


def test_a_run_with_another_environment_than_planned_does_not_count(tmp_path):
    configuration = Configuration(settings={"OMP_NUM_THREADS": "7"}, digest="c")
    run = _standing_in(tmp_path, _GOOD).measure(_request(tmp_path, configuration=configuration))
    assert run.state is RunState.INVALID
    assert "planned OMP_NUM_THREADS=7, seen 1" in run.reason


def test_a_run_that_is_too_noisy_does_not_count(tmp_path):
    valid_run = ValidRun(most_noise_fraction=1e-6)
    run = _standing_in(tmp_path, _GOOD).measure(_request(tmp_path, valid_run=valid_run))
    assert run.state is RunState.INVALID
    assert "spreads by" in run.reason


def test_the_command_of_the_configuration_runs_first_and_its_failure_ends_the_run(tmp_path):
    mark = tmp_path / "mark"
    into = Configuration(command=(sys.executable, "-c", f"open({str(mark)!r}, 'a').write('x')"), digest="c")
    measure = _standing_in(tmp_path, f"assert os.path.exists({str(mark)!r})\n{_GOOD}")
    assert measure.measure(_request(tmp_path, configuration=into)).state is RunState.VALID
    bad = Configuration(command=(sys.executable, "-c", "raise SystemExit('no such driver')"), digest="c")
    run = measure.measure(_request(tmp_path, configuration=bad, folder=tmp_path / "r2"))
    assert run.state is RunState.FAILED
    assert "no such driver" in run.reason


def test_a_command_of_the_configuration_whose_keeper_was_killed_is_ended(tmp_path):
    into = Configuration(command=("sleep", "600"), digest="c")
    request = _request(tmp_path, configuration=into, run_id=secrets.token_hex(8))
    measure, mark = _standing_in(tmp_path, _GOOD), f"{request.run_id}-configure"
    child = os.fork()
    if child == 0:
        measure.measure(request)
        os._exit(0)
    _until(lambda: len(tuple(living(mark))) == 1)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert len(tuple(living(mark))) == 1
    assert measure.recover(request) is None
    _until(lambda: not tuple(living(mark)))


def _until(is_so):
    until_s = time.monotonic() + 20
    while not is_so():
        assert time.monotonic() < until_s
        time.sleep(0.02)


def test_commands_of_configurations_run_beside_the_file_of_the_rollout(tmp_path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "into.sh").write_text("touch here\n", encoding="utf-8")
    into = Configuration(command=("sh", "into.sh"), digest="c")
    measure = dataclasses.replace(_standing_in(tmp_path, _GOOD), folder=tmp_path / "home")
    assert measure.measure(_request(tmp_path, configuration=into)).state is RunState.VALID
    assert (tmp_path / "home" / "here").exists()


def test_more_nodes_than_there_are_is_said(tmp_path):
    step = Step(name="all", target=Target(kind=TargetKind.NODES, amount=3), objectives=())
    run = _standing_in(tmp_path, _GOOD).measure(_request(tmp_path, step=step))
    assert run.state is RunState.FAILED
    assert "3 nodes are more than the 2 of lab-2x2" in run.reason


def test_half_a_result_is_a_failed_run(tmp_path):
    run = _standing_in(tmp_path, "print((RESULTS / 'bench_training.json').read_text()[:900])").measure(
        _request(tmp_path)
    )
    assert run.state is RunState.FAILED
    assert "cut short" in run.reason


def test_a_run_whose_keeper_was_killed_is_recovered_whole(tmp_path):
    measure = _standing_in(tmp_path, f"time.sleep(1.0); {_GOOD}")
    request = _request(tmp_path)
    child = os.fork()
    if child == 0:
        measure.measure(request)
        os._exit(0)
    while not (request.folder / "pid").exists():
        time.sleep(0.02)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    run = measure.recover(request)
    assert run is not None
    assert run.state is RunState.VALID
    assert run.samples == measure.measure(_request(tmp_path, folder=tmp_path / "again")).samples


def test_a_run_that_was_killed_with_its_keeper_is_cut(tmp_path):
    measure = _standing_in(tmp_path, "time.sleep(60)")
    request = _request(tmp_path)
    request.folder.mkdir()
    subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; open(sys.argv[1], 'w').write('4194303')",
            str(request.folder / "pid"),
        ],
        check=True,
    )
    run = measure.recover(request)
    assert run is not None
    assert run.state is RunState.CUT


def test_nothing_is_recovered_where_nothing_was_started(tmp_path):
    assert _standing_in(tmp_path, _GOOD).recover(_request(tmp_path)) is None


def test_a_job_is_cut_to_its_step_and_to_its_steps(tmp_path):
    work = Workload(kind=WorkloadKind.JOB, steps=8)
    step = Step(name="one", target=Target(kind=TargetKind.GPUS, amount=1), objectives=())
    told = "print(*sys.argv[1:], file=sys.stderr); sys.exit(1)"
    _standing_in(tmp_path, told).measure(_request(tmp_path, workload=work, step=step))
    job = json.loads((tmp_path / "r1" / "job.json").read_text(encoding="utf-8"))
    cluster = json.loads((tmp_path / "r1" / "cluster.json").read_text(encoding="utf-8"))
    assert job["tokens"] == 8 * 64 * 16  # steps of 16 sequences of 64 tokens
    assert Path(job["model"]).is_absolute()
    assert cluster["gpus"] == 1
    said = (tmp_path / "r1" / "messages.log").read_text(encoding="utf-8")
    assert said.startswith(f"launch {tmp_path}/r1/job.json {tmp_path}/r1/cluster.json --device cpu -o")
