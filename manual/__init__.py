"""Writes what is made from the command tree: manual pages, the reference, completion scripts and the table that completion reads. `make docs`.

Nothing of this is loaded by `nessie` itself. `tree` reads the commands, `texts/` holds what is written by hand, `pages` puts both together,
`roff` and `markdown` give them their form, `completions` writes the table.
"""
