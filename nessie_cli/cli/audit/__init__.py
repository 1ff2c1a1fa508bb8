"""Checking the files of tables and views: `nessie audit`."""
