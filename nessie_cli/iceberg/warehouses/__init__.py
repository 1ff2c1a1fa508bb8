"""Warehouses: the named places in which a server keeps tables, and the metadata files there."""
