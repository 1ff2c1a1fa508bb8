"""Plug-ins: `nessie foo` runs the program `nessie-foo` of the PATH where neither a command nor an alias has that name.

The program takes the place of this process, so its arguments, streams and exit code are its own. It gets the store in `NESSIE_STORE`, and what global
options say as the environment variables that mean the same, so that a `nessie` it runs works where this one would. A reference that no option names
is not passed on: a plug-in that switches would go on working on the old one.
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
    from nessie_cli.cli.context import Invocation

PREFIX = "nessie-"
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def run_plugin(call: Invocation, words: Sequence[str]) -> None:
    """Become the plug-in that the first word names; returns where there is none."""
    path = find(words[0])
    if path is None:
        return
    import signal

    sys.stdout.flush()
    # Python ignores it, and what is ignored stays so in the program: a closed pipe would not end it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        # The user asked for this program.
        os.execve(path, [str(path), *_flags(call), *words[1:]], _environment(call))  # noqa: S606
    except OSError as error:
        raise NessieError(f"{path}: the plug-in cannot be run: {error.strerror}; a script begins with a line such as #!/bin/sh") from None


def find(name: str) -> Path | None:
    """The program of a plug-in."""
    if not _NAME.fullmatch(name):
        return None
    candidates = (folder / (PREFIX + name) for folder in _folders())
    return next((path for path in candidates if _is_program(path)), None)


def plugins() -> Mapping[str, Path]:
    """Every plug-in that can be called, by name; one look into each folder of the PATH."""
    found: dict[str, Path] = {}
    for folder in _folders():
        for file in _names_in(folder):
            name = file.removeprefix(PREFIX)
            if _NAME.fullmatch(name) and name not in COMMANDS and name not in found and _is_program(folder / file):
                found[name] = folder / file
    return dict(sorted(found.items()))


def _folders() -> Iterator[Path]:
    return (Path(text) for text in env.everything().get("PATH", os.defpath).split(os.pathsep) if text)


def _names_in(folder: Path) -> list[str]:
    try:
        # Not pathlib: an object for each of some thousand programs would take longer than all the rest of `nessie --help`.
        return [name for name in os.listdir(folder) if name.startswith(PREFIX)]  # noqa: PTH208
    except OSError:
        return []


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _flags(call: Invocation) -> list[str]:
    """The global options that no environment variable stands for; they mean the same behind the plug-in's name as before it."""
    return [f"--{name}" for name in ("json", "jsonl", "quiet", "verbose", "debug") if getattr(call.options, name)]


def _environment(call: Invocation) -> dict[str, str]:
    options = call.options
    changes: dict[str, str | None] = {env.REFERENCE: options.ref} if options.ref else {}
    if options.profile:
        changes |= {env.PROFILE: options.profile, env.ENDPOINT: None}
    if store := _store(call):
        changes[env.STORE] = store
    if options.color != "auto":
        always = options.color == "always"
        changes |= {"NO_COLOR": None if always else "1", "CLICOLOR_FORCE": "1" if always else None}
    if options.no_pager:
        changes["NESSIE_PAGER"] = "cat"
    return {name: value for name, value in {**env.everything(), **changes}.items() if value is not None}


def _store(call: Invocation) -> str | None:
    """The store to name to a plug-in; None where the environment names it already, or where there is none."""
    from nessie_cli.workspace.folder import absolute_store
    from nessie_cli.workspace.secrets import without_secrets

    named = call.options.store or call.options.profile
    if not named and (env.variable(env.STORE) or env.variable(env.ENDPOINT)):
        return None
    try:
        url = call.store_url()
        # In a variable, a URL counts as named by the user: one that only a workspace names is left to the plug-in's own `nessie`.
        return absolute_store(without_secrets(url), Path.cwd()) if call.store.is_chosen_by_user(url) else None
    except NessieError:
        if named:
            raise
        return None
