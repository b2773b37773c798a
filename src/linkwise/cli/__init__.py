"""The command line: one file per verb, no arithmetic.

A verb turns its arguments into values, calls one function of a room below and prints what comes back.
Read first: `main` (the table of verbs, exit codes), then any verb.
"""
