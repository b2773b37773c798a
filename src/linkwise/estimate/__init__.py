"""Memory, compute, communication, energy and money of a training step, as terms on columns.

Not here: which layout is best (`search`), how well the numbers hold (`calibrate`), collectives themselves
(`network`). Read first: `estimate.Estimate`, then `terms` (the table of every term), `columns` (how they are
evaluated), `job_inputs` (from a job and a cluster to the columns terms read) and `trace` (what `explain`
prints).
"""

from linkwise.estimate.estimate import Estimate, estimate_layout, estimate_layouts

__all__ = ["Estimate", "estimate_layout", "estimate_layouts"]
