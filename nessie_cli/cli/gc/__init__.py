"""The commands of `nessie gc`, the garbage collection of table files."""
