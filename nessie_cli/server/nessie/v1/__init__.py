"""The handlers of Nessie REST v1."""
