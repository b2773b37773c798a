import datetime as dt
import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linkwise.cluster import load_cluster, read_cluster
from linkwise.cluster.hardware_prices import HardwareDocument
from linkwise.cluster.prices_document import HEADER, PricesDocument, parse_prices, read_prices
from linkwise.documents import json_schema
from linkwise.errors import DocumentError

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/prices.yaml"
TEMPLATE = ROOT / "src/linkwise/cluster/prices_template.yaml"


def parsed(body):
    return parse_prices(f"linkwise: prices/1\n{body}", path="p.yaml")


def faults(body):
    with pytest.raises(DocumentError) as caught:
        parsed(body)
    return str(caught.value).splitlines()


@pytest.mark.parametrize("path", [EXAMPLE, TEMPLATE], ids=["example", "template"])
def test_prices_are_read_in_si(path):
    prices = read_prices(path)
    assert prices.date == dt.date(2026, 11, 30)
    # 2.50 USD in 3600 s; 0.10 USD for a kWh of 3.6 MJ.
    assert prices.gpu_usd_per_s == pytest.approx(2.5 / 3600)
    assert prices.electricity_usd_per_j == pytest.approx(0.1 / 3.6e6)
    assert (prices.pue, prices.path) == (1.3, str(path))


def test_prices_are_none_when_not_stated():
    prices = parsed("date: 2026-02-28\nelectricity: 80 USD/MWh\n")
    assert prices.gpu_usd_per_s is None
    assert prices.pue is None
    assert prices.electricity_usd_per_j == pytest.approx(0.08 / 3.6e6)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("gpu_hour: 2 USD/h\n", "p.yaml:1: date: the key is required and missing"),
        ("date:\ngpu_hour: 2 USD/h\n", "p.yaml:2: date: the key has no value"),
        ("date: 20261130\ngpu_hour: 2 USD/h\n", "p.yaml:2: date: 20261130 is not a day"),
        ("date: 30.11.2026\ngpu_hour: 2 USD/h\n", "p.yaml:2: date: '30.11.2026' is not a day"),
        ("date: [2026]\ngpu_hour: 2 USD/h\n", "p.yaml:2: date: this is not a day"),
        ("date: 2026-11-31\ngpu_hour: 2 USD/h\n", "p.yaml:2: date: '2026-11-31' is not a day of the calendar"),
        ("date: 2026-11-30\n", "p.yaml:1: no price is given; write gpu_hour: 2.50 USD/h"),
        ("date: 2026-11-30\ngpu_hour: 2.5\n", "p.yaml:3: gpu_hour: '2.5' has no unit; write a price per time"),
        ("date: 2026-11-30\ngpu_hour: 2.5 USD\n", "p.yaml:3: gpu_hour: 'USD' is not a unit of a price per time"),
        ("date: 2026-11-30\ngpu_hour: 0 USD/h\n", "p.yaml:3: gpu_hour: '0 USD/h' is not above zero"),
        ("date: 2026-11-30\ngpu_hour: 2 EUR/h\n", "p.yaml:3: gpu_hour: unknown unit 'EUR/h'"),
        ("date: 2026-11-30\nelectricity: 0.1 USD/kW\n", "p.yaml:3: electricity: 'USD/kW' is not a unit"),
        ("date: 2026-11-30\ngpu_hours: 2 USD/h\n", "p.yaml:3: gpu_hours: unknown key; did you mean 'gpu_hour'?"),
        (
            "date: 2026-11-30\nelectricity: 0.1 USD/kWh\npue: 0.9\n",
            "p.yaml:4: pue: 0.9 is not accepted: input should be greater than or equal to 1",
        ),
        (
            "date: 2026-11-30\ngpu_hour: 2 USD/h\npue: 1.2\n",
            "p.yaml:4: pue: has no effect without a price of electricity",
        ),
    ],
)  # fmt: skip
def test_prices_say_what_is_wrong_when_they_cannot_be_used(body, says):
    assert [fault for fault in faults(body) if fault.startswith(says)], faults(body)


