"""Merges of rows: two sides of a table that rewrote the same files, by the keys of rows."""
