"""The handlers of Nessie REST v2."""
