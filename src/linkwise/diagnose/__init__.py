"""What a job is really running on, what is wrong, and how to mend it: findings from what the readers saw.

It reads no file and prints nothing; it names causes, never what was merely printed. One cause is one file
under `causes`.
Read first: `doctor.diagnose`, then `finding`, then any cause; `precedence` says which of several wins.
"""
