"""Money and energy in `linkwise plan` and `explain`, as a user meets them."""

import csv
import datetime as dt
import io
import json
from pathlib import Path

import pytest

from linkwise.cli.main import run
from linkwise.errors import ExitCode
from linkwise.report.bill import BILL_FIELDS

ROOT = Path(__file__).parents[2]
PRICES = (ROOT / "examples/prices.yaml").read_text()
DAY = dt.date(2026, 11, 30)
JOB = ["--model", "llama-3.1-8b", "--sequence-length", "8192", "--global-batch", "64"]


@pytest.fixture
def cluster_file(tmp_path):
    (tmp_path / "prices.yaml").write_text(PRICES)
    path = tmp_path / "c.yaml"
    path.write_text("linkwise: cluster/1\nnodes: 2\nnode: dgx-h100\nprices: prices.yaml\n")
    return str(path)


@pytest.fixture
def told(capsys):
    def tell(*arguments, today=DAY):
        code = run(arguments, today=lambda: today)
        said = capsys.readouterr()
        return code, said.out, said.err

    return tell


def test_plan_publishes_money_and_energy_where_prices_are_given(told, cluster_file):
    code, out, err = told(
        "plan", *JOB, "--tokens", "15e12", "--cluster", cluster_file, "--top", "2", "--format", "json"
    )
    assert (code, err) == (ExitCode.DONE, "")
    result = json.loads(out)
    assert any(said.startswith("prices of 2026-11-30: 2.5 USD/h a GPU") for said in result["assumptions"])
    assert any("every node in use draws its full power" in said for said in result["assumptions"])
    # 2 nodes of 10.2 kW; 16 links on one switch of 747 W, 8 twin-port modules of 17 W, 16 of 9 W.
    kilowatts = 20.4 + 0.747 + 8 * 0.017 + 16 * 0.009
    for layout in result["layouts"]:
        # 16 GPUs at 2.50 USD an hour; electricity at 0.10 USD/kWh and PUE 1.3; 524,288 tokens.
        hours, tokens = layout["step_time_s"] / 3600, 64 * 8192
        usd = hours * (16 * 2.5 + kilowatts * 1.3 * 0.1)
        assert layout["cost_usd_per_step"] == pytest.approx(usd)
        assert layout["cost_usd_per_million_tokens"] == pytest.approx(1e6 * usd / tokens)
        assert layout["cost_usd_per_run"] == pytest.approx(15e12 * usd / tokens)
        assert layout["energy_j_per_step"] == pytest.approx(1e3 * kilowatts * layout["step_time_s"])
        assert layout["energy_kwh_per_million_tokens"] == pytest.approx(kilowatts * hours * 1e6 / tokens)


def test_plan_publishes_neither_without_prices(told):
    for form in ("json", "csv", "table"):
        _, out, _ = told("plan", *JOB, "--cluster", "dgx-h100:2", "--top", "2", "--format", form)
        assert "usd" not in out.lower()
        assert "energy" not in out


def test_plan_prints_money_and_energy_as_table_and_csv(told, cluster_file):
    _, out, _ = told("plan", *JOB, "--cluster", cluster_file, "--top", "2")
    assert "Money and energy" in out
    assert "USD\nper run" not in out
    _, out, _ = told("plan", *JOB, "--cluster", cluster_file, "--top", "2", "--format", "csv")
    names = set(next(csv.reader(io.StringIO(out))))
    assert set(BILL_FIELDS) - names == {"cost_usd_per_run"}


def test_plan_gives_the_bill_of_the_closest_when_nothing_fits(told, cluster_file):
    huge = ["--model", "gpt-3-175b", "--sequence-length", "2048", "--global-batch", "8"]
    code, out, _ = told("plan", *huge, "--cluster", cluster_file, "--format", "json")
    assert code == ExitCode.INFEASIBLE
    assert json.loads(out)["closest"]["cost_usd_per_step"] > 0


def test_explain_traces_the_bill_to_the_prices(told, cluster_file):
    arguments = ["explain", *JOB, "--cluster", cluster_file, "--layout", "tensor=2,zero_stage=1"]
    _, out, _ = told(*arguments, "--format", "json")
    result = json.loads(out)
    terms = {term["name"]: term for term in result["terms"]}
    assert terms["cost_usd_per_step"]["value"] == pytest.approx(result["layout"]["cost_usd_per_step"])
    _, out, _ = told(*arguments)
    assert out.index("ENERGY") < out.index("MONEY") < out.index("FIGURES")
    _, out, _ = told(*arguments, "--term", "rent_usd_per_s")
    assert "GPUs x price of one for a time" in out
    assert "prices.yaml, 2026-11-30" in " ".join(out.split())


