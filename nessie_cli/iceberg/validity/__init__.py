"""Checks metadata of tables and views as Iceberg's own parser does, before it is registered."""
