"""How a training job is cut over GPUs: degrees of parallelism, schedule, recomputation, rank order.

Not here: what a layout costs (`estimate`), which one is best (`search`), whether a model allows it (`job`).
Read `layout.py` first, then `ranks.py` (where each rank sits).
"""

from linkwise.layout.layout import ContextExchange, Layout, RankOrder, Recompute, Schedule
from linkwise.layout.ranks import rank_places

__all__ = ["ContextExchange", "Layout", "RankOrder", "Recompute", "Schedule", "rank_places"]
