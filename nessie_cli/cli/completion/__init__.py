"""Shell completion: `nessie __complete -- WORD...` prints the candidates for the last word.

Completion must be almost as fast as starting Python, so this package loads neither the parser nor a
repository on import. `table` holds the commands and options (`make docs` generates it from the
command tree), `line` parses the command line, `candidates` finds the candidates, and `catalog`
reads them from the store.
"""
