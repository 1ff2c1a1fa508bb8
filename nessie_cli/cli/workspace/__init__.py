"""The commands that set up a workspace and its servers: `nessie init` and `nessie login`."""
