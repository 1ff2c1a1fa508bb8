"""Exports: the tables of a revision, registered in another Iceberg catalog."""