@pytest.mark.parametrize("verb", [["plan"], ["explain", "--layout", "tensor=2,zero_stage=1"]])
def test_old_prices_are_warned_about_on_standard_error_and_used(told, cluster_file, verb):
    arguments = [*verb, *JOB, "--cluster", cluster_file, "--format", "json"]
    _, fresh, err = told(*arguments, today=DAY + dt.timedelta(days=180))
    assert err == ""
    code, out, err = told(*arguments, today=DAY + dt.timedelta(days=181))
    assert (code, out) == (ExitCode.DONE, fresh)
    assert "prices.yaml: the prices are of 2026-11-30, 181 days old" in err


def test_faults_of_prices_are_told_with_those_of_the_cluster(told, cluster_file):
    path = Path(cluster_file)
    path.with_name("prices.yaml").write_text(
        "linkwise: prices/1\ndate: 2026-11-30\ngpu_hour: 2.5\nelektricity: 1\n"
    )
    path.write_text(path.read_text() + "fabric: {link: nosuch}\n")
    code, out, err = told("plan", *JOB, "--cluster", cluster_file)
    assert (code, out) == (ExitCode.WRONG_INPUT, "")
    assert "prices.yaml:3: gpu_hour: '2.5' has no unit" in err
    assert "prices.yaml:4: elektricity: unknown key; did you mean 'electricity'?" in err
    assert "c.yaml:5: fabric.link: unknown link" in err


def test_init_writes_prices_that_are_read(tmp_path, monkeypatch, told):
    from linkwise.cluster.prices_document import read_prices

    monkeypatch.chdir(tmp_path)
    assert told("init", "prices")[0] == ExitCode.DONE
    assert read_prices("prices.yaml").pue == 1.3
    assert (tmp_path / "prices.yaml").read_text() == PRICES


def test_schema_of_prices_is_printed(told):
    schema = json.loads(told("schema", "prices")[1])
    assert schema["properties"]["linkwise"]["const"] == "prices/1"
    assert set(schema["properties"]) == {
        "linkwise", "date", "gpu_hour", "electricity", "pue", "cooling", "hardware", "staff", "failures",
        "checkpoint",
    }  # fmt: skip


INFINIBAND, ROCE = (str(ROOT / f"examples/owned-{name}.yaml") for name in ("infiniband", "roce"))
SMALL = ["--model", "llama-3.1-8b", "--sequence-length", "4096", "--global-batch", "256"]


def test_compare_has_the_bill_of_each_cluster_and_the_price_of_the_faster_fabric(told):
    places = [word for place in (INFINIBAND, ROCE) for word in ("--cluster", place)]
    arguments = ["compare", *SMALL, "--tokens", "15e12", *places, "--wall-gpus", "256"]
    result = json.loads(told(*arguments, "--format", "json")[1])
    lines = [{line["name"]: line for line in each["bill"]["lines"]} for each in result["clusters"]]
    infiniband, roce = lines
    # RoCE is cheaper to buy and paid in tuning.
    assert roce["fabric"]["usd_per_hour"] < infiniband["fabric"]["usd_per_hour"]
    assert roce["staff"]["usd_per_hour"] == pytest.approx(4 * infiniband["staff"]["usd_per_hour"])
    for each, found in zip(result["clusters"], lines, strict=True):
        amounts = [line["usd_per_million_tokens"] for line in found.values()]
        assert sum(amounts) == pytest.approx(1e6 * each["price_usd_per_token"])
        assert each["price_usd_per_run"] == pytest.approx(15e12 * each["price_usd_per_token"], rel=1e-6)
        assert each["bill"]["not_priced"] == []
    (pair,) = result["break_even"]
    assert pair["faster"] == "infiniband"
    assert pair["faster_fabric_usd"] == pytest.approx(948_800)
    out = told(*arguments, "--format", "csv")[1]
    rows = list(csv.DictReader(io.StringIO(out)))
    assert float(rows[1]["staff_usd_per_million_tokens"]) == roce["staff"]["usd_per_million_tokens"]
    words = " ".join(told(*arguments)[1].split())
    assert "its fabric, for 948,800 USD, may cost" in words


