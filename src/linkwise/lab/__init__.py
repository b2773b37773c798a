"""A cluster emulated on this machine: nodes are network namespaces, links between them shaped veth pairs.

Not here: what a link or a collective should take (`network`), what a job says when it fails (`diagnose`).
Read first: `design.LabDesign` (what is built, a value), `wires` (the commands that build it), `life` (up,
status, down, and clearing what a killed process left).
"""
