"""The output of `nessie version` and `nessie --version`.

Imports almost nothing, so that `--version` is as fast as starting Python.
"""

from __future__ import annotations

import sys

from nessie_cli import __version__

_FLAGS = ("--json", "--jsonl", "-q", "--quiet", "-v", "--verbose", "--debug", "--no-pager")


def asks_for_version(argv: list[str]) -> bool:
    """Whether a command line requests the version: by `--version`, or by `-v` or `-V` alone."""
    return (
        argv in (["-v"], ["-V"])
        or next((word for word in argv if word not in _FLAGS), "") == "--version"
    )


def show_version(argv: list[str]) -> None:
    """Prints the version."""
    if "--json" in argv or "--jsonl" in argv:
        import json

        sys.stdout.write(
            json.dumps(
                dict(zip(("version", "python", "storeFormat"), current_versions(), strict=True))
            )
            + "\n"
        )
    else:
        sys.stdout.write(version_line() + "\n")


def version_line() -> str:
    """Returns the versions on one line."""
    return f"nessie {__version__} (Python {_python()}, store format {_store_format()})"


def current_versions() -> tuple[str, str, int]:
    """Returns the versions of nessie, Python and the newest store format."""
    return __version__, _python(), _store_format()


def _python() -> str:
    return ".".join(map(str, sys.version_info[:3]))


def _store_format() -> int:
    from nessie_cli.store import STORE_FORMAT

    return STORE_FORMAT
