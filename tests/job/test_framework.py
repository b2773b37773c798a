"""Habits of frameworks: every one complete, and found by the names that measurements use."""

import pytest

from linkwise.estimate.constants import constant_values, resolve
from linkwise.job.framework import FRAMEWORKS, framework_of
from linkwise.layout import Schedule


@pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=lambda one: one.name)
def test_framework_sets_every_habit_to_a_number_or_a_known_constant(framework):
    columns = framework.columns("fp16")
    assert set(columns) == set(FRAMEWORKS["megatron"].columns("fp16"))
    for habit in columns.values():
        resolve(habit, constant_values())


@pytest.mark.parametrize("framework", FRAMEWORKS.values(), ids=lambda one: one.name)
def test_framework_is_found_by_its_name_and_has_a_known_schedule(framework):
    assert FRAMEWORKS[framework.name] is framework
    assert Schedule.from_word(framework.schedule) is not None
    assert framework.zero_stage in (0, 1, 2, 3)


@pytest.mark.parametrize(
    ("printed", "family", "year", "name"),
    [
        ("Megatron-LM", "megatron", 2021, "megatron-classic"),
        ("Megatron-DeepSpeed", "megatron", 2022, "megatron-deepspeed"),
        ("torchtitan", "fsdp", 2024, "torchtitan"),
        ("DeepSpeed", "deepspeed", 2021, "deepspeed-2021"),
        ("DeepSpeed", "deepspeed", 2024, "deepspeed"),
        ("PyTorch DDP", "ddp", 2023, "ddp"),
    ],
)
def test_framework_of_goes_by_name_year_and_family(printed, family, year, name):
    assert framework_of(framework=printed, family=family, year=year).name == name


@pytest.mark.parametrize(
    ("printed", "family", "year", "early"),
    [
        ("llm-foundry/Composer FSDP", "fsdp", 2023, 0.0),
        ("torchtitan", "fsdp", 2024, 1.0),
        ("PyTorch FSDP", "fsdp", 2026, 1.0),
        ("MaxText (JAX)", "jax", 2023, 1.0),
        ("Megatron-LM", "megatron", 2025, 0.0),
    ],
)
def test_recomputation_stops_early_in_pytorch_from_2_1_on_and_in_xla(printed, family, year, early):
    found = framework_of(framework=printed, family=family, year=year)
    assert found.columns("bf16")["recompute_stops_early"] == early


def test_tensor_traffic_of_torchtitan_shows():
    assert FRAMEWORKS["torchtitan"].columns("bf16")["tensor_exposed_fraction"] == 1.0


@pytest.mark.parametrize("family", ["other", "", "unheard of"])
def test_framework_of_gives_one_never_seen_a_default(family):
    assert framework_of(framework="something new", family=family, year=2026) in FRAMEWORKS.values()
