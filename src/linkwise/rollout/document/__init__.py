"""The `rollout/1` document: its keys, and the way from it to a `plan.Rollout`.

Read first: `document.RolloutDocument`, then `reading.read_rollout`.
"""
