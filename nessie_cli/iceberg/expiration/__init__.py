"""Removes old snapshots from the metadata of a table. No file is deleted."""
