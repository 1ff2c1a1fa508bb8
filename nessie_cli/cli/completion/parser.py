"""Parses an incomplete line with the parser of the commands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from nessie_cli.cli.app.aliases import expanded
from nessie_cli.cli.app.group import LazyGroup, root
from nessie_cli.cli.completion.candidates import Candidates
from nessie_cli.cli.completion.kinds import FREE, kind_of_option, words_of
from nessie_cli.cli.completion.request import Request, request_of_kind

HELP = (("-h", "--help"), "Show the command's options and examples, and exit.")
VERSION = (
    ("--version",),
    (
        "Print the versions of nessie and Python, and the newest store format that nessie"
        " supports, and exit."
    ),
)


def read(arguments: Sequence[str]) -> Request | Candidates:
    """Returns the request for the last word after `nessie`, or candidates from the parser."""
    before, last = list(arguments[:-1]), arguments[-1] if arguments else ""
    before = expanded(before)
    base = request_of_kind(FREE, [*before, last])
    ctx, rest = _context(before)
    path = ctx.command_path.removeprefix("nessie").strip()
    parameters = ctx.command.get_params(ctx)
    is_behind = "--" in before
    asked = None if is_behind else _awaits_value(parameters, before[-1] if before else "")
    if asked is not None and not (last.startswith("-") and _is_optional(asked)):
        return base._replace(kind=kind_of_option(path, asked), word=last, prefix="")
    if last.startswith("-") and not is_behind:
        name, equals, value = last.partition("=")
        option = _option(parameters, name) if equals else None
        if option is not None and not option.is_flag:
            return base._replace(
                kind=kind_of_option(path, option), word=value, prefix=name + equals
            )
        return _options(parameters, before, last, is_root=not path)
    if isinstance(ctx.command, LazyGroup):
        return base._replace(kind="command", word=last, words=path.split()) if not rest else []
    metavars = [
        parameter.metavar or str(parameter.name).upper()
        for parameter in parameters
        if parameter.param_type_name == "argument"
    ]
    given = [
        value
        for parameter in parameters
        if parameter.param_type_name == "argument"
        for value in _given(ctx, parameter)
    ]
    kind = words_of(path, metavars).at(len(given), is_behind=is_behind)
    if path in ("branch", "tag") and (ctx.params.get("delete") or ctx.params.get("force_delete")):
        kind = path
    return base._replace(kind=kind, word=last, words=given)


class _IgnoredOptions:
    """Receives global options while a line is parsed. `request_of_kind` reads them instead."""

    @property
    def options(self) -> _IgnoredOptions:
        """The attribute that the parser's callbacks use."""
        return self

    def take(self, name: str, value: object) -> None:
        """Does nothing."""


def _context(arguments: Sequence[str]) -> tuple[Any, list[str]]:
    """Returns the context of the innermost command in the words, and the remaining words."""
    command: Any = root()
    ctx = command.make_context(
        "nessie", list(arguments), obj=_IgnoredOptions(), resilient_parsing=True
    )
    rest = [*ctx._protected_args, *ctx.args]  # noqa: SLF001 - Click has no public name for the words of a group
    while rest and isinstance(ctx.command, LazyGroup):
        if rest[0] not in ctx.command.table:
            return ctx, rest
        name, command, rest = ctx.command.resolve_command(ctx, rest)
        ctx = command.make_context(name, list(rest), parent=ctx, resilient_parsing=True)
        rest = [*ctx._protected_args, *ctx.args] if isinstance(command, LazyGroup) else []  # noqa: SLF001
    return ctx, rest


def _given(ctx: Any, argument: Any) -> list[Any]:
    value = ctx.params.get(argument.name)
    if value is None or ctx.get_parameter_source(argument.name).name != "COMMANDLINE":
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


def _option(parameters: Sequence[Any], name: str) -> Any:
    return next(
        (
            parameter
            for parameter in parameters
            if name in (*parameter.opts, *parameter.secondary_opts)
            and parameter.param_type_name == "option"
        ),
        None,
    )


def _awaits_value(parameters: Sequence[Any], word: str) -> Any:
    """Returns the option whose value is completed, or None."""
    if not word.startswith("-") or "=" in word:
        return None
    name = word if word.startswith("--") or len(word) <= len("-x") else f"-{word[-1]}"
    option = _option(parameters, name)
    return None if option is None or option.is_flag or getattr(option, "count", False) else option


def _is_optional(option: Any) -> bool:
    """Whether the value of an option is optional."""
    return (option.metavar or "").startswith("[")


def _options(
    parameters: Sequence[Any], before: Sequence[str], last: str, *, is_root: bool
) -> Candidates:
    """Returns the options that can still be given. A single dash includes the short ones."""
    options = [
        (tuple(parameter.opts) + tuple(parameter.secondary_opts), parameter)
        for parameter in parameters
        if parameter.param_type_name == "option"
    ]
    hidden = {
        id(parameter) for _, parameter in options if parameter.hidden and not _is_global(parameter)
    }
    candidates: Candidates = []
    for names, parameter in options:
        if (
            parameter.name == "help"
            or id(parameter) in hidden
            or (set(names) & set(before) and not parameter.multiple)
        ):
            continue
        candidates += [(name, parameter.help or "") for name in _shown(names, last)]
    for names, text in (HELP, *((VERSION,) if is_root else ())):
        candidates += [(name, text) for name in _shown(names, last)]
    return candidates


def _is_global(parameter: Any) -> bool:
    return str(parameter.name).startswith("global_")


def _shown(names: Sequence[str], last: str) -> Sequence[str]:
    long = [name for name in names if name.startswith("--")]
    return long if long and last.startswith("--") else names
