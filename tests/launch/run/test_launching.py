"""Jobs that end in every way, on a place that runs scripts of the shell."""

import datetime as dt
import json
import subprocess
import threading
import time
from dataclasses import replace

import pytest

from linkwise.errors import InputError
from linkwise.launch.run import launching
from linkwise.launch.run.ending import Outcome
from linkwise.launch.run.launch_folder import LaunchFolder
from linkwise.launch.run.launch_place import LocalLaunch, Phase, SlurmLaunch, State
from linkwise.launch.run.launch_record import LaunchRecord, Prediction
from linkwise.launch.run.launching import Follow, LaunchPatience, Watched, begin, follow
from linkwise.launch.run.processes import living
from linkwise.launch.run.proof import Expected
from linkwise.report.launch_result import launch_json, launch_result, read_launch

SEEN = json.dumps([{"rank": 0, "ranks": 1, "host": "n0", "settings": {"CUDA_VISIBLE_DEVICES": ""}}])
STARTED = f"mkdir -p seen; echo '{SEEN}' > seen/ranks-0.json\n"
STEPS = "for n in 1 2 3 4 5 6 7 8; do echo step $n loss 1.0 time 0.$n s tokens/s 1; done\n"


class Blind:
    def turn(self):
        pass

    def finish(self):
        return Watched(diagnosis=None)


def record_of(steps=None):
    return LaunchRecord(
        run_id="0123456789abcdef",
        name="job",
        place="local",
        handle="",
        argv=("bash", "start.sh"),
        plan_digest="0" * 64,
        expected=Expected(
            nodes=1,
            ranks_per_node=1,
            hosts=(),
            device="cpu",
            settings={"CUDA_VISIBLE_DEVICES": ""},
            protocol="",
            has_nvlink=False,
        ),
        prediction=Prediction(
            step_time_s=0.25, step_time_low_s=0.2, step_time_high_s=0.3, tokens_per_step=100, steps=steps
        ),
        started=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    )


def to_of(folder, place=None, *, start_s=30.0, queue_s=30.0, **more):
    place = place or LocalLaunch(script="start.sh", grace_s=0.5)
    patience = LaunchPatience(queue_s=queue_s, start_s=start_s)
    return Follow(
        folder=folder,
        place=place,
        patience=patience,
        watch=lambda _: Blind(),
        publish=launch_json,
        wait=lambda _: time.sleep(0.02),
        **more,
    )


@pytest.fixture(autouse=True)
def _quick(monkeypatch):
    monkeypatch.setattr(launching, "LOOK_S", 0.05)


def played(path, script, *, steps=None, **more):
    """Return the record of a script that was run to its end, as it was written."""
    path.mkdir(exist_ok=True)
    (path / "start.sh").write_text(script)
    with LaunchFolder(path) as folder:
        to = to_of(folder, **more)
        given = follow(begin(record_of(steps), {"PATH": "/usr/bin:/bin"}, to), to)
    assert read_launch(path) == given
    assert list(living(given.run_id)) == []
    return given


def test_run_that_ends_well_is_valid_and_has_a_median(tmp_path):
    result = launch_result(played(tmp_path, STARTED + STEPS, steps=8))
    assert (result.outcome, result.valid, result.exit_code) == (Outcome.DONE, True, 0)
    # Steps 3 to 8 take 0.3 to 0.8 s: their median is 0.55 s, against 0.25 s.
    assert result.step_time.median_s == pytest.approx(0.55)
    assert result.step_time.over_predicted == pytest.approx(2.2)


def test_invalid_run_keeps_its_samples_and_has_no_median(tmp_path):
    result = launch_result(played(tmp_path, STARTED.replace("CUDA_", "NCCL_IB_DISABLE_") + STEPS, steps=8))
    assert (result.outcome, result.valid, result.step_time) == (Outcome.DONE, False, None)
    assert len(result.samples) == 8


def test_exit_code_and_last_words_are_kept(tmp_path):
    ending = played(tmp_path, STARTED + "echo no such tensor; exit 7").ending
    assert (ending.outcome, ending.exit_code) == (Outcome.FAILED, 7)
    assert "no such tensor" in ending.reason


def test_words_of_the_rank_that_failed_first_are_told(tmp_path):
    script = STARTED + (
        "mkdir -p logs/node-0/x/attempt_0/2; echo 'ValueError: wrong' > logs/node-0/x/attempt_0/2/stderr.log\n"
        "printf 'Root Cause (first observed failure):\\n[0]:\\n  rank      : 2 (local_rank: 2)\\n'; exit 1"
    )
    assert "ValueError: wrong" in played(tmp_path, script).ending.reason


def test_output_that_ends_in_the_middle_is_cut(tmp_path):
    ending = played(tmp_path, STARTED + STEPS, steps=9).ending
    assert ending.outcome is Outcome.CUT
    assert "ends at step 8 of 9" in ending.reason


def test_job_whose_keeper_is_killed_is_cut_and_stopped(tmp_path):
    ending = played(tmp_path, STARTED + "kill -9 $PPID; sleep 60 & wait").ending
    assert ending.outcome is Outcome.CUT


