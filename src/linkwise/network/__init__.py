"""Time of collectives in closed form, of flows that share explicit links, and what fabrics are built of.

Not here: what a training step sends (`estimate`), which algorithm a given NCCL release prefers (`nccl`).
Read `collective_time.py` first (NCCL's choice, at the cost of `collective_forms.py`: what nccl-tests would
measure), then `group_times.py` (the same for columns of groups) and `placement.py` (how many ranks of a group
share an NVLink domain). `tiers.py` and `contention.py` say what groups lose on links up that they share;
`flows.py` shares explicit links among flows, `fat_tree.py` routes them.
Of fabrics: `wiring.py` (the value), `clos.py` (how many switches), then `bisection.py`, `collisions.py`,
`failures.py`, `cabling.py`. What NCCL must be told of a cluster, and what is wrong with what it was told:
`settings/`.
"""
