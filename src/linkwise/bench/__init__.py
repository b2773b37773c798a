"""What a machine really does: collectives, pairs of nodes and small training jobs, measured.

Plans in, measurements out; the ranks run `torch_job`, which alone knows torch. Not here: how a job is started
and stopped (`launch.run`), what samples say (`evidence`), nor how it is printed (`report`).
Read first: `collectives.CollectivesPlan`, then `torch_run.run_torch`.
"""
