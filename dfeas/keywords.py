"""Keyword arguments: calls that take the fields of options, show each in their signature, and say what it means."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from dataclasses import Field, fields
from difflib import get_close_matches
from functools import wraps
from typing import Any, TypeVar

from dfeas.errors import UsageError
from dfeas.problem import Kernel, Problem, View
from dfeas.settings import entries, require_type, with_parameters

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

OTHER_WORD = "y : array (n,), path, or str, optional\n    Another word for ``labels``."
"""Of every verb that takes points."""


def takes(*groups: type, without: Sequence[str] = ()) -> Callable[[Callable[..., R]], Callable[..., R]]:
    """A verb whose keyword arguments are the fields of these classes, or one value of a class under its name in small letters.

    What is decorated gets the values. Where View is one of them its first argument is a Problem: X and labels, or one as it is.
    """
    kept = {group: [each for each in fields(group) if each.name not in without] for group in groups}

    def decorate(function: Callable[..., R]) -> Callable[..., R]:
        own, called = inspect.signature(function).parameters, function.__name__.lstrip("_")

        @wraps(function)
        def verb(*arguments: Any, **options: Any) -> R:
            values = {_word(group): _value(called, group, names, options) for group, names in kept.items()}
            for name in options.keys() - own.keys() - ({"X", "labels", "y"} if View in kept else {"X", "labels"}):
                near = get_close_matches(name, [*own, *(each.name for names in kept.values() for each in names)], 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise TypeError(f"{called}() got an unexpected keyword argument {name!r}{hint}")
            for name in options.keys() & own.keys():
                if "Sequence" not in str(own[name].annotation):  # what is in one is looked at by whoever takes it
                    require_type(name, options[name], str(own[name].annotation))
            if View not in kept:
                return function(*arguments, **options, **values)
            problem = _problem(called, arguments, options, values.pop("view"), values.pop("kernel", Kernel()))
            return function(problem, **options, **values)

        verb.__dict__["__signature__"] = inspect.Signature(list(_parameters(list(own.values()), kept)))
        added = [entry for group, names in kept.items() for entry in entries(group, {each.name for each in names})]
        about = [*entries(Problem, ("X", "labels")), OTHER_WORD] if View in kept else []
        verb.__doc__ = with_parameters(inspect.getdoc(function) or "", about, added)
        return verb

    return decorate


def like(*verbs: Callable[..., Any], without: Sequence[str] = ()) -> Callable[[F], F]:
    """A function whose ``**options`` are keyword arguments of some verbs, or most of them, shows each in its signature."""

    def decorate(function: F) -> F:
        shown = inspect.signature(function)
        own = [each for each in shown.parameters.values() if each.kind is not each.VAR_KEYWORD]
        known = dict.fromkeys([*(each.name for each in own), *without])
        more = {each.name: each for verb in verbs for each in inspect.signature(verb).parameters.values()}
        kept = [each.replace(kind=each.KEYWORD_ONLY) for name, each in more.items() if name not in known]
        vars(function)["__signature__"] = shown.replace(parameters=[*own, *kept])
        said = {entry.partition(" :")[0]: entry for verb in verbs for entry in entries(verb, [each.name for each in kept])}
        function.__doc__ = with_parameters(
            inspect.getdoc(function) or "", [], [said[each.name] for each in kept if each.name in said]
        )
        return function

    return decorate


def _word(group: type) -> str:
    return group.__name__.lower()


def _value(verb: str, group: type, names: Sequence[Field[Any]], options: dict[str, Any]) -> Any:
    """The value of a group from keyword arguments, which are taken away."""
    word = _word(group)
    whole = options.pop(word) if isinstance(options.get(word), group) else None
    given = {each.name: options.pop(each.name) for each in names if each.name in options}
    if whole is not None and given:
        raise TypeError(f"{verb}() got {word}, and {next(iter(given))}, which is a part of it")
    return group(**given) if whole is None else whole


def _problem(verb: str, given: Sequence[Any], options: dict[str, Any], view: View, kernel: Kernel) -> Problem:
    """X and labels, by place or by name, with the rest; or the problem that X is."""
    if len(given) > 2:
        raise TypeError(f"{verb}() takes X and labels by place, and all others by name")
    named: dict[str, Any] = dict(zip(("X", "labels"), given, strict=False))
    named |= {name: options.pop(name) for name in ("X", "labels") if name in options}
    if "y" in options:
        if named.get("labels") is not None:
            raise TypeError(f"{verb}() got labels, and y, which is another word for them")
        named["labels"] = options.pop("y")
    if "X" not in named:
        raise TypeError(f"{verb}() missing its points: X")
    if not isinstance(named["X"], Problem):
        return Problem(**named, view=view, kernel=kernel)
    if (named.get("labels"), view, kernel) != (None, View(), Kernel()):
        raise UsageError("a Problem has its labels, its view and its kernel: give no others beside it")
    return named["X"]


def _parameters(own: list[inspect.Parameter], kept: dict[type, list[Field[Any]]]) -> Iterator[inspect.Parameter]:
    """Of the verb as it is called: its own, without the values, and then all fields."""
    words = {_word(group) for group in kept}
    if View in kept:
        yield inspect.Parameter("X", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any)
        yield inspect.Parameter("labels", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=Any)
        yield inspect.Parameter("y", inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Any)
        own = own[1:]
    yield from (each for each in own if each.name not in words)
    for names in kept.values():
        for each in names:
            default = each.metadata["default"]
            yield inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=each.type)
