"""How runs come about: asked for as a value, measured by the commands of Linkwise, or read from records.

Read first: `measure.Measure`, then `own_commands`.
"""
