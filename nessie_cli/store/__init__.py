"""Backends: opaque immutable objects by id, references by compare-and-swap."""

STORE_FORMAT = 3
"""The format version that this program writes.

A store with a newer one is refused, one with an older one is migrated when it is opened.
"""
