"""The shipped constants: each with source, basis and range, and read by some estimate."""

import json
from dataclasses import replace
from importlib.resources import files

import pytest

from linkwise import catalog
from linkwise.estimate.constants import shipped_constants
from linkwise.estimate.inputs import OPERAND_BYTES, gpu_inputs
from linkwise.job.framework import FRAMEWORKS

ENTRIES = json.loads(files("linkwise.estimate").joinpath("constants.json").read_text(encoding="utf-8"))
FITTED = {name: entry for name, entry in ENTRIES.items() if entry.get("fit")}
NETWORK = {"network_contention_rdma", "network_fraction_tcp_single", "network_fraction_tcp_many"}


def read_names():
    """Return the constants that some framework, GPU or network names."""
    found = {*NETWORK, "pcie_fraction"}
    early = replace(FRAMEWORKS["megatron"], early_hopper=True)
    for framework in (*FRAMEWORKS.values(), early):
        for precision in OPERAND_BYTES:
            found |= {cell for cell in framework.columns(precision).values() if isinstance(cell, str)}
        for name in catalog.names("gpu"):
            gpu = catalog.gpu(name)
            rates = [each for each in OPERAND_BYTES if each in gpu.flop_per_s]
            for precision in rates if gpu.flop_per_s.keys() & {"bf16", "fp16"} else ():
                cells = gpu_inputs(gpu, precision=precision, framework=framework).values()
                found |= {cell for cell in cells if isinstance(cell, str)}
    return found


def test_every_constant_has_unit_basis_and_source():
    for name, figure in shipped_constants().items():
        assert figure.unit, name
        assert figure.source.strip(), name


def test_fitted_constants_lie_in_their_range():
    for name, entry in FITTED.items():
        assert entry["low"] <= entry["value"] <= entry["high"], name
        assert entry["basis"] == "fitted", name


def test_fitted_constants_are_twenty_five_at_most():
    assert 12 <= len(FITTED) <= 25


def test_every_constant_is_read_and_every_name_is_a_constant():
    assert read_names() == set(ENTRIES)


@pytest.mark.parametrize("name", ["gemm_efficiency_half_hopper", "reserve_bytes"])
def test_shipped_figures_say_which_layer_they_are_of(name):
    assert shipped_constants()[name].layer == "shipped fit"
