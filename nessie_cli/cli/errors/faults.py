"""Conversion of any exception to an error of this package."""

from __future__ import annotations

import sys
from traceback import walk_tb

from nessie_cli import errors


def fault_of(error: BaseException) -> errors.NessieError:
    """Returns the error itself, or the equivalent error of this package for a foreign one."""
    if isinstance(error, errors.NessieError):
        return error
    if isinstance(error, KeyboardInterrupt):
        return errors.Interrupted("interrupted")
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else "the result could not be written: "
        return errors.NessieError(f"{where}{error.strerror}")
    if isinstance(error, ModuleNotFoundError) and (extra := _extra_of(error.name or "")):
        return errors.NessieError(
            f"the package {error.name} is not installed",
            hint=f"`pip install 'nessie-cli[{extra}]'`",
        )
    if isinstance(error, Exception) and _is_of_configuration(error):
        # PyIceberg reads its configuration when it is imported.
        from nessie_cli.importing.sources.configuration import unreadable

        return unreadable(error)
    return errors.NessieError(
        f"internal error: {type(error).__name__}: {error}; run with --debug to see where"
    )


def _is_of_configuration(error: Exception) -> bool:
    """Whether PyIceberg could not read its configuration: the parser refuses it, or it is deep."""
    if isinstance(error, RecursionError):
        frames = (frame for frame, _ in walk_tb(error.__traceback__))
        return any(frame.f_globals.get("__name__") == "pyiceberg.utils.config" for frame in frames)
    return type(error).__module__.startswith("strictyaml.")


_EXTRAS = {
    "cel_expr_python": "filters",
    "fastavro": "iceberg",
    "google": "filters",
    "jwt": "serve",
    "keyring": "keyring",
    "prometheus_client": "serve",
    "psycopg": "postgres",
    "psycopg_pool": "postgres",
    "pyarrow": "iceberg",
    "pyiceberg": "iceberg",
    "pyroaring": "iceberg",
    "pyspark": "spark",
    "uvicorn": "serve",
}
"""The extra of `pyproject.toml` that installs each package."""


def _extra_of(module: str) -> str | None:
    extra = _EXTRAS.get(module.partition(".")[0])
    # A server needs filters too, and the extra `serve` includes both.
    return "serve" if extra == "filters" and "nessie_cli.server" in sys.modules else extra


def is_interrupt(error: BaseException | None) -> bool:
    """Whether an error is an interrupt, or was caused by one.

    Python turns an interrupt during the creation of a class into a RuntimeError.
    """
    while error is not None:
        if isinstance(error, KeyboardInterrupt):
            return True
        error = error.__cause__ or error.__context__
    return False
