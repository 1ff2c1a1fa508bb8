"""Benchmarks: ratios measured in one run, each with its goal; `make bench` prints them.

`docs/reference/performance.md` explains them.
"""
