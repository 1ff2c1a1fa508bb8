"""A folder of tables as the source of an import."""
