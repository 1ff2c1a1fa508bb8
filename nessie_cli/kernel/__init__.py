"""The rules of version control over content keys.

Canonical bytes, the key tree, ancestry, and the rules of commits and merges. No I/O and no clock
belong here.
"""
