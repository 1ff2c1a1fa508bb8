"""What can be found wrong with the tables of a catalog, and what its history comes to: values and functions that any engine can map."""
