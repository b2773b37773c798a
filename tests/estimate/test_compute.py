"""Terms of the arithmetic, one by one, against values worked by hand."""

import numpy as np
import pytest

from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.terms import TERMS


def value(name, **columns):
    fixed = {column: np.array([float(given)]) for column, given in columns.items()}
    return Evaluation(Table(rows=1, fixed=fixed), TERMS).fixed(name)


def test_linear_forward_of_one_square_product():
    # 2 x 4096 tokens x 8192^2 at 500 TFLOP/s is 1.0995 ms; 2 x (4096 x 8192 + 8192^2 + 4096 x 8192) bytes at
    # 3 TB/s are 89.48 us, times a saturation of 1.5
    seconds = value(
        "linear_forward_s",
        tokens=4096, tensor=1, sequence_parallel=0, linear_whole_parameters=0, linear_parameters=8192**2, linear_in_cut=0, linear_in_whole=8192, linear_out_cut=8192,
        linear_out_whole=0, linear_flop_per_s=500e12, memory_bytes_per_s=3e12, gemm_saturation=1.5, operand_bytes=2,
    )  # fmt: skip
    assert seconds == pytest.approx(1.09951e-3 + 1.5 * 89.478e-6, rel=1e-4)


@pytest.mark.parametrize(
    ("full", "sliding", "window", "keys"),
    [
        (1.0, 0.0, 0, 8192),
        (0.0, 1.0, 1024, 2 * 1024 - 1024**2 / 8192),
        (0.5, 0.5, 1024, (8192 + 1920) / 2),
        (0.25, 0.0, 0, 8192),  # three layers of four without softmax: the span is that of the fourth
        (0.0, 1.0, 100_000, 8192),
    ],
)
def test_attention_span_of_windows(full, sliding, window, keys):
    span = value(
        "attention_span",
        sequence_length=8192,
        full_layers_fraction=full,
        sliding_layers_fraction=sliding,
        sliding_window=window,
        index_topk=0,
    )
    assert span == pytest.approx(keys)


def test_attention_flop_is_the_full_square_of_narayanan():
    # Narayanan et al., 2021, appendix: scores and values together 4 B s^2 h
    flop = value(
        "attention_flop", tokens=2048, tensor=1, attention_span=2048, attention_heads_width=2 * 12288,
        sequence_length=2048, index_width=0, linear_state_width=0,
    )  # fmt: skip
    assert flop == pytest.approx(4 * 2048**2 * 12288)


@pytest.mark.parametrize(("expert", "cut"), [(1, 4), (8, 4), (16, 4), (32, 1)])
def test_experts_are_cut_by_tensor_ranks_until_they_spread_over_them(expert, cut):
    assert value("expert_tensor", expert=expert, data=16, context=1, tensor=4) == cut


@pytest.mark.parametrize(
    ("gpu", "host", "seconds"), [(1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (1.0, 0.9, 1.0), (1.0, 1.1, 1.1)]
)
def test_layer_takes_the_longer_of_gpu_and_host(gpu, host, seconds):
    one = value("layer_forward_s", forward_gpu_s=gpu, host_layer_s=host, mixture_layer_s=9, moe_fraction=0)
    assert one == pytest.approx(seconds)


@pytest.mark.parametrize(("early", "seconds"), [(0.0, 3.0), (1.0, 3.0 - 1.1 * 0.25 * 2.0)])
def test_full_recomputation_leaves_out_the_last_product_where_it_stops_early(early, seconds):
    one = value(
        "layer_recompute_s", recompute=2, layer_forward_s=3.0, attention_forward_s=0.5, linear_forward_s=2.0,
        selective_linear_fraction=0, recompute_stops_early=early, last_product_fraction=0.25, kernel_factor=1.1,
    )  # fmt: skip
    assert one == pytest.approx(seconds)


def test_products_that_no_rank_cuts_are_done_whole_unless_the_sequence_is_sharded():
    columns = {
        "tokens": 1000, "tensor": 4, "linear_parameters": 5e6, "linear_whole_parameters": 1e6, "linear_in_cut": 0,
        "linear_in_whole": 0, "linear_out_cut": 0, "linear_out_whole": 0, "linear_flop_per_s": 1e12,
        "memory_bytes_per_s": 1e12, "gemm_saturation": 0, "operand_bytes": 2,
    }  # fmt: skip
    whole = value("linear_forward_s", sequence_parallel=0, **columns)
    sharded = value("linear_forward_s", sequence_parallel=1, **columns)
    assert whole == pytest.approx(2 * 1000 * (1e6 + 1e6) / 1e12)
    assert sharded == pytest.approx(2 * 1000 * (1e6 + 0.25e6) / 1e12)


def test_sparse_index_leaves_a_query_its_pick_of_keys():
    span = value(
        "attention_span", sequence_length=131_072, full_layers_fraction=1, sliding_layers_fraction=0,
        sliding_window=0, index_topk=2048,
    )  # fmt: skip
    assert span == pytest.approx(2 * 2048 - 2048**2 / 131_072)
