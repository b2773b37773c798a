"""Time of collectives in closed form, of flows that share explicit links, and what fabrics are built of.

Not here: what a training step sends (`estimate`), which algorithm a given NCCL release prefers (`nccl`).
Read `collectives.py` first (latency count times latency, plus bytes over bandwidth), then `placement.py` (how
many ranks of a group share an NVLink domain). What nccl-tests would measure is `collective_time.py`: NCCL's
choice, at the cost of `collective_forms.py`. `flows.py` shares links among flows, `fat_tree.py` routes them.
Of fabrics: `wiring.py` (the value), `clos.py` (how many switches), then `bisection.py`, `collisions.py`,
`failures.py`, `cabling.py`. What NCCL must be told of a cluster, and what is wrong with what it was told:
`settings/`.
"""
