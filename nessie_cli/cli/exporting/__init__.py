"""The command `nessie export`."""
