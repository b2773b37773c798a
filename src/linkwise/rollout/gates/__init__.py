"""Runs to verdicts, and whether gates could tell a good change from a bad one.

Pure but for `gate_server`. Read first: `judging.judge_step`, then `comparing` and `power`.
"""
