"""Time of collectives in closed form: latency count times latency, plus bytes over bandwidth.

Not here: what a training step sends (`estimate`), which algorithm a given NCCL release prefers (`nccl`).
Read `collectives.py` first, then `placement.py` (how many ranks of a group share an NVLink domain). What
nccl-tests would measure is `collective_time.py`: NCCL's choice, at the cost of `collective_forms.py`.
"""
