"""Branches and tags: `nessie branch`, `nessie tag` and `nessie switch`."""
