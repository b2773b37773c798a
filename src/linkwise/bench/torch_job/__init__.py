"""What the ranks of a bench run: torch and the standard library, nothing of Linkwise.

The files are started by torchrun (`start.py`) in whichever Python has torch, so that no rank needs Linkwise
or what it depends on. They measure and say what they saw, one line of JSON each; what it means is
said outside. Read first: `session.Session`.
"""
