"""Backends: opaque immutable objects by id, references by compare-and-swap."""
