"""What a job and its hosts printed, as values: lines of NCCL per process, of frameworks, of host commands.

Bytes in, in chunks, whatever their length; facts are counted and a few lines of each are kept. It judges
nothing: what a fact means is said in `diagnose`.
Read first: `reading.read_job_logs`; then `messages`, the table of what is looked for.
"""
