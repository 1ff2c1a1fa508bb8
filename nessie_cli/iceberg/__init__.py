"""Iceberg metadata files, and PyIceberg's catalog over a repository."""
