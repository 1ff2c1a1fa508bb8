"""The JSON of the REST API and of the command line.

Each shape is defined once, as a class (see `shape`): common ones in `shapes`, those that only
servers send in `rest`, those of requests in `bodies`, additions of the command line in `documents`.
Everything else is derived from them: the encoders (`encode`), the validation of requests (`guards`,
`decode`) and of servers' answers (`answers`), and the JSON Schemas of the OpenAPI document and of
`docs/reference/json/` (`schemas`). No rules of a catalog and no I/O belong here.
"""
