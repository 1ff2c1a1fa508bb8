"""What `nessie import` reads: one module for each kind of source."""
