"""What an Iceberg metadata file says as a content of the catalog."""
