"""The metadata builder: table and view metadata of Iceberg as JSON, changed by the updates of the Iceberg REST specification.

It works on the JSON itself, so members that it does not know are preserved. No I/O and no catalog belongs here.
"""
