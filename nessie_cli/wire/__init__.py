"""JSON of REST and of the command line, content keys in URLs, and filters.

Each attribute is declared once, as the field of a msgspec struct. A struct has `of`, which makes it
of a value of the model. msgspec encodes and decodes the structs, and describes them in JSON Schema
(`schemas`). `decode` and `answers` convert them to values of the model: the first for requests, the
second for answers of any server. No rules of a catalog and no I/O belong here.
"""
