"""`linkwise compare`, run as a user runs it."""

import csv
import datetime as dt
import io
import json
from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode

EXAMPLES = Path(__file__).parents[2] / "examples"
JOB, CLUSTER = str(EXAMPLES / "llama-70b.yaml"), str(EXAMPLES / "h100-256.yaml")
SMALL = ["--model", "llama-3.1-8b", "--sequence-length", "4096", "--global-batch", "64"]
NEAR = ["--wall-gpus", "64"]
DAY = dt.date(2026, 11, 30)

CLUSTER_FIELDS = {
    "name", "step_time_s", "step_time_low_s", "step_time_high_s", "tokens_per_s_per_gpu", "mfu_fraction", "exposed_s",
    "energy_j_per_token", "price_usd_per_token", "layout",
}  # fmt: skip
"""What other programs read of a cluster: a contract."""


@pytest.fixture
def compared(capsys):
    def run_compare(*arguments):
        code = run(["compare", *arguments], today=lambda: DAY)
        told = capsys.readouterr()
        assert "Traceback" not in told.err
        assert "internal error" not in told.err
        return code, told.out, told.err

    return run_compare


@pytest.fixture
def leaf_spine(tmp_path):
    (tmp_path / "prices.yaml").write_text((EXAMPLES / "prices.yaml").read_text())
    path = tmp_path / "leaf.yaml"
    fabric = "fabric: {kind: leaf-spine, link: infiniband-ndr-400}\n"
    path.write_text(
        f"linkwise: cluster/1\nname: leafy\nnodes: 16\nnode: dgx-h100\n{fabric}prices: prices.yaml\n"
    )
    return str(path)


def test_compare_publishes_the_fields_of_its_contract(compared):
    code, out, err = compared(JOB, CLUSTER, "dgx-a100:32", *NEAR, "--format", "json")
    assert (code, err) == (ExitCode.DONE, "")
    result = json.loads(out)
    assert result["schema"] == "linkwise.compare/1"
    assert {"clusters", "wall", "break_even", "assumptions"} <= set(result)
    for each in result["clusters"]:
        assert set(each) >= CLUSTER_FIELDS
        assert set(each["exposed_s"]) == {"tensor", "context", "expert", "pipeline", "data"}
        assert each["price_usd_per_token"] is None
        assert each["energy_j_per_token"] > 0
    assert [each["gpus"] for each in result["wall"]] == [None, None]


def test_compare_gives_the_best_layout_that_plan_gives(compared, capsys):
    _, out, _ = compared(JOB, CLUSTER, *NEAR, "--format", "json")
    assert run(["plan", JOB, CLUSTER, "--format", "json"]) == ExitCode.DONE
    best = json.loads(capsys.readouterr().out)["layouts"][0]
    (each,) = json.loads(out)["clusters"]
    assert each["layout"] == best
    assert each["step_time_s"] == best["step_time_s"]
    assert each["exposed_s"] == {kind: best["parts"][kind] for kind in each["exposed_s"]}


def test_compare_says_the_same_of_files_and_options(compared, tmp_path):
    path = tmp_path / "job.yaml"
    path.write_text("linkwise: job/1\nmodel: llama-3.1-8b\nsequence_length: 4096\nglobal_batch: 64\n")
    places = ("dgx-h100:2", "dgx-a100:2")
    from_file = compared(str(path), *places, *NEAR)
    assert from_file[0] == ExitCode.DONE
    options = [word for place in places for word in ("--cluster", place)]
    assert compared(*SMALL, *options, *NEAR) == from_file
    assert compared(str(path), *options, *NEAR) == from_file


def test_compare_prints_the_tables(compared):
    code, out, err = compared(JOB, CLUSTER, "gb200-nvl72:64", *NEAR)
    assert (code, err) == (ExitCode.DONE, "")
    for words in (
        "h100-256",
        "80 % interval",
        "MFU",
        "Exposed communication",
        "Break-even",
        "wall",
        "tensor 4",
    ):
        assert words in out, words