def test_job_that_never_starts_is_stopped(tmp_path):
    ending = played(tmp_path, "trap '' TERM; sleep 60 & wait; sleep 60", start_s=0.2).ending
    assert ending.outcome is Outcome.NOT_STARTED
    assert "0 of 1 ranks had started; the job was stopped" in ending.reason


def test_full_disk_stops_the_job(tmp_path, monkeypatch):
    monkeypatch.setattr(LaunchFolder, "free_bytes", lambda _: 1_000_000)
    ending = played(tmp_path, STARTED + "sleep 60").ending
    assert ending.outcome is Outcome.FAILED
    assert "is full (1 MB free); the job was stopped" in ending.reason


def test_refusal_of_a_node_is_the_reason(tmp_path):
    ending = played(tmp_path, "mkdir seen; echo '[\"n1: no GPU\"]' > seen/refused-1.json; exit 3").ending
    assert (ending.outcome, ending.reason) == (Outcome.NOT_STARTED, "n1: no GPU")


def test_job_that_goes_on_after_a_refusal_is_stopped(tmp_path, monkeypatch):
    monkeypatch.setattr(launching, "REFUSED_S", 0.2)
    script = "mkdir seen; echo '[\"n1: no GPU\"]' > seen/refused-1.json; sleep 60"
    ending = played(tmp_path, script).ending
    assert (ending.outcome, ending.reason) == (Outcome.NOT_STARTED, "n1: no GPU; the job was stopped")


def test_interrupt_stops_and_records(tmp_path):
    def interrupt(_):
        raise KeyboardInterrupt

    (tmp_path / "start.sh").write_text(STARTED + "sleep 60")
    with LaunchFolder(tmp_path) as folder:
        to = replace(to_of(folder), wait=interrupt)
        started = begin(record_of(), {"PATH": "/usr/bin:/bin"}, to)
        with pytest.raises(KeyboardInterrupt):
            follow(started, to)
    assert read_launch(tmp_path).ending.outcome is Outcome.INTERRUPTED
    assert list(living(started.run_id)) == []


def test_lost_launcher_is_replaced_and_only_one_follows(tmp_path):
    (tmp_path / "start.sh").write_text(STARTED + STEPS + "sleep 0.5")
    with LaunchFolder(tmp_path) as folder:
        begin(record_of(8), {"PATH": "/usr/bin:/bin"}, to_of(folder))
        with pytest.raises(InputError, match="another launcher follows this run"):
            LaunchFolder(tmp_path)
    with LaunchFolder(tmp_path) as folder:
        result = follow(read_launch(tmp_path), to_of(folder))
    assert result.ending.outcome is Outcome.DONE
    assert result.is_valid


@pytest.mark.parametrize("text", ["", "{}", "[", '{"schema": "linkwise.launch/1", "id": "../x"}', "\x00"])
def test_damaged_record_is_refused(tmp_path, text):
    (tmp_path / "record.json").write_text(text)
    with pytest.raises(InputError, match="is no record of a launch"):
        read_launch(tmp_path)


