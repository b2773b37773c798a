"""The verb fabric: what it prints, what it writes, with which code it leaves."""

import csv
import io
import json
import resource
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from linkwise import catalog
from linkwise.cli.main import run
from linkwise.errors import ExitCode


def _result(capsys, *words):
    assert run(["fabric", *map(str, words), "--format", "json"]) == ExitCode.DONE
    return json.loads(capsys.readouterr().out)


@pytest.fixture
def written(tmp_path):
    """Return what writes a cluster document and gives its path."""

    def write(fabric, nodes=64, node="dgx-h100"):
        path = tmp_path / "cluster.yaml"
        path.write_text(f"linkwise: cluster/1\nnodes: {nodes}\nnode: {node}\nfabric: {fabric}\n")
        return path

    return write


def test_json_has_the_published_names(capsys):
    result = _result(capsys, "dgx-b200:512")
    assert result["schema"] == "linkwise.fabric/1"
    assert result["switches"] == {"leaf": 128, "spine": 128, "core": 64}
    assert result["cables"] == {"node_leaf": 4096, "leaf_spine": 4096, "spine_core": 4096}
    assert result["bisection_bytes_per_s"] == 2048 * 50e9
    assert result["power_w"] == pytest.approx(result["switch_power_w"] + result["optics"]["power_w"])
    assert result["switch_power_w"] == 320 * 747
    assert [each["part"] for each in result["failures"]][-1] == "node"
    assert result["collisions"]["mean"] == 1
    assert result["assumptions"]
    assert result["arithmetic"]


def test_collisions_have_draws_beside_the_exact_law(capsys, written):
    path = written("{kind: fat-tree, routing: {ecmp: {queue_pairs: 4}}}", nodes=256)
    found = _result(capsys, path)["collisions"]
    assert (found["routing"], found["queue_pairs"], found["seeds"]) == ("ecmp", 4, 20)
    # 64 leaves of 32 x 4 flows on 32 links
    assert found["exact_mean"] == pytest.approx(3.0, abs=0.1)
    assert found["up_mean"] == pytest.approx(found["exact_mean"], abs=0.2)
    assert found["p95"] >= found["mean"] >= found["up_mean"]


@pytest.mark.parametrize(
    ("queue_pairs", "says"),
    [
        (1, "links from leaves to spines, exact law: mean"),
        (1024, "1,024 queue pairs): too many flows to count"),
    ],
)
def test_table_says_what_is_known_of_collisions(capsys, written, queue_pairs, says):
    path = written(f"{{kind: fat-tree, routing: {{ecmp: {{queue_pairs: {queue_pairs}}}}}}}", nodes=512)
    assert run(["fabric", str(path)]) == 0
    assert says in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fabric", "nodes"),
    [
        ("{kind: single-switch, routing: pinned}", 8),
        ("{kind: rail-only, routing: spray}", 64),
        ("{kind: links, links: [{from: node-0, to: s}, {from: node-1, to: s}], routing: ecmp}", 2),
    ],
)
def test_routing_with_one_path_has_no_effect(capsys, written, fabric, nodes):
    assert run(["fabric", str(written(fabric, nodes=nodes))]) == ExitCode.WRONG_INPUT
    assert "routing: has no effect" in capsys.readouterr().err


def test_leaves_that_one_switch_would_do_for_have_no_collisions(capsys, written):
    assert run(["fabric", str(written("{kind: fat-tree, routing: ecmp}", nodes=8))]) == 0
    assert "Hash collisions: none, there is one path" in capsys.readouterr().out


def test_rails_of_several_leaves_have_paths_to_choose(capsys, written):
    found = _result(capsys, written("{kind: rail-only, routing: {ecmp: {queue_pairs: 4}}}", nodes=128))
    assert found["switches"]["spine"] > 0
    assert found["collisions"]["mean"] > 1
    thin = _result(capsys, written("{kind: rail-only, oversubscription: 3}", nodes=128))
    assert thin["oversubscription"] > 2
    assert thin["bisection_bytes_per_s"] < found["bisection_bytes_per_s"]


@pytest.mark.parametrize("routing", ["adaptive", "spray", "pinned"])
def test_other_routings_do_not_collide(capsys, written, routing):
    found = _result(capsys, written(f"{{kind: fat-tree, routing: {routing}}}"))["collisions"]
    assert (found["mean"], found["queue_pairs"], found["seeds"]) == (1, None, 0)


def test_power_is_absent_where_a_part_has_none(capsys, written):
    result = _result(capsys, written("{kind: fat-tree, link: roce-400, switch: spectrum-4-sn5400}"))
    assert (result["power_w"], result["switch_power_w"]) == (None, None)
    assert result["optics"]["power_w"] > 0
    assert any("is not in the catalogue" in each for each in result["assumptions"])


