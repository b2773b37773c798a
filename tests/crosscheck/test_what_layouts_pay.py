"""What a layout pays where the papers and the frameworks leave no doubt; what is not priced yet is marked."""

import pytest

from linkwise.cluster import load_cluster
from linkwise.cluster.reading import parse_cluster
from linkwise.errors import InputError
from linkwise.estimate import estimate_layout
from linkwise.estimate.columns import Evaluation, Table
from linkwise.estimate.estimate import assumptions_of
from linkwise.estimate.job_inputs import checked_layout, fixed_columns, layout_columns
from linkwise.estimate.terms import TERMS
from linkwise.job import Job
from linkwise.layout import Layout, RankOrder, Recompute
from linkwise.model import load_model


def evaluation_of(model, cluster, layout, *, framework="megatron", sequence=4096, batch=256):
    job = Job(model=load_model(model), sequence_length=sequence, global_batch=batch, framework=framework)
    where = load_cluster(cluster)
    placed = [checked_layout(job, where, layout)]
    table = Table(rows=1, fixed=fixed_columns(job, where), varying=layout_columns(placed))
    return Evaluation(table, TERMS)


def test_selective_recomputation_costs_the_attention_core():
    # Korthikanti et al., 2022, section 5: scores, softmax, dropout and their product with the values
    layout = Layout(tensor=8, pipeline=8, recompute=Recompute.SELECTIVE, sequence_parallel=True)
    evaluation = evaluation_of(
        "gpt-3-175b", "dgx-a100:8", layout, framework="megatron-classic", sequence=2048, batch=64
    )
    assert evaluation.fixed("layer_recompute_s") == evaluation.fixed("attention_forward_s")


def test_full_recomputation_repeats_the_all_reduces_of_the_forward_pass():
    # Megatron recomputes a whole layer, its two all-reduces included: six instead of four.
    def exposed_s(recompute):
        layout = Layout(tensor=8, pipeline=8, recompute=recompute)
        one = evaluation_of(
            "gpt-3-175b", "dgx-a100:8", layout, framework="megatron-classic", sequence=2048, batch=64
        )
        return one.fixed("layer_tensor_s")

    assert exposed_s(Recompute.FULL) == pytest.approx(1.5 * exposed_s(Recompute.NONE), rel=0.01)


@pytest.mark.requires("torch")
@pytest.mark.parametrize(("reentrant", "again"), [(True, 2), (False, 1)])
def test_checkpointed_block_of_pytorch_is_computed_again_without_its_last_product(reentrant, again):
    import torch
    from torch.utils.checkpoint import checkpoint
    from torch.utils.flop_counter import FlopCounterMode

    block = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.Linear(32, 8))
    one_product = 2 * 4 * 8 * 32
    with FlopCounterMode(display=False) as counted:
        checkpoint(block, torch.ones(4, 8, requires_grad=True), use_reentrant=reentrant).sum().backward()
    assert counted.get_total_flops() == (2 + again + 4) * one_product


def test_interleaving_divides_the_bubble_by_its_depth():
    # Narayanan et al., 2021, section 2.2.2: (p - 1)/(v m) of the ideal time
    def bubble_s(depth):
        layout = Layout(tensor=8, pipeline=8, virtual_pipeline=depth)
        return evaluation_of("gpt-3-175b", "dgx-h100:8", layout).fixed("bubble_s")

    assert bubble_s(3) == pytest.approx(bubble_s(1) / 3.0)


def test_expert_group_pays_the_nics_when_stages_sit_between_its_ranks():
    # Stages fill a node of eight (tensor 2, pipeline 4), so four data ranks are on four nodes, and so are the
    # experts they share.
    layout = Layout(tensor=2, pipeline=4, expert=4, rank_order=RankOrder.TENSOR_CONTEXT_PIPELINE_DATA)
    try:
        evaluation = evaluation_of("mixtral-8x7b", "dgx-h100:8", layout)
    except InputError:
        return  # Megatron-Core refuses it: expert groups need the stages outermost
    assert evaluation.fixed("expert_local") == 1.0


def test_experts_that_no_other_rank_holds_are_not_gathered():
    # ZeRO 3 shards an expert over the ranks that hold it; eight experts over eight ranks leave one each.
    layout = Layout(expert=8, zero_stage=3)
    evaluation = evaluation_of("mixtral-8x7b", "dgx-h100:1", layout, framework="torchtitan", batch=64)
    rate = evaluation.fixed("nvlink_reached_bytes_per_s")
    passes = 2.0 * evaluation.fixed("gather_element_bytes") + evaluation.fixed("gradient_element_bytes")
    dense = evaluation.fixed("stage_dense_parameters") * passes * evaluation.fixed("sharded_passes") / rate
    assert evaluation.fixed("sharded_traffic_s") < 1.2 * dense


def test_sparse_attention_costs_less_than_full_attention_of_a_long_sequence():
    # DeepSeek-AI, DeepSeek-V3.2, 2025: at 131,072 tokens a query meets 2,048 keys
    layout = Layout(pipeline=16, expert=8)

    def attention_s(model):
        one = evaluation_of(model, "dgx-h100:16", layout, sequence=131_072, batch=128)
        return one.fixed("attention_forward_s")

    assert attention_s("deepseek-v3.2") < 0.5 * attention_s("deepseek-v3")


def test_full_recomputation_passes_keys_and_values_around_once_more():
    def context_s(recompute):
        layout = Layout(tensor=2, context=16, recompute=recompute)
        return evaluation_of("llama-3.1-8b", "dgx-h100:4", layout, sequence=131_072, batch=8).fixed(
            "layer_context_s"
        )

    assert context_s(Recompute.FULL) > context_s(Recompute.NONE)


def test_routing_changes_an_estimate_or_is_said_to_be_left_out():
    job = Job(model=load_model("llama-3.1-70b"), sequence_length=8192, global_batch=1024)
    layout = Layout(tensor=8, pipeline=4, zero_stage=1)

    def told(routing):
        cluster = parse_cluster(
            f"linkwise: cluster/1\nnodes: 32\nnode: dgx-h100\nfabric: {{kind: fat-tree, routing: {routing}}}\n"
        )
        return estimate_layout(job, cluster, layout), assumptions_of(job, cluster)

    assert told("adaptive") != told("ecmp")


@pytest.mark.parametrize(
    ("framework", "layout"),
    [
        ("megatron", Layout(tensor=8, pipeline=4, virtual_pipeline=7)),  # 80 layers in 28 chunks
        ("ddp", Layout(tensor=8, pipeline=4)),  # it has neither
        ("megatron", Layout(tensor=8, pipeline=4, zero_stage=2)),  # gradients sharded at no cost
        ("torchtitan", Layout(tensor=8, zero_stage=3, hybrid_shard=True)),  # one rank to shard over
    ],
)
def test_fixed_layout_that_cannot_run_is_refused(framework, layout):
    refused = False
    try:
        evaluation_of("llama-3.1-70b", "dgx-h100:32", layout, framework=framework, batch=1024)
    except InputError:
        refused = True
    assert refused
