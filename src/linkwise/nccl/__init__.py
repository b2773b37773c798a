"""NCCL's own view: releases, the variables that limit its choice, and the constants it chooses with.

Not here: how long a choice really takes (`network`), nor what a log or an environment shows (`readers`).
Read `choice.py` first; `choice.json` holds the constants by release.
"""
