"""A repository behind a server that speaks Nessie's REST API v2."""

# First of all, and not by the last of ten modules that import each other: so deep in the stack,
# each call that its imports make may need another page of memory for its frame (15 ms of a
# command's 130).
import requests  # noqa: F401
