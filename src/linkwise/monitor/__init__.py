"""Live signals of a running job: its logs followed as they grow, with what the doctor makes of them.

It reads files and a clock that are passed in, and judges nothing itself: findings come from `diagnose`.
Read first: `follower.Follower`, then `tail`, which outlives rotation and truncation.
"""
