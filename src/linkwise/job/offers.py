"""What training frameworks let a user choose, so that a search names only layouts that can be launched.

To add a framework: its habits in `linkwise.job.framework`, its choices here, a test in
`tests/search/test_offers.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from linkwise.job.framework import Framework
from linkwise.layout import ContextExchange, RankOrder, Recompute, Schedule

__all__ = ["EVERYTHING", "OFFERS", "Offer", "offer_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """Choices of one framework.

    Parameters
    ----------
    tensor, context, expert, pipeline
        Whether it has that kind of parallelism.
    interleaves
        Most chunks of layers per stage; 1 is no interleaving.
    zero_stages
        Stages of sharding it has, the usual one first.
    sharded_pipeline
        Whether gradients and parameters can be sharded (ZeRO 2 and 3) beside a pipeline.
    hybrid_shard
        Whether parameters can be sharded inside an NVLink domain and replicated across.
    recompute, schedules, rank_orders, context_exchanges
        Choices it has, the usual one first.
    sequence_parallel
        Choices beside tensor parallelism, the usual one first.
    experts_need_sequence_parallel
        Whether experts beside tensor parallelism need sequence parallelism.
    """

    tensor: bool = True
    context: bool = True
    expert: bool = True
    pipeline: bool = True
    interleaves: int = 1
    zero_stages: tuple[int, ...] = (0,)
    sharded_pipeline: bool = True
    hybrid_shard: bool = False
    recompute: tuple[Recompute, ...] = tuple(Recompute)
    schedules: tuple[Schedule, ...] = (Schedule.ONE_F_1F1B,)
    rank_orders: tuple[RankOrder, ...] = (RankOrder.TENSOR_CONTEXT_DATA_PIPELINE,)
    context_exchanges: tuple[ContextExchange, ...] = (ContextExchange.RING,)
    sequence_parallel: tuple[bool, ...] = (True, False)
    experts_need_sequence_parallel: bool = False


_MOST_CHUNKS = 1_000

_MEGATRON = Offer(
    interleaves=_MOST_CHUNKS,
    zero_stages=(1, 0),  # the distributed optimizer
    rank_orders=tuple(RankOrder),  # --use-tp-pp-dp-mapping
    context_exchanges=tuple(ContextExchange),  # --cp-comm-type p2p, a2a
    experts_need_sequence_parallel=True,
)
_CLASSIC = Offer(
    context=False,
    expert=False,
    interleaves=_MOST_CHUNKS,
    zero_stages=(0, 1),
    sequence_parallel=(False,),
)

OFFERS: Mapping[str, Offer] = MappingProxyType(
    {
        "megatron": _MEGATRON,
        "megatron-plain": _MEGATRON,
        "megatron-classic": _CLASSIC,
        "megatron-deepspeed": _CLASSIC,
        "torchtitan": Offer(
            interleaves=_MOST_CHUNKS,
            zero_stages=(3, 2),
            hybrid_shard=True,
            schedules=(Schedule.ONE_F_1F1B, Schedule.ZERO_BUBBLE),
        ),
        "fsdp": Offer(
            tensor=False,
            context=False,
            expert=False,
            pipeline=False,
            zero_stages=(3, 2),
            hybrid_shard=True,
        ),
        "deepspeed": Offer(
            context=False,
            zero_stages=(3, 2, 1, 0),
            sharded_pipeline=False,  # its pipeline engine refuses ZeRO 2 and 3
            sequence_parallel=(False,),
        ),
        "deepspeed-2021": Offer(
            context=False,
            expert=False,
            zero_stages=(3, 2, 1, 0),
            sharded_pipeline=False,
            sequence_parallel=(False,),
        ),
        "gpipe": Offer(
            tensor=False,
            context=False,
            expert=False,
            schedules=(Schedule.GPIPE,),
            recompute=(Recompute.NONE, Recompute.FULL),
        ),
        "jax": Offer(
            interleaves=_MOST_CHUNKS, zero_stages=(3, 0), hybrid_shard=True, sequence_parallel=(False, True)
        ),
        "ddp": Offer(tensor=False, context=False, expert=False, pipeline=False),
    }
)
"""Choices by name of the framework; one that is not listed gets those of its family."""

EVERYTHING = Offer(
    interleaves=_MOST_CHUNKS,
    zero_stages=(0, 1, 2, 3),
    hybrid_shard=True,
    schedules=(Schedule.ONE_F_1F1B, Schedule.ZERO_BUBBLE),
    rank_orders=tuple(RankOrder),
    context_exchanges=tuple(ContextExchange),
)
"""Every choice there is a formula for, whether or not one framework has them all."""


def offer_of(framework: Framework) -> Offer:
    """Return what a framework lets a user choose.

    Parameters
    ----------
    framework
        The framework; one without an entry gets that of its family, else Megatron's.
    """
    return OFFERS.get(framework.name) or OFFERS.get(framework.family) or _MEGATRON
