"""The command `nessie run`."""
