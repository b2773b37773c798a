"""Lookups: names, aliases, errors, layers, and figures that are known from elsewhere."""

import csv
import pickle
import subprocess
import sys
import time
from pathlib import Path

import pytest

from linkwise import catalog
from linkwise.catalog import store
from linkwise.catalog.fields import FOLDERS, plain_name
from linkwise.errors import InputError, UnknownName
from linkwise.figures import Basis, Figure

SPELLINGS = Path(__file__).parents[1] / "data" / "gpu_spellings.csv"
BANDWIDTH = Figure(value=3.1e12, unit="B/s", basis=Basis.FITTED, source="stas_acc")
KEY = "gpu/h100-sxm/memory_bandwidth_bytes_per_s"


@pytest.mark.parametrize(
    ("kind", "count"),
    [
        ("gpu", 46),
        ("system", 42),
        ("nic", 18),
        ("link", 22),
        ("switch", 13),
        ("cable", 10),
        ("model", 139),
        ("nvlink", 6),
        ("nvswitch", 4),
        ("pcie", 4),
        ("cpu-link", 8),
        ("c2c", 3),
        ("latency", 45),
        ("efficiency", 11),
        ("budget", 1),
    ],
)
def test_catalogue_holds_all_entries_of(kind: str, count: int) -> None:
    assert len(catalog.names(kind)) == count


def test_every_entry_becomes_a_value() -> None:
    for kind in ("gpu", "system", "link", "switch", "nic", "cable", "model"):
        for name in catalog.names(kind):
            assert getattr(catalog, kind)(name).name == name


def test_every_alias_finds_its_entry_in_any_spelling() -> None:
    for kind in catalog.kinds():
        for name in catalog.names(kind):
            entry = catalog.entry(kind, name)
            for alias in (name, *entry.aliases, *entry.assumed_aliases):
                assert store.resolve(kind, alias.upper().replace("-", "_")) == name


