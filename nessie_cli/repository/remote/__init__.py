"""A repository behind a server that speaks Nessie's REST API v2."""
