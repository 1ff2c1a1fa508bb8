"""The commands of the reflog: `nessie undo` and `nessie reflog`."""
