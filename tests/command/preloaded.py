"""Modules that a process loads before command lines are forked from it; otherwise, imports
would take nine tenths of the time."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from pkgutil import walk_packages

ROOMS = ("model", "kernel", "store", "wire", "repository", "workspace", "render", "cli")
LATE = ("pwd", "ctypes", "platformdirs.unix", "typer._click.decorators", "typer._click._textwrap")
"""Modules that nearly every command loads when it runs, not when its module is loaded."""


def _modules() -> Iterator[str]:
    for room in ROOMS:
        package = import_module(f"nessie_cli.{room}")
        yield package.__name__
        for module in walk_packages(package.__path__, f"{package.__name__}."):
            yield module.name


EVERYTHING = (*_modules(), *LATE)
"""The modules of the packages that commands use, by name."""
