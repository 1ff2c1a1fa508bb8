"""From a URL to a store. Backends are imported only when they are used: a remote repository never loads SQLite."""

from __future__ import annotations

import re

from nessie_cli.errors import InvalidInput
from nessie_cli.store.base import Store

_FORMS = "memory:, sqlite:///relative/path, sqlite:////absolute/path, or a path"
_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]+)://|(memory|sqlite|postgres|postgresql):"


def open_store(url: str) -> Store:
    """Open an existing store.

    Raises `InvalidInput` for a URL that names no store, `StoreNotFound`, `UnsupportedFormat`, `StoreUnavailable`.
    """
    if url == "memory:":
        return _memory()
    path = _path(url)
    from nessie_cli.store.sqlite import open_sqlite

    return open_sqlite(path)


def create_store(url: str) -> Store:
    """Open a store, making an empty one where there is none; the folder must exist. Raises what `open_store` raises."""
    if url == "memory:":
        return _memory()
    path = _path(url)
    from nessie_cli.store.sqlite import create_sqlite

    return create_sqlite(path)


def _memory() -> Store:
    from nessie_cli.store.memory import MemoryStore

    return MemoryStore()


def _path(url: str) -> str:
    """The file that a URL or bare path names; a relative one is relative to the working directory."""
    if "\0" in url:
        raise InvalidInput(f"store {url!r}: a path has no zero bytes")
    if ":" not in url or not (scheme := re.match(_SCHEME, url, re.ASCII | re.IGNORECASE)):
        path = url
    elif (scheme[1] or scheme[2]).lower() in ("postgres", "postgresql"):
        # Without the URL: it may hold a password.
        raise InvalidInput("store postgresql://...: PostgreSQL is not available yet; write " + _FORMS)
    elif url[:10].lower() == "sqlite:///":
        path = url[10:]
    else:
        raise InvalidInput(f"store {_shown(url)!r}: not understood; write {_FORMS}")
    if not path.strip():
        raise InvalidInput(f"store {url!r}: names no file; write {_FORMS}")
    return path


def _shown(url: str) -> str:
    """The URL without what may be a password."""
    return re.sub(r"//[^/@]*@", "//...@", url)
