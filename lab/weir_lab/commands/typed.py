# SPDX-License-Identifier: MIT
"""Options as annotations of parameters, for every version of Typer from 0.7 on.

Debian 12 has Typer 0.7, which finds options only in the defaults of parameters. There `readable`
moves them. With Typer 0.9 and later nothing changes.
"""

import copy
import inspect
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Optional, get_args, get_origin, get_type_hints

import typer
from typer.models import ArgumentInfo, OptionInfo

READS_ANNOTATIONS = inspect.signature(typer.Option).parameters["default"].default is ...

_option: Callable[..., OptionInfo] = typer.Option
_argument: Callable[..., ArgumentInfo] = typer.Argument


def option(*names: str, **rest: object) -> OptionInfo:
    """An option, for `Annotated`."""
    return _option(*names, **rest) if READS_ANNOTATIONS else _option(..., *names, **rest)


def argument(**rest: object) -> ArgumentInfo:
    """An argument, for `Annotated`."""
    return _argument(**rest) if READS_ANNOTATIONS else _argument(..., **rest)


def _without_bar(kind: object) -> object:
    """The type without `X | None`, which Typer 0.7 does not know."""
    if get_origin(kind) is not UnionType:
        return kind
    (only,) = (each for each in get_args(kind) if each is not NoneType)
    return Optional[only]  # noqa: UP045


def moved(function: Callable[..., None]) -> Callable[..., None]:
    """The same function, with its options in the defaults of its parameters."""

    def called(**values: object) -> None:
        function(**values)

    parameters, types = [], {}
    hints = get_type_hints(function, include_extras=True)
    for parameter in inspect.signature(function).parameters.values():
        hint, info = hints[parameter.name], None
        if get_origin(hint) is Annotated:
            hint, info = get_args(hint)
        default = parameter.default
        if info is not None:
            info = copy.copy(info)
            info.default = ... if default is inspect.Parameter.empty else default
            default = info
        types[parameter.name] = _without_bar(hint)
        parameters.append(parameter.replace(default=default, kind=inspect.Parameter.KEYWORD_ONLY))
    called.__name__, called.__doc__ = function.__name__, function.__doc__
    called.__annotations__ = types
    vars(called)["__signature__"] = inspect.Signature(parameters)
    return called


def readable(function: Callable[..., None]) -> Callable[..., None]:
    """The function as the installed Typer reads it."""
    return function if READS_ANNOTATIONS else moved(function)
