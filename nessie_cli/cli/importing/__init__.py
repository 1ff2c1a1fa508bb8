"""`nessie import`."""
