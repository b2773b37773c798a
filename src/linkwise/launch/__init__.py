"""From a plan to a job that runs: the files that start it.

Not here: which layout is best (`search`), which NCCL settings are needed (`settings`), how results
are shown (`report`). Nothing is started and no file is touched. Read first: `render.render`.
"""
