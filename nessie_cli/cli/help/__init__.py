"""The commands that explain nessie itself."""
