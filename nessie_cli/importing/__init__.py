"""Imports from other catalogs: tables, views, namespaces, and histories of Nessie."""
