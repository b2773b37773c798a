"""The settings that communication needs on a cluster, and what is wrong with those that are given.

Not here: how settings are read (`readers`), nor which variables there are (`nccl`). Nothing is
set or started. Read first: `recommended.recommended`, then `checking.check` with its
table of rules.
"""
