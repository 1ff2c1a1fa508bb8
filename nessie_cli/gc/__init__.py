"""Garbage collection of table files: mark, plan, approve and apply, each a step of a run."""
