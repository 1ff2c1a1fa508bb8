"""Imports the whole history of another Nessie repository into a store."""
