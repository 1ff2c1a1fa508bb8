"""Imports from other catalogs: contents, namespaces, and the history of a Nessie server."""
