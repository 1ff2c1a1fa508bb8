"""`nessie audit`: the check of files of tables and views."""
