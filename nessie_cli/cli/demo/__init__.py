"""The commands of `nessie demo`: example data to try nessie on."""