def test_compare_varies_one_cluster_by_every_combination(compared, leaf_spine):
    fabrics = "infiniband-ndr-400,roce-400"
    code, out, _ = compared(
        *SMALL, "--cluster", leaf_spine, "--fabrics", fabrics, "--domains", "4,8",
        "--oversubscription", "1,2", *NEAR, "--format", "csv",
    )  # fmt: skip
    rows = list(csv.DictReader(io.StringIO(out)))
    assert code == ExitCode.DONE
    assert len({row["name"] for row in rows}) == len(rows) == 8
    assert rows[0]["name"] == "leafy, infiniband-ndr-400, NVL4, 1:1"
    assert rows[-1]["name"] == "leafy, roce-400, NVL8, 2:1"


def test_compare_prices_tokens_runs_and_break_even(compared, leaf_spine):
    arguments = [*SMALL, "--tokens", "15e12", "--cluster", leaf_spine, "--oversubscription", "1,8", *NEAR]
    _, out, _ = compared(*arguments, "--format", "json")
    result = json.loads(out)
    # 16 nodes of 10.2 kW; 128 cables to leaves, twin-port modules of 17 W at switches and 9 W at NICs. At 1:1
    # 4 leaves and 2 spines with 128 cables between them, at 8:1 3 leaves and one spine with 18; 747 W each.
    fabrics_kw = (6 * 0.747 + 192 * 0.017 + 128 * 0.009, 4 * 0.747 + 82 * 0.017 + 128 * 0.009)
    for each, fabric_kw in zip(result["clusters"], fabrics_kw, strict=True):
        # 128 GPUs at 2.50 USD an hour; electricity at 0.10 USD/kWh and PUE 1.3.
        kilowatts = 16 * 10.2 + fabric_kw
        usd = each["step_time_s"] / 3600 * (128 * 2.5 + kilowatts * 1.3 * 0.1)
        assert each["price_usd_per_token"] == pytest.approx(usd / (64 * 4096))
        assert each["price_usd_per_run"] == pytest.approx(15e12 * each["price_usd_per_token"])
        assert each["usd_per_gpu_hour"] == pytest.approx(2.5 + kilowatts / 128 * 1.3 * 0.1)
    (pair,) = result["break_even"]
    assert pair["faster"].endswith("1:1")
    assert pair["most_usd_per_gpu_hour"] == pytest.approx(
        pair["price_ratio"] * pair["slower_usd_per_gpu_hour"]
    )
    _, out, _ = compared(*arguments)
    assert "USD per" in out
    assert "more (it costs 2.67)" in " ".join(out.split())


def test_compare_warns_of_old_prices_once(leaf_spine, capsys):
    arguments = ["compare", *SMALL, "--cluster", leaf_spine, "--oversubscription", "1,2", *NEAR]
    assert run(arguments, today=lambda: DAY + dt.timedelta(days=400)) == ExitCode.DONE
    assert capsys.readouterr().err.count("400 days old") == 1


def test_compare_leaves_with_5_only_where_nothing_fits_any(compared):
    huge = ["--model", "gpt-3-175b", "--sequence-length", "2048", "--global-batch", "64", "--wall-gpus", "8"]
    code, out, _ = compared(*huge, "--cluster", "dgx-h100:1", "--cluster", "dgx-h100:16", "--format", "json")
    assert code == ExitCode.DONE
    small, large = json.loads(out)["clusters"]
    assert small["layout"] is None
    assert "lacks" in small["lacks"]
    assert small["closest"]["short_bytes"] > 0
    assert (large["step_time_ratio"], large["lacks"]) == (1.0, None)
    code, out, _ = compared(*huge, "--cluster", "dgx-h100:1", "--format", "json")
    assert code == ExitCode.INFEASIBLE
    assert json.loads(out)["reference"] is None


@pytest.mark.requires("matplotlib")
def test_compare_draws_the_wall_beside_what_it_prints(compared, tmp_path):
    path = tmp_path / "wall.svg"
    plain = compared(*SMALL, "--cluster", "dgx-h100:2", *NEAR)
    code, out, err = compared(*SMALL, "--cluster", "dgx-h100:2", *NEAR, "--plot", str(path))
    assert (code, out, err) == (ExitCode.DONE, plain[1], f"wrote {path}\n")
    assert path.stat().st_size > 1000