WHOLE = """\
date: 2026-11-30
electricity: 0.10 USD/kWh
pue: 1.3
hardware:
  lifetime: 5 years
  residual: 0.1
  support: 0.05
  spares: 0.03
  systems: {DGX_H100: 300000 USD}
  nics: {connectx-7: 1500 USD}
  switches: {quantum-2-qm9700: 25000 USD}
  transceivers: {osfp-800g-2xdr4: 1000 USD}
  cables: {optical: 100 USD, dac: 120 USD}
staff:
  hour: 120 USD/h
  per_1000_gpus: {infiniband: 40 h/month, ethernet: 160 h/month}
failures:
  mtbf: {gpu: 50000 h, switch: 30 years}
  restart: 10 min
checkpoint: {write: 30 s, interval: 1 h}
"""
YEAR = 365.25 * 86400.0


def test_whole_cost_is_read_in_si():
    prices = parsed(WHOLE)
    bought = prices.hardware
    assert (bought.lifetime_s, bought.residual_fraction, bought.spares_fraction) == (5 * YEAR, 0.1, 0.03)
    assert bought.support_fraction_per_s == pytest.approx(0.05 / YEAR)
    # An alias is read as the name of the catalogue.
    assert bought.systems == {"dgx-h100": 300_000.0}
    assert bought.cables == {"optical": 100.0, "dac": 120.0}
    assert prices.staff.usd_per_s == pytest.approx(120 / 3600)
    # 40 hours of a month of 730.5.
    assert prices.staff.share_per_1000_gpus["infiniband"] == pytest.approx(40 / 730.5)
    assert prices.mtbf_s == {"gpu": 50_000 * 3600.0, "switch": pytest.approx(30 * YEAR)}
    assert (prices.restart_s, prices.checkpoints.write_s, prices.checkpoints.interval_s) == (600, 30, 3600)
    assert hash(prices) == hash(parsed(WHOLE))