@pytest.mark.parametrize(
    ("kind", "given", "name"),
    [
        ("gpu", "H100_SXM", "h100-sxm"),
        ("gpu", "h100 sxm", "h100-sxm"),
        ("gpu", "NVIDIA B200", "b200-sxm"),
        ("system", "DGX H100", "dgx-h100"),
        ("system", "GB200_NVL72", "gb200-nvl72"),
        ("system", "p5.48xlarge", "aws-p5"),
        ("system", "Standard_ND96isr_H100_v5", "azure-nd-h100-v5"),
        ("switch", "Quantum-2_QM9700", "quantum-2-qm9700"),
        ("link", "infiniband-ndr-400", "infiniband-ndr-400"),
        ("nic", "EFAv3", "efa-v3"),
        ("model", "gpt3-175b", "gpt-3-175b"),
        ("model", "GPT-3-175B", "gpt-3-175b"),
        ("model", "meta-llama/Llama-3.1-70B", "llama-3.1-70b"),
        ("model", "meta-llama/Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("model", "llama3.1-8b", "llama-3.1-8b"),
        ("model", "Qwen/Qwen3-235B-A22B-FP8", "qwen3-235b-a22b"),
        ("model", "GPT h1024 L12", "gpt-h1024-l12"),
    ],
)
def test_entry_is_found_when_spelled(kind: str, given: str, name: str) -> None:
    assert catalog.entry(kind, given).name == name


@pytest.mark.parametrize(
    ("system", "gpu", "nic", "gbit_per_s", "link"),
    [
        ("dgx-a100", "a100-sxm-80gb", "connectx-6", 200, "infiniband-hdr-200"),
        ("dgx-h100", "h100-sxm", "connectx-7", 400, "infiniband-ndr-400"),
        ("dgx-h200", "h200-sxm", "connectx-7", 400, "infiniband-ndr-400"),
        ("dgx-b200", "b200-sxm", "connectx-7", 400, "infiniband-ndr-400"),
        ("dgx-b300", "b300-sxm", "connectx-8", 800, "infiniband-xdr-800"),
        ("gb200-nvl72", "gb200", "connectx-7", 400, "infiniband-ndr-400"),
    ],
)
def test_system_has_its_parts(system: str, gpu: str, nic: str, gbit_per_s: int, link: str) -> None:
    found = catalog.system(system)
    assert (found.gpu, found.nic, found.link, found.kind) == (gpu, nic, link, "system")
    assert found.nic_bytes_per_s == gbit_per_s * 1e9 / 8
    assert found.switch is not None


def test_rack_has_nodes_of_four_and_one_nvlink_domain() -> None:
    rack = catalog.system("gb200-nvl72")
    assert (rack.gpus, rack.gpus_per_node, rack.nvlink_domain_gpus, rack.nics) == (72, 4, 72, 4)


def test_gpu_figures_are_dense_and_of_one_direction() -> None:
    """H100 SXM5 data sheet: 3.35 TB/s, 989 TFLOP/s dense BF16, 900 GB/s NVLink both ways."""
    gpu = catalog.gpu("h100-sxm")
    assert gpu.memory_bandwidth_bytes_per_s == 3.35e12
    assert gpu.flop_per_s["bf16"] == 989e12
    assert gpu.nvlink_bytes_per_s == 450e9
    assert gpu.memory_bytes == 81559 * 2**20  # MiB that nvidia-smi prints
    assert gpu.figure("memory_bytes").basis is Basis.MEASURED
    assert gpu.figure("bf16_flop_per_s").source == "stas_acc, stas_net, aic"


def test_gpu_lacks_a_precision_it_does_not_have() -> None:
    assert "bf16" not in catalog.gpu("v100-sxm2-32gb").flop_per_s
    assert "nvfp4" in catalog.gpu("b200").flop_per_s


def test_amd_gpu_has_its_fabric_as_scale_up_link() -> None:
    gpu = catalog.gpu("mi300x")
    assert (gpu.scale_up, gpu.nvlink_bytes_per_s, gpu.nvlink_generation) == ("Infinity Fabric", 448e9, None)
    assert gpu.figure("nvlink_link_bytes_per_s").value == 64e9


def test_gpu_without_scale_up_link_has_none() -> None:
    assert catalog.gpu("l40s").nvlink_bytes_per_s is None
    assert catalog.gpu("a100-pcie-80gb").scale_up_form == "bridge, pairs"


def test_switch_capacity_is_its_ports() -> None:
    for name in catalog.names("switch"):
        switch = catalog.switch(name)
        capacity = switch.figures.get("switching_bytes_per_s")
        if capacity is not None:
            assert capacity.value == pytest.approx(switch.ports * switch.port_bytes_per_s)


def test_figures_are_sane_everywhere() -> None:
    for name in catalog.names("gpu"):
        gpu = catalog.gpu(name)
        assert 1e10 < gpu.memory_bytes < 1e12
        assert 1e11 < gpu.memory_bandwidth_bytes_per_s < 1e14
        assert all(1e13 <= peak < 1e17 for peak in gpu.flop_per_s.values())
        label = gpu.figures.get("memory_label_bytes")
        assert label is None or 0.95 < gpu.memory_bytes / label.value < 1.08
    for name in catalog.names("link"):
        link = catalog.link(name)
        assert 0 < link.achieved_fraction <= 1
        assert 1e-6 < link.hop_s < 1e-3
        assert 1e9 < link.bytes_per_s <= 1e11


def test_system_links_fit_their_nics() -> None:
    for name in catalog.names("system"):
        system = catalog.system(name)
        if system.nic is not None:
            assert system.nic_bytes_per_s <= catalog.nic(system.nic).bytes_per_s * 4
        assert system.gpus % system.gpus_per_node == 0


def test_every_figure_cites_known_sources_and_every_price_has_a_date() -> None:
    for kind in FOLDERS:
        for name in catalog.names(kind):
            entry = catalog.entry(kind, name)
            for key in entry.sources:
                assert catalog.source(key).reference
            for field, figure in entry.figures.items():
                assert figure.source
                assert figure.date or "usd" not in field
                assert figure.layer == "catalogue"


def test_model_keeps_shape_and_published_count_as_printed() -> None:
    model = catalog.model("llama-3.1-70b")
    assert (model.shape["layers"], model.shape["hidden"], model.shape["kv_heads"]) == (80, 8192, 8)
    assert model.shape["moe_experts"] is None
    assert model.published_parameters_text == "70.55"
    assert model.published_active_text is None
    assert model.hugging_face == "meta-llama/Llama-3.1-70B"
    assert "Meta-Llama-3.1-70B" in model.source
    assert catalog.model("nanotron-80b").published_parameters_text == "80.0"
    assert catalog.model("deepseek-v3").published_active_text == "37"


def test_models_without_shape_are_kept_and_marked() -> None:
    unknown = [name for name in catalog.names("model") if not catalog.model(name).has_shape]
    assert len(unknown) == 4
    assert catalog.entry("model", unknown[0]).text["shape"] == "unknown"


def test_gpu_alias_resolves_every_spelling_of_measured_data() -> None:
    with SPELLINGS.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) > 75
    for row in rows:
        found = catalog.gpu_alias(row["name"])
        assert plain_name(found.name) == plain_name(row["gpu"])
        assert found.exact == (row["exact"] == "1")


