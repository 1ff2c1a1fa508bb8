"""The requests to `nessie serve`, with the extensions of `wire.extensions`."""
