"""The global options: they stand before and after the sub-command, and mean the same in both places."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from nessie_cli.errors import InvalidInput

COLOR_CHOICES = ("auto", "always", "never")


class GlobalOptions:
    """What the global options say. A later one on the command line replaces an earlier one."""

    directories: tuple[str, ...] = ()
    store: str | None = None
    profile: str | None = None
    ref: str | None = None
    json: bool = False
    jsonl: bool = False
    color: Literal["auto", "always", "never"] = "auto"
    no_pager: bool = False
    quiet: bool = False
    verbose: bool = False
    debug: bool = False
    no_verify: bool = False

    def take(self, name: str, value: Any) -> None:
        """Remember one option as it is parsed; raises `InvalidInput` for a value that can never work."""
        if name == "directory":
            for directory in value:
                enter(directory)
            self.directories += tuple(value)
            return
        if name == "color" and value not in COLOR_CHOICES:
            raise InvalidInput(f"--color {value}: must be one of {', '.join(COLOR_CHOICES)}")
        setattr(self, name, value)
        if self.json and self.jsonl:
            raise InvalidInput("--json and --jsonl exclude each other: one document, or one per line")


def enter(directory: str) -> None:
    """Work as if started in this directory (`-C`); a second `-C` is relative to the first."""
    try:
        os.chdir(directory)
    except OSError as error:
        raise InvalidInput(f"-C {directory}: {error.strerror}") from None


_PREFIX = "global_"
"""Keeps the parser's names of global options apart from those of a command's own parameters."""
_VALUES = (
    (("--store", "store"), "URL", "The store: sqlite:///path, a bare path, postgresql://..., http(s)://host/api/v2."),
    (("--profile", "profile"), "NAME", "The store and reference of this profile of your configuration."),
    (("--ref", "ref"), "REF", "The reference to work on instead of the workspace's."),
    (("--color", "color"), "WHEN", "Colour: auto, always or never."),
    (("-C", "directory"), "DIR", "Work as if started in DIR."),
)
_FLAGS = (
    (("--json", "json"), "Print the result as one JSON document."),
    (("--jsonl", "jsonl"), "Print a listing as JSON, one document per line."),
    (("--no-pager", "no_pager"), "Never pipe a long listing into a pager."),
    (("-q", "--quiet", "quiet"), "Print no remarks, only the result."),
    (("-v", "--verbose", "verbose"), "Print more."),
    (("--debug", "debug"), "Show the traceback of a failure."),
)


VALUED = frozenset(name for names, _, _ in _VALUES for name in names[:-1])
"""The global options that are followed by a value."""


def command_position(argv: Sequence[str]) -> int | None:
    """Where the command stands in a command line: the first word that is no global option and no value of one; None where there is none."""
    position = 0
    while position < len(argv) and argv[position].startswith("-") and argv[position] != "--":
        position += 2 if argv[position] in VALUED else 1
    return position if position < len(argv) and argv[position] != "--" else None


def carried(options: GlobalOptions) -> list[str]:
    """The words that make another command line work on the same store and reference."""
    words = [word for directory in options.directories for word in ("-C", directory)]
    for name in ("store", "profile", "ref"):
        value = getattr(options, name)
        words += [f"--{name}", value] if value else []
    return words


def _remember(ctx: Any, param: Any, value: Any) -> None:
    if value:
        ctx.obj.options.take(param.name.removeprefix(_PREFIX), value)


def global_parameters(*, hidden: bool) -> list[Any]:
    """The global options as parameters of one command; each one that is given is kept in the invocation's options while it is parsed."""
    from typer.core import TyperOption

    shared: dict[str, Any] = {"callback": _remember, "expose_value": False, "hidden": hidden}
    values = [
        TyperOption(param_decls=_declared(names), metavar=metavar, type=str, help=help_, multiple="directory" in names, **shared)
        for names, metavar, help_ in _VALUES
    ]
    flags = [TyperOption(param_decls=_declared(names), is_flag=True, default=False, help=help_, **shared) for names, help_ in _FLAGS]
    return values + flags


RUN_HOOKS = frozenset({
    "commit", "content_put", "content_delete", "content_rename", "content_unmodified", "merge", "transplant", "resolve", "restore", "revert",
})  # fmt: skip
"""The modules of commands that commit or merge, and therefore take `--no-verify`."""


def no_verify_parameter() -> Any:
    """The option `--no-verify`, kept in the invocation's options as the global ones are."""
    from typer.core import TyperOption

    return TyperOption(
        param_decls=["--no-verify", f"{_PREFIX}no_verify"],
        is_flag=True,
        default=False,
        callback=_remember,
        expose_value=False,
        help="Do not ask the hooks pre-commit and pre-merge.",
    )


def _declared(names: tuple[str, ...]) -> list[str]:
    return [*names[:-1], _PREFIX + names[-1]]
