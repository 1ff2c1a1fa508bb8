"""Errors of the command line: reports, hints and exit codes."""
