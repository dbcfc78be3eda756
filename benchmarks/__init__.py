"""Ratios: against the machine's limit, against peers, and against the batch fit.

`python -m benchmarks` measures, prints a table and writes every raw number as JSON.
"""
