"""The rules of version control over content keys: canonical bytes, the key tree, ancestry, commit and merge rules. No I/O, no clock."""
