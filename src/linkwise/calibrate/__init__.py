"""Predictions against measurements: scored, and the constants of the estimate fitted to them.

It measures nothing and changes no formula: it reads runs that were measured, lets `estimate` predict them and
says how far off it is, or which constants would bring it closer.
Read first: `measured` (a measured run), `predict` (runs and predictions as columns), `validate` (the score).
"""
