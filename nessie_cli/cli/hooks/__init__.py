"""Hooks: programs in `.nessie/hooks/` that run before and after commits and merges.

This package is loaded only if the folder exists.
"""
