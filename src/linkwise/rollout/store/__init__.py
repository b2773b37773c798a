"""Evidence that is kept: the decision log as a hash chain, every run with all its samples, and the lock.

Read first: `decisions`, then `store.Store`.
"""
