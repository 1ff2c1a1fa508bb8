"""The REST API's JSON, both directions. What comes in is guarded by pydantic; what goes out is plain dictionaries."""
