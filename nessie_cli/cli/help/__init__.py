"""The commands that document nessie itself."""
