"""Nessie's REST API."""
