"""Garbage collection of table files: which files no live commit can reach, kept as a run that is reviewed, approved and applied."""
