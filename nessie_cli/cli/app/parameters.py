"""The global options as parameters of the parser."""

from collections.abc import Mapping
from copy import copy
from functools import cache
from typing import Annotated, Any

import typer

_PREFIX = "global_"
"""Prefix of the parser's names for global options.

It avoids clashes with a command's parameters.
"""


def _declared(
    global_store: Annotated[
        str | None,
        typer.Option(
            "--store",
            metavar="URL",
            help="Use this store: a path or sqlite:///path of a SQLite file, postgresql://..., or"
            " http(s)://host/api/v2. Overrides the environment and the workspace.",
        ),
    ] = None,
    global_profile: Annotated[
        str | None,
        typer.Option(
            "--profile",
            metavar="NAME",
            help="Use this profile, which names the store and may name the reference.",
        ),
    ] = None,
    global_ref: Annotated[
        str | None,
        typer.Option(
            "--ref",
            metavar="REF",
            help="Use this branch, tag or commit as HEAD instead of the workspace's current"
            " reference.",
        ),
    ] = None,
    global_color: Annotated[
        str | None,
        typer.Option(
            "--color", metavar="WHEN", help="Use colour: auto (the default), always or never."
        ),
    ] = None,
    global_directory: Annotated[
        list[str] | None, typer.Option("-C", metavar="DIR", help="Work as if started in DIR.")
    ] = None,
    *,
    global_json: Annotated[
        bool, typer.Option("--json", help="Print the result as one JSON document.")
    ] = False,
    global_jsonl: Annotated[
        bool, typer.Option("--jsonl", help="Print each record of a listing as one line of JSON.")
    ] = False,
    global_no_pager: Annotated[
        bool, typer.Option("--no-pager", help="Never pipe a long listing into a pager.")
    ] = False,
    global_quiet: Annotated[
        bool,
        typer.Option(
            "-q", "--quiet", help="Print only errors, and the result of a command that reads."
        ),
    ] = False,
    global_verbose: Annotated[bool, typer.Option("-v", "--verbose", help="Print more.")] = False,
    global_debug: Annotated[
        bool, typer.Option("--debug", help="Show the traceback of a failure.")
    ] = False,
    global_no_verify: Annotated[bool, typer.Option("--no-verify")] = False,
) -> None:
    """Declares the global options, and `--no-verify` for commands that run hooks."""


_NO_VERIFY = f"{_PREFIX}no_verify"


def _remember(ctx: Any, param: Any, value: Any) -> None:
    if value:
        ctx.obj.options.take(param.name.removeprefix(_PREFIX), value)


@cache
def _parameters() -> list[Any]:
    """Returns the parser's parameters. Values are set in the options of the invocation."""
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command()(_declared)
    parameters = [
        parameter
        for parameter in typer.main.get_command(single).params
        if str(parameter.name).startswith(_PREFIX)
    ]
    for parameter in parameters:
        parameter.callback, parameter.expose_value = _remember, False
    return parameters


def global_parameters(*, hidden: bool) -> list[Any]:
    """Returns the global options as parameters of one command."""
    parameters = [copy(parameter) for parameter in _parameters() if parameter.name != _NO_VERIFY]
    for parameter in parameters:
        parameter.hidden = hidden
    return parameters


_STAGES = "With -m: skip the pre-commit hook."
_COMMITS = "Skip the pre-commit hook."
_MERGES = "Skip the pre-merge hook."

RUN_HOOKS: Mapping[str, str] = {
    "content.delete": _STAGES,
    "content.put": _STAGES,
    "content.rename": _STAGES,
    "content.replace": _STAGES,
    "content.unmodified": _STAGES,
    "merge.merge": _MERGES,
    "merge.resolve": "Skip the hooks pre-commit and pre-merge.",
    "merge.revert": _COMMITS,
    "merge.transplant": _MERGES,
    "staging.commit": _COMMITS,
    "staging.restore": _STAGES,
}
"""The modules of commands that commit or merge, each with its help for `--no-verify`."""


def no_verify_parameter(module: str) -> Any:
    """Returns the option `--no-verify`, which is set in the invocation like a global option."""
    no_verify = next(copy(parameter) for parameter in _parameters() if parameter.name == _NO_VERIFY)
    no_verify.help = RUN_HOOKS[module]
    return no_verify