def test_template_has_every_key_and_is_read_with_all_comments_taken_away():
    text = TEMPLATE.read_text()
    owned = text[text.index("# Or what you own") :]
    live = [
        line.removeprefix("# ")
        for line in owned.splitlines()
        if line.startswith(("#  ", "# ")) and ":" in line
    ]
    keys = [line for line in live if line[0] == " " or line.split(":")[0] in PricesDocument.model_fields]
    prices = parsed("date: 2026-11-30\nelectricity: 0.1 USD/kWh\n" + "\n".join(keys) + "\n")
    assert prices.hardware.has_nodes
    assert prices.hardware.has_fabric
    assert None not in (prices.staff, prices.checkpoints, prices.restart_s, prices.cooling_usd_per_j)
    for field in (*HardwareDocument.model_fields, *PricesDocument.model_fields):
        assert f"{field}:" in text, field


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("lifetime: 5 years", "", "hardware.lifetime: the key is required and missing"),
        ("lifetime: 5 years", "lifetime: 5", "hardware.lifetime: '5' has no unit; write a time as '5 years'"),
        ("restart: 10 min", "restart: 0 min", "failures.restart: '0 min' is not above zero; write a time as '10 min'"),
        ("lifetime: 5 years", "lifetime: 5 min", "hardware.lifetime: is not between a day and a hundred years"),
        ("residual: 0.1", "residual: 1", "hardware.residual: 1 means that nothing is written off"),
        ("DGX_H100: 300000 USD", "dgxh: 1 USD", "hardware.systems.dgxh: unknown system 'dgxh'"),
        ("DGX_H100: 300000 USD", "DGX_H100: 3e4", "hardware.systems.DGX_H100: '30000' has no unit"),
        ("DGX_H100: 300000 USD", "DGX_H100: 1 USD, dgx-h100: 2 USD", "hardware.systems.dgx-h100: dgx-h100 has a price above already"),
        ("DGX_H100: 300000 USD", "DGX_H100: 3e11 USD", "hardware.systems.DGX_H100: '3e11 USD' for one is more than ten"),
        ("{DGX_H100: 300000 USD}", "300000 USD", "hardware.systems: names with their prices are due"),
        ("osfp-800g-2xdr4: ", "dac-400g-passive-3m: ", "hardware.transceivers.dac-400g-passive-3m: dac-400g-passive-3m is a cable"),
        ("optical: 100 USD", "optic: 100 USD", "hardware.cables.optic: unknown kind of cable; did you mean 'optical'?"),
        ("electricity: 0.10", "gpu_hour: 2 USD/h\nelectricity: 0.10", "hardware.systems: gpu_hour pays for the nodes already"),
        ("pue: 1.3", "pue: 1.3\ncooling: 0.02 USD/kWh", "cooling: pue counts the energy of cooling already"),
        ("hour: 120 USD/h", "hour: 120 USD", "staff.hour: 'USD' is not a unit of a price per time"),
        ("infiniband: 40 h/month", "infiniband: 40 h", "staff.per_1000_gpus.infiniband: 'h' is not a unit of a working time"),
        ("infiniband: 40 h/month", "infinband: 40 h/month", "staff.per_1000_gpus.infinband: unknown key; did you mean 'infiniband'?"),
        ("{infiniband: 40 h/month, ethernet: 160 h/month}", "{}", "staff.per_1000_gpus: no fabric has hours"),
        ("{gpu: 50000 h, switch: 30 years}", "{}", "failures.mtbf: no part has a time"),
        ("gpu: 50000 h", "gpu: 20000 years", "failures.mtbf.gpu: is more than 10,000 years"),
        ("checkpoint: {write: 30 s, interval: 1 h}", "", "failures: how much work an interruption costs is not known"),
        ("write: 30 s", "write: 2 years", "checkpoint.write: is more than a year"),
        ("0.10 USD/kWh", "0.10 USD/J", "electricity: is more than 1,000 dollars for a kWh"),
    ],
)  # fmt: skip
def test_whole_cost_says_what_is_wrong_when_it_cannot_be_used(old, new, says):
    assert old in WHOLE
    told = faults(WHOLE.replace(old, new))
    assert [fault for fault in told if fault.split(": ", 1)[1].startswith(says)], told


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("checkpoint: {write: 30 s}", "checkpoint: without failures there is no best interval"),
        ("hardware: {lifetime: 5 years}", "hardware: nothing has a price; give one of systems, node"),
        ("hardware: {lifetime: 5 years, node: 1 USD, gpus: {h100-sxm: 1 USD}}", "hardware.gpus: has no effect: node prices"),
    ],
)  # fmt: skip
def test_keys_without_effect_are_refused_with_the_reason(body, says):
    told = faults(f"date: 2026-11-30\nelectricity: 0.1 USD/kWh\n{body}\n")
    assert [fault for fault in told if f": {says}" in fault], told


KEYS = st.sampled_from(
    [
        "date",
        "gpu_hour",
        "hardware",
        "lifetime",
        "systems",
        "dgx-h100",
        "staff",
        "hour",
        "mtbf",
        "gpu",
        "pue",
        "é",
    ]
)
VALUES = st.recursive(
    st.sampled_from(
        ["2026-11-30", "2 USD/h", "5 years", "1e400 USD", "-1 USD", 0, 1.5, True, None, "", "nan USD"]
    )
    | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=8,
)


@given(
    st.dictionaries(st.sampled_from([*PricesDocument.model_fields]) | KEYS, VALUES, max_size=6),
    st.dictionaries(st.sampled_from([*HardwareDocument.model_fields]), VALUES, max_size=4),
)
def test_any_document_is_read_or_refused_with_its_faults(top, hardware):
    text = json.dumps({"linkwise": "prices/1", **top, "hardware": hardware})
    try:
        told = str(parse_prices(text, path="p.yaml").date)
    except DocumentError as error:
        told = str(error)
    assert max(map(len, told.splitlines())) < 2000