class Slurm:
    """Slurm as its commands speak, one answer of scontrol after the other."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.said = []

    def __call__(self, words, cwd, environment):  # noqa: ARG002 (as a shell has them)
        self.said.append(words[0])
        if words[0] == "sbatch":
            return subprocess.CompletedProcess(words, 0, "42;cluster\n", "")
        if words[:3] == ("scontrol", "show", "hostnames"):
            return subprocess.CompletedProcess(words, 0, "n0\nn1\n", "")
        if words[0] == "scontrol":
            return subprocess.CompletedProcess(words, 0, self.answers.pop(0), "")
        self.answers = ["JobState=CANCELLED Reason=None ExitCode=0:15 NodeList=n0"]
        return subprocess.CompletedProcess(words, 0, "", "")


def test_slurm_job_that_stays_in_the_queue_is_cancelled(tmp_path):
    shell = Slurm(*["JobId=42 JobState=PENDING Reason=Resources ExitCode=0:0 NodeList="] * 99)
    place = SlurmLaunch(script="job.sbatch", shell=shell)
    with LaunchFolder(tmp_path) as folder:
        to = to_of(folder, place, queue_s=0.1)
        ended = follow(begin(record_of(), {}, to), to)
    assert ended.handle == "42"
    assert ended.ending.reason == "it was queued for 0 s (Resources); the job was stopped"
    assert "scancel" in shell.said


@pytest.mark.parametrize(
    ("answer", "state"),
    [
        (
            "JobState=RUNNING Reason=None ExitCode=0:0 NodeList=n[0-1]",
            (Phase.RUNNING, 0 or None, ("n0", "n1")),
        ),
        ("JobState=COMPLETED Reason=None ExitCode=0:0 NodeList=n[0-1]", (Phase.ENDED, 0, ("n0", "n1"))),
        ("JobState=FAILED Reason=NonZeroExitCode ExitCode=7:0 NodeList=(null)", (Phase.ENDED, 7, ())),
        ("JobState=NODE_FAIL Reason=None ExitCode=0:9 NodeList=n0", (Phase.ENDED, -9, ("n0", "n1"))),
    ],
)
def test_states_of_slurm_are_understood(tmp_path, answer, state):
    found = SlurmLaunch(script="job.sbatch", shell=Slurm(answer)).state(tmp_path, "42", run_id="x")
    assert isinstance(found, State)
    assert (found.phase, found.exit_code, found.hosts) == state


def test_node_that_slurm_lost_is_a_failure_though_the_code_is_zero(tmp_path):
    lost = "JobState=NODE_FAIL Reason=None ExitCode=0:0 NodeList=n[0-1]"

    def shell(words, cwd, environment):
        if words[0] == "sinfo":
            return subprocess.CompletedProcess(words, 0, "n0 idle\nn1 down*\n", "")
        return Slurm(lost)(words, cwd, environment)

    with LaunchFolder(tmp_path) as folder:
        to = to_of(folder, SlurmLaunch(script="job.sbatch", shell=shell))
        ending = follow(begin(record_of(), {}, to), to).ending
    assert (ending.outcome, ending.exit_code) == (Outcome.FAILED, None)
    assert ending.reason == "Slurm ended it: NODE_FAIL, n1 is down*"


def test_nodes_that_said_nothing_are_named_when_ranks_do_not_start(tmp_path):
    shell = Slurm(*["JobState=RUNNING Reason=None ExitCode=0:0 NodeList=n[0-1]"] * 99)
    (tmp_path / "seen").mkdir()
    (tmp_path / "seen" / "node-0.json").write_text('{"host": "n0"}')
    with LaunchFolder(tmp_path) as folder:
        to = to_of(folder, SlurmLaunch(script="job.sbatch", shell=shell), start_s=0.1)
        ending = follow(begin(record_of(), {}, to), to).ending
    assert ending.reason.endswith("0 of 1 ranks had started; nothing was heard of n1; the job was stopped")


def test_whoever_listens_hears_of_a_job_in_the_queue(tmp_path):
    shell = Slurm(*["JobId=42 JobState=PENDING Reason=Resources ExitCode=0:0 NodeList="] * 99)
    told = []

    def tell(state, handle):
        told.append((state.reason, handle))

    with LaunchFolder(tmp_path) as folder:
        to = to_of(folder, SlurmLaunch(script="job.sbatch", shell=shell), queue_s=0.2, tell_waiting=tell)
        follow(begin(record_of(), {}, to), to)
    assert set(told) == {("Resources", "42")}


def test_follower_of_another_thread_leaves_signals_alone(tmp_path):
    ended = []
    thread = threading.Thread(target=lambda: ended.append(played(tmp_path / "run", STARTED + STEPS)))
    thread.start()
    thread.join()
    assert ended[0].ending.outcome is Outcome.DONE


def silent_of(path, script, *, silence_s):
    path.mkdir(exist_ok=True)
    (path / "start.sh").write_text(script)
    with LaunchFolder(path) as folder:
        to = to_of(folder)
        to = replace(to, patience=replace(to.patience, silence_s=silence_s))
        given = follow(begin(record_of(), {"PATH": "/usr/bin:/bin"}, to), to)
    assert list(living(given.run_id)) == []
    return given


def test_job_that_hangs_after_some_steps_is_stopped_and_says_where(tmp_path):
    record = silent_of(tmp_path, STARTED + STEPS + "trap '' TERM; sleep 60 & wait; sleep 60", silence_s=0.5)
    assert record.ending.outcome is Outcome.SILENT
    assert "it wrote nothing for" in record.ending.reason
    assert "(the last step told is 8); the job was stopped" in record.ending.reason
    assert launch_result(record).step_time is None
    assert len(record.witnessed.steps) == 8


def test_job_that_hangs_before_its_first_step_says_so(tmp_path):
    record = silent_of(tmp_path, STARTED + "sleep 60", silence_s=0.3)
    assert record.ending.outcome is Outcome.SILENT
    assert "no step was told" in record.ending.reason


def test_job_that_only_writes_logs_of_ranks_does_not_hang(tmp_path):
    script = STARTED + (
        "mkdir -p logs/node-0/0; for n in 1 2 3 4 5 6 7 8; do echo $n >> logs/node-0/0/stderr.log; sleep 0.2; done\n"
        + STEPS
    )
    assert silent_of(tmp_path, script, silence_s=0.8).ending.outcome is Outcome.DONE


def test_a_process_that_loads_programs_all_the_time_is_stopped(tmp_path):
    # While a program is loaded, the kernel shows no environment, by which processes of a run are found.
    script = STARTED + "cat > again.sh <<'X'\nexec sh again.sh\nX\n(exec sh again.sh) &\nexit 0\n"
    record = played(tmp_path, script)
    assert record.ending.outcome is Outcome.DONE
    time.sleep(0.2)
    assert list(living(record.run_id)) == []
