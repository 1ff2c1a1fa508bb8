"""The parser's command for a function: what Typer makes of it, made faster.

Typer reads a function's annotations twice, by way of its signature and of its evaluated type hints, a fifth of the work of a short command. Here the
annotations are taken as they stand, which needs them to be no text (see `commands`); a test compares each command with Typer's own.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any

from typer import Context
from typer._click.globals import get_current_context
from typer.main import get_click_param
from typer.models import OptionInfo, ParameterInfo, ParamMeta

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


def command_of(function: Callable[..., Any], kind: Callable[..., Any], **more: Any) -> Any:
    """The command that parses the parameters of a function and calls it; `kind` is the class of the command, `more` its other arguments."""
    parameters, convertors, context = [], {}, {}
    for meta in _metas(function):
        if meta.annotation is Context:
            context[meta.name] = get_current_context
            continue
        parameter, convertor = get_click_param(meta)
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
