"""The commands of `nessie content`."""
