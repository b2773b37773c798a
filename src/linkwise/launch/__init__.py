"""From a plan to a job that runs: the files that start it, and the job itself with its record.

`render` gives files as texts and touches nothing; `run` starts processes and writes records, and where a
job runs is a value passed in (`run.place.Place`). Not here: which layout is best (`search`), which NCCL
settings are needed (`settings`), what a job measures (`bench`). Read first: `render.rendering`, `run.job`.
"""
