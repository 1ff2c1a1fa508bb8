"""Runs: commands whose changes of the catalog are published together, or not at all."""
