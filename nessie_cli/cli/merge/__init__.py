"""Merge, transplant, revert, and the resolution of their conflicts."""
