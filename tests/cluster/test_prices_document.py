import datetime as dt
from pathlib import Path

import jsonschema
import pytest

from linkwise.cluster import load_cluster, read_cluster
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


def test_schema_accepts_the_example_and_no_number_without_unit():
    schema = json_schema(PricesDocument, HEADER)
    good = {"linkwise": HEADER, "date": "2026-11-30", "gpu_hour": "2.50 USD/h", "pue": 1.3}
    jsonschema.validate(good, schema)
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
