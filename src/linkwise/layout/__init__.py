"""How a training job is cut over GPUs: degrees of parallelism, schedule, recomputation, rank order.

Not here: what a layout costs (`estimate`), which one is best (`search`), whether a model allows it (`job`).
Read `layout.py` first.
"""

from linkwise.layout.layout import ContextExchange, Layout, RankOrder, Recompute, Schedule

__all__ = ["ContextExchange", "Layout", "RankOrder", "Recompute", "Schedule"]
