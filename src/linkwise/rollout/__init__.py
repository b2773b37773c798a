"""A change that goes out step by step: gates on measured objectives, decisions on record, and the way back.

Plans in, decisions out, each on evidence that is kept. Not here: how anything is measured (`bench`, `launch`,
`lab`), nor what samples say by themselves (`evidence`). Nothing in it acts on nodes by itself.
Read first: `plan.Rollout`, `runs.StepRun`, `verdicts`, then what the folders say of themselves: `document`,
`measuring`, `gates`, `store`, `carrying`, `exports`.
"""
