"""The JSON of the REST API and of the command line.

Each shape is defined once, as a class (`shape` says how): in `shapes` those in common, in `rest` those
that only servers send, in `bodies` those of requests, in `documents` what the command line adds. Derived
from them are the encoders (`encode`), the validation of requests (`guards`, `decode`) and of servers'
answers (`answers`), and the JSON Schemas of the OpenAPI document and of `docs/reference/json/` (`schemas`). No
rules of a catalog and no I/O belong here.
"""
