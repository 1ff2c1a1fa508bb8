"""The commands of the server: `nessie serve` and `nessie token`."""
