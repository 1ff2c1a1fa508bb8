"""Opens stores by URL. Backends are imported on first use: remote repositories need none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from nessie_cli.errors import InvalidInput, NessieError
from nessie_cli.store.base import Store

_FORMS = (
    "sqlite:///relative/path, sqlite:////absolute/path, a path, postgresql://user@host/database,"
    " http(s)://host/api/v2 or memory:"
)
_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]+)://|(memory|sqlite):"


def open_store(url: str) -> Store:
    """Opens an existing store.

    Raises `InvalidInput` for a URL that names no store, `StoreNotFound`, `UnsupportedFormat`,
    `StoreUnavailable`.
    """
    return _opened(url, create=False)


def create_store(url: str) -> Store:
    """Opens a store, and creates an empty one if there is none; the folder must exist.

    Raises the errors of `open_store`.
    """
    return _opened(url, create=True)


def sqlite_path(url: str) -> str | None:
    """Returns the file that a URL names, or None if it names another kind of store."""
    return None if url == "memory:" or _is_postgres(url) else _path(url)


def _opened(url: str, *, create: bool) -> Store:
    if url == "memory:":
        return _temporary()
    if _is_postgres(url):
        with _psycopg_needed():
            from nessie_cli.store.postgres import create_postgres, open_postgres
        return create_postgres(url) if create else open_postgres(url)
    path = _path(url)
    from nessie_cli.store.sqlite.store import create_sqlite, open_sqlite

    return create_sqlite(path) if create else open_sqlite(path)


def _temporary() -> Store:
    from nessie_cli.store.sqlite.temporary import create_temporary

    return create_temporary()


def _is_postgres(url: str) -> bool:
    return re.match("postgres(ql)?:", url, re.ASCII | re.IGNORECASE) is not None


@contextmanager
def _psycopg_needed() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        raise NessieError(
            f"store postgresql://...: psycopg cannot be loaded ({error}): pip install"
            " 'nessie-cli[postgres]'"
        ) from None


def _path(url: str) -> str:
    """Returns the file that a URL or path names, relative to the working directory."""
    if "\0" in url:
        raise InvalidInput(f"store {url!r}: a path has no zero bytes")
    if ":" not in url or not re.match(_SCHEME, url, re.ASCII | re.IGNORECASE):
        path = url
    elif url[:10].lower() == "sqlite:///":
        path = url[10:]
    else:
        raise InvalidInput(f"store {_shown(url)!r}: no store has this form; write {_FORMS}")
    if not path.strip():
        raise InvalidInput(f"store {url!r} names no file; write {_FORMS}")
    return path


def _shown(url: str) -> str:
    """Returns the URL without anything that may be a password."""
    return re.sub(r"//[^/@]*@", "//...@", url)
