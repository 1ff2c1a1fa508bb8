"""Shared by all commands: the structure of a command and the output of its result."""
