"""The commands of `nessie store`."""
