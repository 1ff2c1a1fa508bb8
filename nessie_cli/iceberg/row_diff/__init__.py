"""The rows that differ between two states of an Iceberg table."""
