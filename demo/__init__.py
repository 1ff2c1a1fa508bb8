"""The main workflow, start to end, on real Iceberg tables.

`make demo` runs it. The transcript in README.md is generated from it.
"""
