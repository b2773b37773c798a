"""Linkwise chooses interconnects and parallel layouts for training language models on GPU clusters.

It predicts step time, memory and price of a job from a description of the cluster, with the source
and the interval of every number. It runs nothing and needs no GPU to plan.
Read first: `linkwise.cluster` (what there is), `linkwise.layout` (how work is cut), `linkwise.estimate`.
"""

__version__ = "0.1.0"