@pytest.mark.requires("matplotlib")
def test_compare_draws_nothing_where_nothing_fits(compared, tmp_path):
    huge = ["--model", "gpt-3-175b", "--sequence-length", "2048", "--global-batch", "64", "--wall-gpus", "8"]
    path = tmp_path / "wall.svg"
    code, _, err = compared(*huge, "--cluster", "dgx-h100:1", "--plot", str(path))
    assert code == ExitCode.INFEASIBLE
    assert "no layout fits at any size" in err
    assert not path.exists()


def test_compare_reads_standard_input(compared, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(Path(CLUSTER).read_bytes())

    monkeypatch.setattr("sys.stdin", Stdin)
    code, out, _ = compared(JOB, "dgx-a100:32", "-", *NEAR)
    assert code == ExitCode.DONE
    assert "h100-256" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "no job: give JOB and CLUSTER"),
        ([JOB], "no CLUSTER beside the job"),
        ([*SMALL], "--cluster: the option is required and missing"),
        ([JOB, "-", "-"], "two clusters are '-'"),
        (["-", "-"], "standard input can be read once"),
        ([JOB, CLUSTER, "--model", "x"], "--model has no effect beside the job file"),
        ([JOB, CLUSTER, "--cluster", "dgx-h100:2"], "--cluster dgx-h100:2 has no effect"),
        ([JOB, "dgx-h100:x"], "CLUSTER: 'x' in 'dgx-h100:x' is not a number of nodes"),
        ([JOB, "missing.yaml", CLUSTER], "missing.yaml: no such file"),
        (
            [JOB, CLUSTER, "dgx-a100:2", "--domains", "8"],
            "--domains: variants are of one cluster, but 2 are given",
        ),
        (
            [JOB, CLUSTER, "--domains", "8,72"],
            "--domains: 72 is more than the GPUs of an NVLink domain of dgx-h100: 8",
        ),
        ([JOB, CLUSTER, "--domains", "8,x"], "--domains: 'x' in '8,x' is not a number of GPUs"),
        ([JOB, CLUSTER, "--domains", ""], "--domains: '' in '' is not a number of GPUs"),
        ([JOB, CLUSTER, "--fabrics", "roce-400,"], "--fabrics: '' in 'roce-400,'"),
        ([JOB, CLUSTER, "--fabrics", "roce-800"], "--fabrics: roce-800 carries 800 Gbit/s"),
        (
            [JOB, CLUSTER, "--oversubscription", "1,2"],
            "--oversubscription: has no effect: all 256 GPUs are below one set of leaves",
        ),
        *(
            (
                [JOB, CLUSTER, "--oversubscription", f"1,{value}"],
                f"--oversubscription: {value} is not a ratio",
            )
            for value in ("nan", "inf", "0", "0.5", "-1", "1001")
        ),
        ([JOB, CLUSTER, "--wall-share", "1"], "--wall-share"),
        ([JOB, CLUSTER, "--wall-gpus", "0"], "--wall-gpus"),
        ([JOB, CLUSTER, "--plot", "wall.jpg"], "--plot: wall.jpg is no picture"),
        ([JOB, CLUSTER, "--format", "xml"], "--format"),
        (
            [*SMALL, "--precision", "fp8", "--cluster", "dgx-a100:1", "--cluster", "dgx-a100:2"],
            "a100-sxm-80gb has no fp8",
        ),
    ],
)
def test_compare_says_what_is_wrong_and_prints_nothing_else(compared, arguments, says):
    code, out, err = compared(*arguments)
    assert (code, out) == (ExitCode.WRONG_INPUT, "")
    assert says in err


def test_compare_reports_the_faults_of_all_files_together(compared, tmp_path):
    for name in ("a.yaml", "b.yaml"):
        (tmp_path / name).write_text("linkwise: cluster/1\nnodes: 0\nnode: dgx-h100\n")
    (tmp_path / "job.yaml").write_text("linkwise: job/1\nmodel: nosuch\n")
    paths = [str(tmp_path / name) for name in ("job.yaml", "a.yaml", "b.yaml")]
    code, _, err = compared(*paths)
    assert code == ExitCode.WRONG_INPUT
    for path in paths:
        assert f"{path}:2" in err


@pytest.mark.parametrize("width", [60, 100])
def test_tables_and_sentences_keep_to_the_width(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["compare", JOB, "dgx-h100:32", "gb200-nvl72:64", "--wall-gpus", "256"]) == ExitCode.DONE
    assert max(map(len, capsys.readouterr().out.splitlines())) <= width
