"""One file per command. `cli/registry.py` lists them; `commands/version.py` is the shortest one to copy.

No module here postpones its annotations (`from __future__ import annotations`): the parser reads them at every start, and evaluating them from text
takes several milliseconds.
"""
