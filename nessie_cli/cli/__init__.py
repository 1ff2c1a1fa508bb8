"""The command line: parse, one call on the repository, render."""