def test_unknown_name_says_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"unknown GPU 'h100-sx'; did you mean h100-sxm"):
        catalog.gpu("h100-sx")
    with pytest.raises(UnknownName, match="did you mean dgx-h100"):
        catalog.system("dgx-h10O")
    with pytest.raises(UnknownName, match=r"did you mean llama-3\.1-70b"):
        catalog.model("llama-3.1-71b")
    with pytest.raises(UnknownName, match="did you mean gpu"):
        catalog.names("gpus")
    with pytest.raises(UnknownName, match="did you mean tdp_w"):
        catalog.gpu("h100").figure("tdp")


def test_separator_between_digits_keeps_names_apart() -> None:
    assert plain_name("gpt3-5b") != plain_name("gpt-35b")
    assert plain_name("Llama_3 70B") == plain_name("llama-3-70b") != plain_name("llama-37-0b")


def test_layer_takes_the_place_of_a_figure_and_says_so() -> None:
    view = catalog.with_layers(catalog.Layer(name="site", figures={KEY: BANDWIDTH}))
    gpu = view.gpu("H100 SXM")
    assert gpu.memory_bandwidth_bytes_per_s == 3.1e12
    assert gpu.figure("memory_bandwidth_bytes_per_s").layer == "site"
    assert gpu.figure("tdp_w").layer == "catalogue"
    assert catalog.gpu("h100-sxm").memory_bandwidth_bytes_per_s == 3.35e12


def test_later_layer_wins() -> None:
    low = catalog.Layer(name="fit", figures={KEY: BANDWIDTH})
    high = catalog.Layer(name="command line", figures={KEY: BANDWIDTH.scaled(1.1)})
    figure = catalog.with_layers(low, high).gpu("h100").figure("memory_bandwidth_bytes_per_s")
    assert (figure.layer, figure.value) == ("command line", pytest.approx(3.41e12))


def test_layer_may_add_a_price() -> None:
    price = Figure(value=2.5 / 3600, unit="USD/s", basis=Basis.ASSUMED, source="estimate", date="2026")
    view = catalog.with_layers(
        catalog.Layer(name="prices", figures={"system/dgx-h100/price_usd_per_s": price})
    )
    assert view.system("dgx-h100").figure("price_usd_per_s").value == 2.5 / 3600


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("h100-sxm/tdp_w", "write it as kind/name/field"),
        ("gpu/h100-sxm/tdp_w", "is in 'B/s', and the field is in 'W'"),
        ("gpu/h101/memory_bandwidth_bytes_per_s", "unknown GPU 'h101'"),
        ("gpu/h100-sxm/memory_bandwidth", "says no unit"),
    ],
)
def test_layer_is_refused_when_its_key_is_wrong(key: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        catalog.with_layers(catalog.Layer(name="site", figures={key: BANDWIDTH}))


def test_values_survive_another_process_and_serve_as_keys() -> None:
    for value in (catalog.gpu("h100"), catalog.system("dgx-h100"), catalog.model("gpt-3-175b")):
        assert pickle.loads(pickle.dumps(value)) == value
        assert hash(value) == hash(pickle.loads(pickle.dumps(value)))


def test_loading_takes_milliseconds() -> None:
    best = 1.0
    for _ in range(5):
        store._compiled.cache_clear()
        begin = time.perf_counter()
        store._compiled()
        best = min(best, time.perf_counter() - begin)
    assert best < 0.015


def test_lookup_imports_nothing_heavy() -> None:
    heavy = "{'numpy', 'pint', 'pydantic', 'ruamel.yaml', 'rich', 'importlib.metadata'}"
    code = f"import sys; from linkwise import catalog; catalog.gpu('h100'); print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
