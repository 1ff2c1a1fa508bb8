"""Imports from other catalogs: tables, views and namespaces, and the history of a Nessie server."""
