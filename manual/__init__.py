"""Generates files from the command tree, for `make docs`.

They are manual pages, the command reference, completion scripts and their table. `nessie` itself
loads none of these modules. `tree` reads the commands, `texts/` contains the hand-written parts,
`pages` joins both, `roff` and `markdown` format them, `completion_scripts` writes the scripts.
"""
