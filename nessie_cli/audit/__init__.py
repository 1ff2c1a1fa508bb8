"""Checks of table files and statistics of histories, as functions that any engine can map."""
