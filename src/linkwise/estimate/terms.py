"""The visible table of every term of an estimate; to add one, write it in its module and it appears here."""

from __future__ import annotations

from linkwise.estimate import communication, compute, data_parallel, memory, schedule
from linkwise.estimate.term import term_table

TERMS = term_table(compute.TERMS, communication.TERMS, data_parallel.TERMS, schedule.TERMS, memory.TERMS)

STEP_PARTS = (
    "compute_s",
    "tensor_s",
    "context_s",
    "expert_s",
    "pipeline_s",
    "bubble_s",
    "data_s",
    "optimizer_s",
    "overhead_s",
)
"""Terms that sum to `step_time_s`."""

MEMORY_PARTS = (
    "weight_memory_bytes",
    "gradient_memory_bytes",
    "optimizer_memory_bytes",
    "gathered_memory_bytes",
    "activation_memory_bytes",
    "loss_memory_bytes",
    "fragment_memory_bytes",
    "reserve_memory_bytes",
)
"""Terms that sum to `memory_bytes`."""
