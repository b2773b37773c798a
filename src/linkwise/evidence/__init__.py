"""Samples to intervals, outliers and comparisons: values in, values out.

Not here: where samples come from, nor what follows from a judgement. No distribution is assumed anywhere.
Read first: `median.median_interval`.
"""
