"""From what was decided to a job that runs, and the record of it.

`run` starts processes and writes records; where a job runs is a value passed in (`run.place.Place`). Not
here: what a job measures (`bench`), nor whether it is as it should be. Read first: `run.job.run_job`.
"""