def test_schema_accepts_the_example_and_no_number_without_unit():
    schema = json_schema(PricesDocument, HEADER)
    good = {"linkwise": HEADER, "date": "2026-11-30", "gpu_hour": "2.50 USD/h", "pue": 1.3}
    jsonschema.validate(good, schema)
    bought = {"lifetime": "5 years", "switches": {"quantum-2-qm9700": "25000 USD"}}
    jsonschema.validate({**good, "hardware": bought}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, "hardware": {**bought, "switches": {"quantum-2-qm9700": 25000}}}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**good, "gpu_hour": 2.5}, schema)


@pytest.fixture
def cluster_file(tmp_path):
    def write(prices, *, node="dgx-h100", named="prices.yaml"):
        (tmp_path / "prices.yaml").write_text(prices)
        path = tmp_path / "c.yaml"
        path.write_text(f"linkwise: cluster/1\nnodes: 1\nnode: {node}\nprices: {named}\n")
        return path

    return write


def test_cluster_has_the_prices_of_the_file_beside_it(cluster_file, monkeypatch):
    path = cluster_file(EXAMPLE.read_text())
    monkeypatch.chdir("/")
    assert read_cluster(path).prices.pue == 1.3


def test_cluster_has_no_prices_when_none_are_named():
    assert load_cluster("dgx-h100:2").prices is None


def test_cluster_tells_every_fault_of_its_prices_with_both_places(cluster_file):
    path = cluster_file("linkwise: prices/1\ndate: yesterday\ngpu_hour: 2\n")
    path.write_text(path.read_text() + "nodez: 1\n")
    with pytest.raises(DocumentError) as caught:
        read_cluster(path)
    told = str(caught.value).splitlines()
    beside = path.with_name("prices.yaml")
    assert told[0].startswith(f"{path}:4: prices: {beside}:2: date: 'yesterday' is not a day")
    assert told[1].startswith(f"{path}:4: prices: {beside}:3: gpu_hour: '2' has no unit")
    assert told[2].startswith(f"{path}:5: nodez: unknown key")


@pytest.mark.parametrize(
    ("named", "says"),
    [
        ("price.yaml", "no such file; did you mean"),
        ("c.yaml", "this document is a cluster/1, but a prices/1 is read here"),
        (".", "is a directory"),
        ('"-"', "the path of a prices/1 document is due here"),
        ("./-", "no such file"),
        ('"\\0"', "the path of a prices/1 document is due here"),
        ("2.5", "the path of a prices/1 document is due here"),
        ("{gpu_hour: 2 USD/h}", "the path of a prices/1 document is due here"),
    ],
)
def test_cluster_says_what_is_wrong_when_prices_are_no_document(cluster_file, named, says):
    with pytest.raises(DocumentError) as caught:
        read_cluster(cluster_file(EXAMPLE.read_text(), named=named))
    assert "c.yaml:4: prices: " in str(caught.value)
    assert says in str(caught.value)


def test_price_of_electricity_is_refused_when_no_power_is_known(cluster_file):
    # The catalogue has neither the power of a Vera Rubin rack nor that of its GPU.
    with pytest.raises(DocumentError) as caught:
        read_cluster(cluster_file(EXAMPLE.read_text(), node="vr-nvl144"))
    assert "the power of vr-nvl144 is not in the catalogue; leave electricity out" in str(caught.value)
    hours = "linkwise: prices/1\ndate: 2026-11-30\ngpu_hour: 2 USD/h\n"
    assert read_cluster(cluster_file(hours, node="vr-nvl144")).prices.gpu_usd_per_s == pytest.approx(2 / 3600)
