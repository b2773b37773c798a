"""Time of collectives in closed form, and what fabrics are built of, carry and lose.

Not here: what a training step sends (`estimate`), which algorithm a given NCCL release prefers (`nccl`).
Read first: `collectives.py`, `placement.py` (how many ranks of a group share an NVLink domain). Of fabrics:
`wiring.py` (the value), `clos.py` (counts), then `bisection`, `collisions`, `failures` and `cabling`.
"""
