"""Sweeps: which layouts are tried, and what their two orders say."""

import csv
import io
import json
import os
from dataclasses import replace

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode, InputError
from linkwise.lab.calibration import Calibration
from linkwise.lab.prediction import StepTime, WorkAlone
from linkwise.lab.sweep import SweepRow, every_layout, layout_words, sweep_jobs, swept
from linkwise.lab.training import RunResult
from linkwise.layout import Layout, RankOrder
from linkwise.report.lab_sweep import lab_sweep_csv_rows, lab_sweep_result
from tests.lab.test_design import DOCUMENT
from tests.lab.test_training import CLUSTER, DESIGN, job_of

JOB = replace(job_of(), framework="deepspeed", layout=None)
LAYOUTS = (Layout(micro_batch=2), Layout(micro_batch=2, zero_stage=3), Layout(pipeline=4), Layout(pipeline=2))


def found(times):
    """Return a sweep whose layouts were predicted and measured to take so long; None is one that failed."""

    def one(job):
        told = times[[each.layout for each in jobs].index(job.layout)]
        if told is None:
            return SweepRow(run=job, result=None, reason="rank 1: no")
        result = RunResult(
            predicted=StepTime(time_s=told[0], parts={}),
            steps_s=(told[1],),
            losses=(1.0,),
            tiers=(),
            calibration=Calibration(loopback_bytes_per_s=1e9, costs={}),
            alone=WorkAlone(forward_s=0.0, backward_s=0.0, update_s=0.0),
            wall_s=1.0,
        )
        return SweepRow(run=job, result=result)

    jobs = sweep_jobs(JOB, LAYOUTS, CLUSTER, DESIGN)
    said = []
    sweep = swept(jobs, one, say=said.append)
    assert said[0] == "1 of 4: data 4, micro-batch 2"
    return sweep


def test_every_cut_and_placement_is_tried_once():
    layouts = list(every_layout(4))
    assert len(set(layouts)) == len(layouts)
    assert {each.tensor * each.pipeline * each.data for each in layouts} == {4}
    sides = [each.rank_order for each in layouts if each.pipeline == each.data == 2 and not each.zero_stage]
    assert sides == list(RankOrder)


def test_without_layouts_those_that_the_lab_runs_are_tried():
    words = [layout_words(each.layout) for each in sweep_jobs(JOB, (), CLUSTER, DESIGN)]
    assert "data 4 sharded" in words
    assert "pipeline 2 x data 2, stages adjacent" in words
    assert not any("pipeline" in each and "sharded" in each for each in words)


def test_a_layout_that_is_not_run_is_named_before_any_is():
    with pytest.raises(InputError, match=r"layout 2 \(tensor 2 x pipeline 2\): .*a pipeline is run"):
        sweep_jobs(JOB, [Layout(), Layout(tensor=2, pipeline=2, sequence_parallel=False)], CLUSTER, DESIGN)


def test_orders_that_agree_and_a_best_that_is_the_best():
    sweep = found([(1.0, 1.1), (4.0, 3.9), (2.0, 2.2), (3.0, 3.3)])
    assert sweep.correlation == pytest.approx(1.0)
    assert sweep.lost_fraction == 0.0


def test_a_predicted_best_that_is_not_says_what_it_loses():
    sweep = found([(1.0, 1.2), (4.0, 3.9), (2.0, 1.0), (3.0, 3.3)])
    assert sweep.correlation == pytest.approx(0.8)
    assert sweep.lost_fraction == pytest.approx(0.2)


def test_a_layout_that_failed_is_told_and_does_not_count():
    sweep = found([(1.0, 1.2), None, (2.0, 1.0), (3.0, 3.3)])
    assert sweep.correlation == pytest.approx(0.5)
    result = lab_sweep_result("x", DESIGN, sweep)
    assert [each.measured_rank for each in result.layouts] == [1, 2, 3, None]
    assert result.layouts[-1].reason == "rank 1: no"
    header, *rows = lab_sweep_csv_rows(result)
    assert rows[-1][header.index("measured_step_s")] == ""


@pytest.fixture
def lab(tmp_path, capsys):
    path, name = tmp_path / "cluster.yaml", f"s{os.getpid()}"
    path.write_text(DOCUMENT.format(kind="single-switch", nodes=2, gpus=2, nics=1))
    assert run(["lab", "up", str(path), "--name", name]) == ExitCode.DONE
    capsys.readouterr()
    yield name
    run(["lab", "down", name])


LISTED = "linkwise: layouts/1\nlayouts:\n  - {micro_batch: 4}\n  - {pipeline: 2, micro_batch: 4}\n"


@pytest.mark.full
@pytest.mark.requires("netns")
@pytest.mark.requires("torch")
def test_a_real_sweep_is_printed_and_published(lab, tmp_path, capsys):
    (tmp_path / "layouts.yaml").write_text(LISTED)
    words = ["lab", "sweep", "examples/lab-sweep.yaml", lab, "--layouts", str(tmp_path / "layouts.yaml")]
    assert run([*words, "--steps", "1", "--format", "json"]) == ExitCode.DONE
    result = json.loads(capsys.readouterr().out)
    assert result["schema"] == "linkwise.lab-sweep/1"
    assert sorted(each["measured_rank"] for each in result["layouts"]) == [1, 2]
    assert result["rank_correlation"] is None
    assert run([*words, "--steps", "1", "--format", "csv"]) == ExitCode.DONE
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert {row["pipeline"] for row in rows} == {"1", "2"}


@pytest.mark.requires("netns")
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["examples/lab-ddp.yaml"], "write layout: search"),
        (["examples/lab-sweep.yaml", "--layouts", "examples/lab-2x2.yaml"], "layouts/1"),
    ],
)
def test_a_sweep_of_what_it_would_not_use_is_refused(lab, capsys, words, said):
    assert run(["lab", "sweep", words[0], lab, *words[1:]]) == ExitCode.WRONG_INPUT
    assert said in capsys.readouterr().err
