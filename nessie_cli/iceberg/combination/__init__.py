"""Three-way merges of Iceberg tables: the files of both sides combine into one new snapshot."""
