"""Time of collectives in closed form, and of flows that share explicit links.

Not here: what a training step sends (`estimate`), which algorithm a given NCCL release prefers (`nccl`).
Read `collectives.py` first (latency count times latency, plus bytes over bandwidth), then `placement.py` (how
many ranks of a group share an NVLink domain). `flows.py` shares links among flows, `fat_tree.py` routes them.
"""
