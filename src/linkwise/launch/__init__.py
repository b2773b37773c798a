"""From a plan to a job that runs: the files that start it, its run, and the record of it.

`render` makes the files and touches none; `run` starts processes and writes records, where a job runs is a
value passed in (`run.place.Place`). Not here: which layout is best (`search`), which settings are needed
(`settings`), what a job measures (`bench`). Read first: `render.render`, `run.launching.follow`.
"""
