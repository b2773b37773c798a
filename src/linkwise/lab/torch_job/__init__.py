"""What runs in a lab: torch and the standard library, nothing of Linkwise.

`start.py` imports torch once and forks a process for each rank, which enters the namespace of its node: torch
is loaded once instead of once a rank. Each rank says what it saw in lines of JSON; what they mean is said
outside. Read first: `session.Session`.
"""