def test_csv_is_the_bill_of_materials(capsys):
    assert run(["fabric", "dgx-h100:64", "--format", "csv"]) == 0
    rows = {(row["part"], row["tier"]): row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert rows["switch", "leaf"]["count"] == "16"
    assert rows["switch", "spine"]["item"] == "quantum-2-qm9700"
    assert rows["cable", "leaf_spine"]["count"] == "512"


@pytest.mark.parametrize("cluster", ["dgx-h100:4", "dgx-h100:64", "dgx-b200:512", "dgx-a100:32"])
def test_csv_has_each_module_and_nothing_that_is_not_there(capsys, cluster):
    assert run(["fabric", cluster, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert all(int(row["count"]) > 0 for row in rows)
    optics = _result(capsys, cluster)["optics"]
    modules = {row["item"]: int(row["count"]) for row in rows if row["part"] == "transceiver"}
    assert sum(modules.values()) == optics["modules"]
    assert modules == (optics["by_module"] or {rows[-1]["item"]: optics["modules"]})


def test_power_of_all_switches_has_a_row_of_its_own(capsys):
    assert run(["fabric", "dgx-b200:512"]) == 0
    lines = capsys.readouterr().out.splitlines()
    core, every = (next(line for line in lines if line.startswith(word)) for word in ("core", "all switches"))
    assert core.split() == ["core", "switches", "64"]
    assert every.split() == ["all", "switches", "320", "239", "kW"]
    assert run(["fabric", "dgx-h100:4"]) == 0
    assert "all switches" not in capsys.readouterr().out


def test_files_that_were_written_are_said(capsys, tmp_path):
    cables, drawing = tmp_path / "cables.csv", tmp_path / "fabric.svg"
    assert run(["fabric", "dgx-h100:4", "--cables", str(cables), "--drawing", str(drawing)]) == 0
    assert capsys.readouterr().err == f"wrote {cables}\nwrote {drawing}\n"


@pytest.mark.parametrize("width", [60, 100, 160])
def test_table_has_every_part_and_keeps_to_the_width(capsys, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    assert run(["fabric", "dgx-b200:2048"]) == 0
    printed = capsys.readouterr().out
    words = (
        "512",
        "256",
        "16,384",
        "956 kW",
        "410 TB/s",
        "spine-core link",
        "Hash collisions",
    )
    assert all(word in printed for word in words)
    assert max(map(len, printed.splitlines())) <= width


def test_cable_list_has_every_cable(capsys, tmp_path):
    out = tmp_path / "cables.csv"
    result = _result(capsys, "dgx-h100:64", "--cables", out)
    rows = list(csv.DictReader(io.StringIO(out.read_text())))
    assert len(rows) == sum(result["cables"].values())
    assert rows[0] == {
        "tier": "node-leaf",
        "network": "1",
        "from": "node-0",
        "from_port": "nic-0",
        "to": "leaf-1",
        "to_port": "1",
    }
    assert [each.name for each in tmp_path.iterdir()] == ["cables.csv"]


def test_drawing_is_a_well_formed_picture_with_the_counts(capsys, tmp_path, written):
    out = tmp_path / "fabric.svg"
    path = written("{kind: fat-tree}", nodes=512)
    path.write_text(path.read_text() + 'name: "a <b> & c"\n')
    _result(capsys, path, "--drawing", out)
    words = [each.text for each in ET.parse(out).getroot().iter("{http://www.w3.org/2000/svg}text")]
    assert words[0].startswith("a <b> & c: fat-tree")
    assert {"512 nodes", "128 leaves", "128 spines", "64 cores", "4,096 cables"} <= set(words)


def test_planes_double_the_fabric(capsys, written):
    one = _result(capsys, written("{kind: fat-tree, link: roce-400, switch: tomahawk-5}", node="dgx-b300"))
    two = _result(
        capsys, written("{kind: fat-tree, link: roce-400, switch: tomahawk-5, planes: 2}", node="dgx-b300")
    )
    assert two["switches"]["leaf"] == 2 * one["switches"]["leaf"]
    assert two["bisection_bytes_per_s"] == 2 * one["bisection_bytes_per_s"]


@pytest.mark.parametrize(
    ("fabric", "says"),
    [
        (
            "{kind: dragonfly-plus, groups: 2}",
            "2 groups of 500 nodes need 125 leaves each, and a spine gives 32",
        ),
        ("{kind: fat-tree, groups: 2}", "has no effect: fat-tree has no groups"),
        ("{kind: leaf-spine}", "leaf-spine: 250 leaves need 250 ports of a spine, and a switch has 64"),
        ("{kind: single-switch}", "8000 links, more than the 64 that one quantum-2-qm9700 has"),
        ("{kind: fat-tree, switch: quantum-9}", "unknown switch 'quantum-9'"),
        ("{kind: single-switch, routing: ecmp}", "has no effect: single-switch has one path"),
        ("{planes: 2}", "2 links of infiniband-ndr-400 carry 800 Gbit/s, more than a NIC of the node"),
    ],
)
def test_what_cannot_be_wired_leaves_with_two(capsys, written, fabric, says):
    assert run(["fabric", str(written(fabric, nodes=1000))]) == ExitCode.WRONG_INPUT
    printed = capsys.readouterr()
    assert says in printed.err
    assert printed.out == ""


def test_dragonfly_is_wired_listed_and_drawn(capsys, tmp_path, written):
    cables, drawing = tmp_path / "c.csv", tmp_path / "d.svg"
    path = written("{kind: dragonfly-plus, routing: ecmp}", nodes=512)
    result = _result(capsys, path, "--cables", cables, "--drawing", drawing)
    assert result["cables"] == {
        "node_leaf": 4096,
        "leaf_spine": 4096,
        "spine_core": 0,
        "same_tier": 6 * 341,
    }
    rows = list(csv.DictReader(io.StringIO(cables.read_text())))
    assert sum(row["tier"] == "global" for row in rows) == 6 * 341
    words = {each.text for each in ET.parse(drawing).getroot().iter("{http://www.w3.org/2000/svg}text")}
    assert {"4 groups", "2,046 cables", "341 between two groups"} <= words
    assert run(["fabric", str(path)]) == 0
    printed = capsys.readouterr().out
    assert "cables group-group" in printed
    assert "take the links between the two" in printed


def test_few_links_between_groups_have_no_exact_law(capsys, written):
    found = _result(capsys, written("{kind: dragonfly-plus, groups: 50, routing: ecmp}", nodes=800))
    assert found["collisions"]["exact_mean"] is None
    assert any("no exact law" in line for line in found["assumptions"])


LINKS = """\
from,to,count
node-0,leaf-1,8
node-1,leaf-1,8
node-2,leaf-2,8
node-3,leaf-2,8
leaf-1,spine-1,8
leaf-2,spine-1,8
leaf-1,leaf-2,4
"""


@pytest.mark.parametrize("routing", ["adaptive", "{ecmp: {queue_pairs: 4}}", "spray", "pinned"])
def test_table_of_links_is_a_fabric(capsys, tmp_path, written, routing):
    (tmp_path / "links.csv").write_text(LINKS)
    cables, drawing = tmp_path / "c.csv", tmp_path / "d.svg"
    path = written(f"{{kind: links, links: links.csv, routing: {routing}}}", nodes=4)
    result = _result(capsys, path, "--cables", cables, "--drawing", drawing)
    assert result["switches"] == {"leaf": 2, "spine": 1, "core": 0}
    assert result["cables"] == {"node_leaf": 32, "leaf_spine": 16, "spine_core": 0, "same_tier": 4}
    # four cables between the leaves and eight over the spine
    assert result["bisection_bytes_per_s"] == 12 * 50e9
    assert (result["tiers"], result["networks"], result["reach_nodes"]) == (2, 1, [])
    assert {each["part"] for each in result["failures"]} == {
        "node-switch link",
        "switch-switch link",
        "switch",
        "node",
    }
    rows = list(csv.DictReader(io.StringIO(cables.read_text())))
    assert len(rows) == sum(result["cables"].values())
    ends = [(row["to"], row["to_port"]) for row in rows] + [(row["from"], row["from_port"]) for row in rows]
    assert len(set(ends)) == len(ends)
    words = {each.text for each in ET.parse(drawing).getroot().iter("{http://www.w3.org/2000/svg}text")}
    assert {"spine-1", "leaf-2", "node 3", "4 nodes"} <= words
    assert run(["fabric", str(path)]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


def test_table_on_one_switch_and_rates_that_differ(capsys, tmp_path, written):
    (tmp_path / "links.csv").write_text("from,to,rate,count\nnode-0,s,400 Gbit/s,8\nnode-1,s,200 Gbit/s,8\n")
    result = _result(capsys, written("{kind: links, links: links.csv}", nodes=2))
    assert (result["tiers"], result["collisions"]["mean"]) == (1, 1)
    assert (result["power_w"], result["bisection_bytes_per_s"]) == (None, 8 * 25e9)
    assert any("links of several rates" in line for line in result["assumptions"])


def test_cluster_without_fabric_leaves_with_two(capsys, written):
    assert run(["fabric", str(written("{kind: none}", nodes=1))]) == ExitCode.WRONG_INPUT
    assert "has no fabric" in capsys.readouterr().err


def test_files_that_cannot_be_written_are_refused_together_before_anything_is_read(capsys, tmp_path):
    words = ["--cables", str(tmp_path), "--drawing", str(tmp_path / "none" / "x.svg")]
    assert run(["fabric", "nonsense", *words]) == ExitCode.WRONG_INPUT
    told = capsys.readouterr().err
    assert "--cables" in told
    assert "is a directory" in told
    assert "there is no directory" in told


def test_file_that_is_read_is_not_overwritten(capsys, written):
    path = written("{kind: fat-tree}")
    assert run(["fabric", str(path), "--cables", str(path)]) == ExitCode.WRONG_INPUT
    assert "is the file that is read" in capsys.readouterr().err
    assert run(["fabric", str(path), "--cables", "a", "--drawing", "a"]) == ExitCode.WRONG_INPUT
    assert "name the same file" in capsys.readouterr().err


def test_nothing_is_left_where_a_file_cannot_be_written(capsys, monkeypatch, tmp_path):
    def refused(**_names):
        raise PermissionError(13, "Permission denied", "a name nobody gave")

    monkeypatch.setattr("tempfile.mkstemp", refused)
    out = tmp_path / "cables.csv"
    assert run(["fabric", "dgx-h100:2", "--cables", str(out)]) == ExitCode.WRONG_INPUT
    assert f"--cables {out}: cannot be written (Permission denied)" in capsys.readouterr().err


def test_three_tiers_of_16384_gpus_take_less_than_three_seconds(tmp_path, written):
    path = written("{kind: fat-tree, routing: {ecmp: {queue_pairs: 4}}}", nodes=2048, node="dgx-b200")
    words = ["--cables", str(tmp_path / "c.csv"), "--drawing", str(tmp_path / "d.svg"), "--format", "json"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    code = f"import sys; from linkwise.cli.main import run; sys.exit(run({['fabric', str(path), *words]}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime <= 3.0
    assert json.loads(done.stdout)["switches"]["core"] == 256


def test_electricity_has_a_price_where_one_is_given(capsys, written):
    path = written("{kind: rail-optimized}")
    path.write_text(path.read_text() + "prices: prices.yaml\n")
    (path.parent / "prices.yaml").write_text(
        "linkwise: prices/1\ndate: 2020-01-01\nelectricity: 0.10 USD/kWh\npue: 1.3\n"
    )
    assert run(["fabric", str(path), "--format", "json"]) == 0
    printed = capsys.readouterr()
    result = json.loads(printed.out)
    kilowatts, hours = result["power_w"] / 1e3, 365.25 * 24
    assert result["electricity_usd_per_year"] == pytest.approx(kilowatts * hours * 1.3 * 0.10)
    assert "days old" in printed.err
    assert run(["fabric", str(path)]) == 0
    assert "40,600 USD a year" in capsys.readouterr().out


CLOUDS = [name for name in catalog.names("system") if catalog.system(name).switch is None]


@pytest.mark.parametrize("system", CLOUDS)
def test_a_switch_that_is_not_known_is_inconclusive_and_two_lines_help(capsys, tmp_path, system):
    assert run(["fabric", f"{system}:8"]) == ExitCode.INCONCLUSIVE
    said = capsys.readouterr()
    assert said.out == ""
    assert f"the switch of {system}:8 is not known" in said.err
    lines = said.err.splitlines()[-2:]
    assert lines[0] == "  fabric:"
    document = "\n".join(
        ["linkwise: cluster/1", "nodes: 8", f"node: {system}", *(line[2:] for line in lines)]
    )
    path = tmp_path / "cluster.yaml"
    path.write_text(document, encoding="utf-8")
    assert run(["fabric", str(path)]) == ExitCode.DONE


def test_a_link_of_its_own_leaves_the_switch_unknown(capsys, written):
    path = written("{kind: fat-tree, link: infiniband-hdr-200}", nodes=1000)
    assert run(["fabric", str(path)]) == ExitCode.INCONCLUSIVE
    assert "the switch of dgx-h100:1000 is not known" in capsys.readouterr().err


def test_changes_leave_the_bill_and_lower_what_is_carried(capsys):
    there = str(Path(__file__).parents[2] / "examples" / "h100-256-changed.yaml")
    assert run(("fabric", there, "--format", "json")) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["switches"] == {"leaf": 8, "spine": 4, "core": 0}
    assert found["cables"]["node_leaf"] == 256
    # Of the first leaf 4 of 32 links up are lost, and half of one down.
    assert found["oversubscription"] == pytest.approx(31.5 / 28)
    assert found["bisection_bytes_per_s"] < found["as_built"]["bisection_bytes_per_s"]
    assert len(found["changes"]) == 4
    assert run(("fabric", there)) == 0
    table = capsys.readouterr().out
    for words in ("parts are counted as built", "with the changes: at most", "on top of the changes"):
        assert words in table
