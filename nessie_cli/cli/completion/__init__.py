"""Shell completion: `nessie __complete -- WORD...` answers what the last word may become.

A keystroke may cost little more than the start of Python, so this room loads neither the parser nor a repository: `table` holds the commands and
options (`make docs` writes it from the command tree), `line` reads what has been typed, `candidates` knows what fits, `catalog` looks into the store.
"""
