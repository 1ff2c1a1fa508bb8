"""Modules that others import at their head and seldom use: each is loaded when something in it is asked for.

The parser imports `subprocess` to open a browser, `inspect` imports `tokenize` to read source code, `typer` imports all that it has, and so on: a
command that does none of it would wait for them at every start. `tests/transcripts/test_start_up.py` lists what is never loaded.
"""

from __future__ import annotations

import os
import sys
from _thread import RLock, get_ident
from importlib import import_module
from importlib.machinery import PathFinder

# Importing `typing` takes longer than this module saves for `--version`; checkers know this name without the import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

_Module = type(sys)

SELDOM_USED = frozenset({
    "bz2", "difflib", "fnmatch", "gettext", "ipaddress", "linecache", "lzma", "msgspec.inspect", "msgspec.toml", "msgspec.yaml", "ntpath",
    "platform", "subprocess", "textwrap", "tokenize", "typer", "urllib.parse",
})  # fmt: skip
"""Modules of which their importers use nothing while they are imported themselves, or only what is said here:"""
_CALLED_LATER = {"difflib": "get_close_matches", "gettext": "gettext", "urllib.parse": "quote_from_bytes"}
"""a function of each that an importer takes at once and calls in rare cases;"""
_LIVES_IN = {
    "platform": {"system": __name__},
    "typer": {
        "Abort": "typer.exceptions", "Argument": "nessie_cli.cli.parameters", "Context": "typer.models", "Exit": "typer.exceptions",
        "Option": "nessie_cli.cli.parameters", "_click": "typer._click",
    },
}  # fmt: skip
"""and names that a package hands on, with the module where each of them is found (or which it is) without loading the package whole."""
_DOES_WITHOUT = ("msgspec._utils", "typing_extensions", "get_type_hints")
"""A module, one that it takes names from where that is installed, and the first of these names: it takes the same names from `typing` else."""


def system() -> str:
    """What `platform.system` answers: `uuid` asks for it at once."""
    return os.uname().sysname if hasattr(os, "uname") else "Windows"


def postpone() -> None:
    """From now on load these modules only when something in them is used. Of several threads that use one at once all but one wait."""
    if _Finder not in sys.meta_path:
        sys.meta_path.insert(0, _Finder)


def load_all() -> None:
    """End it: load what has been postponed. For a program that runs long, and is asked for nothing while it starts."""
    if _Finder in sys.meta_path:
        sys.meta_path.remove(_Finder)
    for name in SELDOM_USED:
        module = sys.modules.get(name)
        if isinstance(module, Postponed):
            _load(module)


class _Finder:
    """Finds these modules where Python does, with another loader."""

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None, target: ModuleType | None = None) -> ModuleSpec | None:  # noqa: ARG004 (the import system's interface)
        """The place of a module that is to be postponed; None for all others.

        Raises `ModuleNotFoundError` for one that its importer can do without.
        """
        if name not in SELDOM_USED:
            importer, optional, first = _DOES_WITHOUT
            if name == optional and importer in sys.modules and not hasattr(sys.modules[importer], first):
                raise ModuleNotFoundError(name)
            return None
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
        return spec


class Postponed(_Module):  # type: ignore[misc,valid-type]
    """A module that is still empty; the first name that is looked up in it loads it."""

    def __getattribute__(self, name: str) -> Any:
        # Not by `super()`: another thread may have made it a common module since.
        own = _Module.__getattribute__
        # The import system itself looks for such names; only `__all__` is asked by those who want what is inside.
        if name.startswith("__") and name != "__all__":
            return own(self, name)
        loader = self.__spec__.loader
        # What its own code asks for is there already, or not yet.
        if isinstance(loader, _Loader) and loader.thread != get_ident():
            if loader.thread is None and name in own(self, "__dict__"):
                return own(self, name)
            if name == _CALLED_LATER.get(self.__name__):
                return _called_later(self, name)
            home = _LIVES_IN.get(self.__name__, {}).get(name)
            if home is not None:
                module = import_module(home)
                return module if home == f"{self.__name__}.{name}" else getattr(module, name)
            _load(self)
        return own(self, name)


class _Loader:
    """Makes the module and leaves it empty."""

    def __init__(self, real: Any) -> None:
        self.real = real
        self.lock = RLock()
        self.thread: int | None = None
        """That which has begun to load the module."""

    @staticmethod
    def create_module(spec: ModuleSpec) -> ModuleType:
        """An empty module."""
        module: ModuleType = Postponed(spec.name)
        return module

    @staticmethod
    def exec_module(module: ModuleType) -> None:
        """Nothing yet."""


def _called_later(module: Any, name: str) -> Callable[..., Any]:
    """A function that loads the module when it is called."""

    def call(*args: Any, **named: Any) -> Any:
        if isinstance(module, Postponed):
            _load(module)
        return getattr(module, name)(*args, **named)

    return call


def _load(module: Any) -> None:
    """Run the code of a module in the object that its importers have; what others have begun is waited for."""
    loader = module.__spec__.loader
    if not isinstance(loader, _Loader):
        return
    with loader.lock:
        if loader.thread is not None:
            return
        loader.thread = get_ident()
        try:
            loader.real.exec_module(module)
        except BaseException:
            loader.thread = None
            raise
        module.__spec__.loader = module.__loader__ = loader.real
        module.__class__ = _Module
