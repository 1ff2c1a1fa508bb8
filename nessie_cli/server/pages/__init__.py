"""Pages: the manual, health, metrics and OpenAPI."""
