import pytest

from linkwise.cluster import load_cluster
from linkwise.estimate import estimate_layout
from linkwise.estimate.trace import sensitivities, trace
from linkwise.job import Job
from linkwise.layout import Layout
from linkwise.model import load_model

H100 = load_cluster("dgx-h100:32")
LLAMA = Job(model=load_model("llama-3.1-70b"), sequence_length=8192, global_batch=1024)
LAYOUT = Layout(tensor=8, pipeline=4, virtual_pipeline=5, zero_stage=1)


def test_trace_when_a_term_is_an_input_shows_it_before():
    seen = set()
    for term in trace(LLAMA, H100, LAYOUT):
        assert all(one.name in seen for one in term.inputs if one.origin == "term"), term.name
        assert term.formula
        assert term.source
        seen.add(term.name)
    assert {"step_time_s", "memory_bytes"} <= seen


def test_trace_when_values_are_looked_up_agrees_with_the_estimate():
    values = {term.name: term.value for term in trace(LLAMA, H100, LAYOUT)}
    estimate = estimate_layout(LLAMA, H100, LAYOUT)
    assert values["step_time_s"] == estimate.step_time_s
    assert values["memory_bytes"] == estimate.memory_bytes


def test_trace_when_an_input_is_a_figure_names_basis_source_and_layer():
    inputs = {one.name: one for term in trace(LLAMA, H100, LAYOUT) for one in term.inputs}
    peak = inputs["peak_linear_flop_per_s"]
    assert (peak.value, peak.basis, peak.layer) == (989e12, "datasheet", "catalogue")
    assert inputs["gemm_efficiency"].layer == "shipped fit"
    assert inputs["tensor"].origin == "layout"
    assert inputs["global_batch"].origin == "job"
    assert inputs["hidden"].origin == "model"
    assert inputs["nic_bytes_per_s"].basis == "derived"


def test_sensitivities_when_a_layout_is_bound_by_compute_rank_flops_first():
    found = {one.figure: one for one in sensitivities(LLAMA, H100, LAYOUT)}
    assert set(found) == {"tensor FLOP/s", "memory bandwidth", "NVLink", "NIC", "latency of sends"}
    assert found["tensor FLOP/s"].saved_fraction > found["memory bandwidth"].saved_fraction
    step = estimate_layout(LLAMA, H100, LAYOUT).step_time_s
    for one in found.values():
        assert one.saved_s >= 0.0
        assert one.step_time_s + one.saved_s == pytest.approx(step)
