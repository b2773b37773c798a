"""Live signals of a job: logs followed as they grow, steps, host and servers, and what is to be told of them.

It reads files, addresses and a clock that are passed in. What a log says of the interconnect is judged in
`diagnose`; here are drift, stalls, stragglers and objectives, and how Prometheus and Alertmanager hear of it.
Read first: `watching.Watch`, then `job_steps`, `drift` and `follower.Follower`.
"""
