"""The commands of `nessie config`."""
