"""The parser's command for a function: what Typer makes of it, made faster.

Typer reads a function's annotations twice, by way of its signature and of its evaluated type hints, a fifth of the work of a short command. Here the
annotations are taken as they stand, which needs them to be no text (see `commands`), and parameters of the everyday types are made without loading
what Typer has for all others. A test compares each command with Typer's own.
"""

from __future__ import annotations

from copy import copy
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any

from typer._click import types
from typer._click.globals import get_current_context
from typer.core import TyperArgument, TyperOption
from typer.models import ArgumentInfo, Context, OptionInfo, ParameterInfo, ParamMeta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

_TYPES = {str: types.STRING, int: types.INT, bool: types.BOOL}
_SAME = (
    "show_default", "show_choices", "show_envvar", "help", "hidden", "metavar", "expose_value", "is_eager", "envvar", "shell_complete",
    "rich_help_panel",
)  # fmt: skip
"""What is said in an `Option(...)` or `Argument(...)` and taken over."""
_SELDOM = ("callback", "autocompletion", "default_factory", "parser", "click_type")
_SAME_OF_OPTIONS = ("prompt", "confirmation_prompt", "prompt_required", "hide_input", "count", "allow_from_autoenv")


def Option(default: Any = ..., *names: str, **said: Any) -> OptionInfo:  # noqa: N802 - as Typer calls it
    """What `typer.Option` answers; Typer's own has a page of annotations, which take longer to evaluate than all options of a command to make."""
    return OptionInfo(default=default, param_decls=names, **said)


def Argument(default: Any = ..., **said: Any) -> ArgumentInfo:  # noqa: N802 - as Typer calls it
    """What `typer.Argument` answers."""
    return ArgumentInfo(default=default, **said)


def command_of(function: Callable[..., Any], kind: Callable[..., Any], **more: Any) -> Any:
    """The command that parses the parameters of a function and calls it; `kind` is the class of the command, `more` its other arguments."""
    parameters, convertors, context = [], {}, {}
    for meta in _metas(function):
        if meta.annotation is Context:
            context[meta.name] = get_current_context
            continue
        parameter, convertor = _parameter(meta)
        parameters.append(parameter)
        if convertor:
            convertors[meta.name] = convertor

    def call(**values: Any) -> Any:
        for name, convertor in convertors.items():
            values[name] = convertor(values[name])
        return function(**values, **{name: current() for name, current in context.items()})

    return kind(callback=call, params=parameters, **more)


def _metas(function: Callable[..., Any]) -> Iterator[ParamMeta]:
    """What Typer has to know of each parameter, in order."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    positional = names[: code.co_argcount]
    defaults = function.__defaults__ or ()
    given = dict(zip(positional[len(positional) - len(defaults) :], defaults, strict=True)) | (function.__kwdefaults__ or {})
    for name in names:
        annotation, default = function.__annotations__[name], given.get(name, ParamMeta.empty)
        info = default if isinstance(default, ParameterInfo) else None
        for extra in getattr(annotation, "__metadata__", ()):
            info = _with_default(extra, default)
            annotation = annotation.__origin__
        yield ParamMeta(name=name, default=default if info is None else copy(info), annotation=annotation)


def _parameter(meta: ParamMeta) -> tuple[Any, Callable[[Any], Any] | None]:
    """What parses a parameter, and what is then made of the value."""
    info, type_ = meta.default, meta.annotation
    if type(type_) is UnionType:
        type_ = next(part for part in type_.__args__ if part is not NoneType)
    many = getattr(type_, "__origin__", None) is list
    if many:
        type_ = type_.__args__[0]
    if type_ not in _TYPES or not isinstance(info, ParameterInfo) or any(getattr(info, name) for name in _SELDOM):
        from typer.main import get_click_param

        return get_click_param(meta)
    required = info.default is ...
    default = None if required else info.default
    said = {name: getattr(info, name) for name in _SAME} | {"required": required, "default": default}
    convertor = _listed(default) if many else None
    if isinstance(info, ArgumentInfo):
        return TyperArgument(param_decls=[meta.name], type=_parsed(type_, info), nargs=-1 if many else None, **said), convertor
    return _option(meta.name, info, None if type_ is bool else _parsed(type_, info), said, many=many), convertor


def _parsed(type_: type, info: ParameterInfo) -> types.ParamType:
    if type_ is int and (info.min is not None or info.max is not None):
        return types.IntRange(min=info.min, max=info.max, clamp=info.clamp)
    return _TYPES[type_]


def _option(name: str, info: ParameterInfo, type_: types.ParamType | None, said: dict[str, Any], *, many: bool) -> TyperOption:
    """An option; without a type it is a flag."""
    word = name.lower().replace("_", "-")
    names = info.param_decls or [f"--{word}" if type_ else f"--{word}/--no-{word}"]
    more = {name: getattr(info, name) for name in _SAME_OF_OPTIONS}
    return TyperOption(param_decls=[name, *names], type=type_, is_flag=None if type_ else True, multiple=many, **more, **said)


def _listed(default: Any) -> Callable[[Sequence[Any] | None], list[Any] | None]:
    """The values of an option that may be repeated, as a list; None for none of them, where that is the default."""

    def listed(values: Sequence[Any] | None) -> list[Any] | None:
        return None if values is None or (default is None and not values) else list(values)

    return listed


def _with_default(info: ParameterInfo, default: Any) -> ParameterInfo:
    """An `Option(...)` or `Argument(...)` that stands in an annotation, with the default of its parameter."""
    info = copy(info)
    if isinstance(info, OptionInfo) and info.default is not ...:
        # The first name that was given stands where, out of an annotation, the default would.
        info.param_decls = (str(info.default), *(info.param_decls or ()))
        info.default = ...
    if default is not ParamMeta.empty:
        info.default = default
    return info
