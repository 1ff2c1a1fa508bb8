"""Backends: opaque immutable objects by id, references by compare-and-swap."""

STORE_FORMAT = 4
"""The format version that this program writes.

A store with another one is refused.
"""
