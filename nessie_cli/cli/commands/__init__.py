"""One file per command. `cli/registry.py` lists them; `commands/version.py` is the shortest one to copy."""
