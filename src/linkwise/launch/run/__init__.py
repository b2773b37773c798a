"""A job on a place: started, followed, stopped with all its processes, and recorded.

Effects live here: processes, files of the run folder, clocks. Not here: files for other launchers,
nor what the lines of a job mean. A bench lives as long as its launcher (`job.run_job`, `place.Place`); a
launched job outlives it (`launching.follow`, `launch_place.LaunchPlace`). Read first: these two.
"""
