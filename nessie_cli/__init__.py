"""Git for a data lake's catalog. `connect(url)` gives a `Repository`; names below load when they are used.

>>> from nessie_cli import connect, CommitMeta, ContentKey, Namespace, Put
>>> with connect("memory:") as repository:
...     result = repository.commit("main", [Put(ContentKey(("db",)), Namespace(elements=("db",)))], CommitMeta("add db"))
...     [str(entry.key) for entry in repository.entries("main")]
['db']
"""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Load a public name on first use, so that `import nessie_cli` stays cheap."""
    if name in ("connect", "create"):
        from nessie_cli.repository import opening

        return getattr(opening, name)
    if name in ("MergeOptions", "Repository", "AheadBehind"):
        from nessie_cli.repository import base

        return getattr(base, name)
    if not name.startswith("_"):
        from nessie_cli import errors, model

        for room_ in (model, errors):
            if hasattr(room_, name):
                return getattr(room_, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