def test_fabric_publishes_its_bill_with_the_arithmetic(told):
    bill = json.loads(told("fabric", INFINIBAND, "--format", "json")[1])["bill"]
    for each in bill["parts"]:
        assert each["included"] or each["total_usd"] == pytest.approx(each["count"] * each["unit_usd"])
    assert bill["total_usd"] == pytest.approx(948_800)
    assert bill["usd_per_gpu"] == pytest.approx(948_800 / 256)
    years = {each["name"]: each["usd_per_year"] for each in bill["per_year"]}
    assert years["fabric"] == pytest.approx(948_800 * 0.9 / 5)
    assert years["staff"] == pytest.approx(0.256 * 40 * 12 * 120)
    assert sum(years.values()) == pytest.approx(bill["usd_per_year"])


def test_fabric_names_what_has_no_price(told, tmp_path):
    (tmp_path / "p.yaml").write_text(
        "linkwise: prices/1\ndate: 2026-11-30\nstaff: {hour: 1 USD/h, per_1000_gpus: {efa: 1 h/month}}\n"
        "hardware: {lifetime: 5 years, cables: {optical: 100 USD}}\n"
    )
    path = tmp_path / "c.yaml"
    path.write_text("linkwise: cluster/1\nnodes: 32\nnode: dgx-h100\nprices: p.yaml\n")
    bill = json.loads(told("fabric", str(path), "--format", "json")[1])["bill"]
    assert bill["not_priced"][0] == "switches (quantum-2-qm9700)"
    assert bill["not_priced"][-1] == "staff (per_1000_gpus has no hours for infiniband)"
    out = told("fabric", str(path))[1]
    assert ">51,200" in out
    assert out.count("not priced") >= 5
    rows = list(csv.DictReader(io.StringIO(told("fabric", str(path), "--format", "csv")[1])))
    amounts = {(row["part"], row["tier"]): row["total_usd"] for row in rows}
    assert amounts["switch", "leaf"] == ""
    assert float(amounts["cable", "node_leaf"]) == 25_600


@pytest.mark.parametrize("verb", ["fabric", "plan", "explain"])
def test_owned_clusters_keep_to_eighty_columns(told, monkeypatch, verb):
    monkeypatch.setenv("COLUMNS", "80")
    arguments = {
        "fabric": [INFINIBAND],
        "plan": [*SMALL, "--cluster", INFINIBAND, "--top", "2"],
        "explain": [*SMALL, "--cluster", INFINIBAND, "--layout", "zero_stage=1"],
    }[verb]
    code, out, _ = told(verb, *arguments)
    assert code == ExitCode.DONE
    assert max(map(len, out.splitlines())) <= 80
    assert "staff: 256 GPUs / 1,000 x 40 h/month (infiniband) x 120 USD/h" in " ".join(out.split())


def test_explain_traces_goodput(told):
    arguments = ["explain", *SMALL, "--cluster", INFINIBAND, "--layout", "zero_stage=1", "--format", "json"]
    result = json.loads(told(*arguments)[1])
    terms = {term["name"]: term for term in result["terms"]}
    assert terms["goodput_fraction"]["group"] == "goodput"
    assert terms["goodput_fraction"]["value"] == pytest.approx(result["bill"]["goodput"]["fraction"])
    assert terms["cost_usd_per_token"]["value"] == pytest.approx(
        result["bill"]["usd_per_million_tokens"] / 1e6
    )


def test_failures_that_no_run_survives_are_one_message(told, tmp_path):
    text = Path(INFINIBAND).with_name("prices-owned.yaml").read_text()
    (tmp_path / "prices-owned.yaml").write_text(text.replace("gpu: 50000 h", "gpu: 1 h"))
    path = tmp_path / "c.yaml"
    path.write_text(Path(INFINIBAND).read_text())
    code, out, err = told("plan", *SMALL, "--cluster", str(path))
    assert (code, out) == (ExitCode.WRONG_INPUT, "")
    assert "training is interrupted every 14.1 s and saved every 3600 s in 30 s, so that no run ends" in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    ("fabric", "says"),
    [
        ("{kind: none, node_cables: dac}", "fabric.node_cables: has no effect: there is no fabric"),
        ("{kind: single-switch, switch_cables: dac}", "fabric.switch_cables: has no effect: there is one switch"),
        ("{link: roce-400, node_cables: dac}", "fabric.node_cables: has no effect: the switch is not known"),
        ("{node_cables: copper}", "fabric.node_cables: 'copper' is not accepted"),
    ],
)  # fmt: skip
def test_cables_without_effect_are_refused(told, tmp_path, fabric, says):
    path = tmp_path / "c.yaml"
    path.write_text(f"linkwise: cluster/1\nnodes: 1\nnode: dgx-h100\nfabric: {fabric}\n")
    code, _, err = told("fabric", str(path))
    assert code == ExitCode.WRONG_INPUT
    assert says in err
