"""A job on a place: started, followed line by line, stopped with all its processes, and recorded.

Effects live here: processes, files of the run folder, clocks. Not here: files for other launchers,
nor what the lines of a job mean. Read first: `job.run_job`, then `place.Place`.
"""
