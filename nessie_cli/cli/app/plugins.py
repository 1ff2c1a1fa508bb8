"""Plug-ins: `nessie foo` runs the program `nessie-foo` from the PATH.

A command or an alias of the same name takes precedence. The program replaces this process, so its
arguments, streams and exit code are its own. Global options are passed as environment variables,
and the store as `NESSIE_STORE`, so that a `nessie` that the program runs uses the same store.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from nessie_cli.cli.registry import COMMANDS
from nessie_cli.errors import NessieError
from nessie_cli.workspace import environment as env

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation

PREFIX = "nessie-"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def run_plugin(app: Invocation, arguments: Sequence[str]) -> None:
    """Replaces this process by the plug-in that the first word names. Returns if there is none."""
    path = _find(arguments[0])
    if path is None:
        return
    import signal

    sys.stdout.flush()
    # Python ignores SIGPIPE, and the program would inherit that: a closed pipe would not end it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execve(path, [str(path), *_flags(app), *arguments[1:]], _environment(app))  # noqa: S606
    except OSError as error:
        reason = f"the plug-in cannot be run: {error.strerror}"
        raise NessieError(
            f"{path}: {reason}", hint="a script begins with a line such as #!/bin/sh"
        ) from None


def plugins() -> Mapping[str, Path]:
    """Returns the programs of all plug-ins by name."""
    programs: dict[str, Path] = {}
    for folder in _folders():
        for file in _names_in(folder):
            name = file.removeprefix(PREFIX)
            is_free = _NAME.fullmatch(name) and name not in COMMANDS and name not in programs
            if is_free and _is_program(folder / file):
                programs[name] = folder / file
    return dict(sorted(programs.items()))


def _find(name: str) -> Path | None:
    """Returns the program of a plug-in, or None."""
    if not _NAME.fullmatch(name):
        return None
    candidates = (folder / (PREFIX + name) for folder in _folders())
    return next((path for path in candidates if _is_program(path)), None)


def _folders() -> Iterator[Path]:
    path = env.everything().get("PATH", os.defpath)
    return (Path(text) for text in path.split(os.pathsep) if text)


def _names_in(folder: Path) -> list[str]:
    try:
        # With pathlib, thousands of programs would dominate the time of `nessie --help`.
        return [name for name in os.listdir(folder) if name.startswith(PREFIX)]  # noqa: PTH208
    except OSError:
        return []


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _flags(app: Invocation) -> list[str]:
    """Returns the global options that have no environment variable."""
    names = ("json", "jsonl", "quiet", "verbose", "debug")
    return [f"--{name}" for name in names if getattr(app.options, name)]


def _environment(app: Invocation) -> dict[str, str]:
    """Returns the environment of the plug-in.

    The current reference is passed on only if `--ref` names it. Otherwise a plug-in that switches
    to another reference would continue on the old one.
    """
    options = app.options
    changes: dict[str, str | None] = {env.REFERENCE: options.ref} if options.ref else {}
    if options.profile:
        changes |= {env.PROFILE: options.profile, env.ENDPOINT: None}
    if store := _store(app):
        changes[env.STORE] = store
    if options.color != "auto":
        always = options.color == "always"
        changes |= {"NO_COLOR": None if always else "1", "CLICOLOR_FORCE": "1" if always else None}
    if options.no_pager:
        changes["NESSIE_PAGER"] = "cat"
    merged = {**env.everything(), **changes}
    return {name: value for name, value in merged.items() if value is not None}


def _store(app: Invocation) -> str | None:
    """Returns the store to pass on.

    None if the environment names it already, or if there is none.
    """
    from nessie_cli.workspace.folder import absolute_store, working_folder
    from nessie_cli.workspace.secrets import without_secrets

    named = app.options.store or app.options.profile
    if not named and (env.variable(env.STORE) or env.variable(env.ENDPOINT)):
        return None
    try:
        url = app.store.url()
    except NessieError:
        if named:
            raise
        return None
    # A URL in a variable counts as named by the user. The URL of a workspace is therefore not
    # passed on: the `nessie` that the plug-in runs finds it itself.
    return (
        absolute_store(without_secrets(url), working_folder())
        if app.store.is_chosen_by_user(url)
        else None
    )
