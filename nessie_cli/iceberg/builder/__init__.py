"""The metadata builder: applies the updates of Iceberg REST to table and view metadata.

It works on the JSON itself, so unknown members are preserved. It does no I/O and knows no catalog.
"""
