"""A rollout carried out: what comes next is a pure function; one thing at a time is done and written down.

Read first: `next_action`, then `carrying.carry_out`.
"""
