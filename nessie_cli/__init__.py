"""Git for a data lake's catalog. `connect(url)` returns a `Repository`.

Names below load on first use.

>>> from nessie_cli import connect, CommitMeta, ContentKey, Namespace, Put
>>> db = Put(ContentKey(("db",)), Namespace(elements=("db",)))
>>> with connect("memory:") as repository:
...     result = repository.commit("main", [db], CommitMeta("add db"))
...     [str(entry.key) for entry in repository.entries("main")]
['db']
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any

__version__ = "1.0.0rc1"


_PACKAGE = {
    "connect": "nessie_cli.repository.opening",
    "connect_store": "nessie_cli.repository.opening",
    "create": "nessie_cli.repository.opening",
    "run": "nessie_cli.runs.context",
    "Access": "nessie_cli.repository.access",
    "AheadBehind": "nessie_cli.repository.base",
    "Basic": "nessie_cli.repository.access",
    "Bearer": "nessie_cli.repository.access",
    "Grant": "nessie_cli.repository.access",
    "AssignReference": "nessie_cli.repository.changes",
    "Commit": "nessie_cli.repository.changes",
    "CreateReference": "nessie_cli.repository.changes",
    "DeleteReference": "nessie_cli.repository.changes",
    "Draft": "nessie_cli.repository.draft",
    "Merge": "nessie_cli.repository.changes",
    "MergeOptions": "nessie_cli.repository.changes",
    "AnyRevision": "nessie_cli.repository.changes",
    "Change": "nessie_cli.repository.changes",
    "Check": "nessie_cli.repository.draft",
    "Lease": "nessie_cli.repository.group_commit",
    "LogFilter": "nessie_cli.repository.log_filter",
    "Plan": "nessie_cli.repository.group_commit",
    "Planned": "nessie_cli.repository.group_commit",
    "Revision": "nessie_cli.revisions",
    "Walk": "nessie_cli.repository.log_filter",
    "PutSettings": "nessie_cli.repository.changes",
    "RenameReference": "nessie_cli.repository.changes",
    "Submission": "nessie_cli.repository.requests",
    "Transplant": "nessie_cli.repository.changes",
    "planned": "nessie_cli.repository.group_commit",
    "OAuth2": "nessie_cli.repository.access",
    "Repository": "nessie_cli.repository.base",
    "StoreRepository": "nessie_cli.repository.store_repository",
}


def __getattr__(name: str) -> Any:
    """Loads a public name on first use, so that `import nessie_cli` is cheap."""
    from importlib import import_module

    if name in _PACKAGE:
        return getattr(import_module(_PACKAGE[name]), name)
    if name[0].isupper():
        model, errors = import_module("nessie_cli.model"), import_module("nessie_cli.errors")
        if name in model.__all__:
            return getattr(model, name)
        error_type = getattr(errors, name, None)
        if isinstance(error_type, type) and issubclass(error_type, errors.NessieError):
            return error_type
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
