"""Signatures that list the options of a function one by one, for `help()`, editors and `inspect.signature()`.

A type checker reads the options of `**options: Unpack[SearchOptions]`, but `inspect` does not (PEP 692), and IPython
completes what `inspect` lists. A signature of seventy parameters takes a millisecond to make, and is made when it is
first read.
"""

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Self, TypeVar, get_args, get_type_hints

F = TypeVar("F", bound=Callable[..., Any])


class Unset:
    """Default of an option that a function leaves to rg, or to its documentation."""

    def __repr__(self) -> str:
        return "..."

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unset)

    __hash__ = object.__hash__


UNSET = Unset()


class OptionSignature(inspect.Signature):
    """Signature of a function that lists its `**options`; without a known default, it is `Unset`."""

    __slots__ = ("_defaults", "_function")
    _function: Any  # a function, but type checkers would take it for a method
    _defaults: Mapping[str, object]

    @classmethod
    def of(cls, function: FunctionType, defaults: Mapping[str, object]) -> Self:
        """Return the signature of a function, which is not made yet."""
        signature = cls.__new__(cls)
        signature._function, signature._defaults = function, defaults  # noqa: SLF001 - of the same class
        return signature

    def __getattr__(self, name: str) -> Any:
        """Make the signature when one of its slots is read that is not set yet."""
        if name in self.__slots__ or name not in inspect.Signature.__slots__:
            raise AttributeError(name)
        function = self._function
        copy = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
        copy.__kwdefaults__, copy.__annotations__ = function.__kwdefaults__, function.__annotations__
        plain = inspect.signature(copy)  # of a function without this signature
        *named, options = plain.parameters.values()
        unpacked = options.annotation
        if isinstance(unpacked, str):
            unpacked = eval(unpacked, function.__globals__)  # noqa: S307 - of ripwrap
        listed = _parameters(unpacked, self._defaults)
        self.__init__([*named, *listed], return_annotation=plain.return_annotation)  # type: ignore[misc]
        return getattr(self, name)


def _parameters(unpacked: object, defaults: Mapping[str, object]) -> list[inspect.Parameter]:
    """Return a parameter for each key of the `TypedDict` in an annotation `Unpack[TypedDict]`."""
    (options,) = get_args(unpacked)
    marked, types = get_type_hints(options, include_extras=True), get_type_hints(options)
    return [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=defaults.get(name, _default(marked[name], kind)),
            annotation=kind,
        )
        for name, kind in types.items()
    ]


def _default(marked: Any, kind: object) -> bool | Unset | None:
    """Return the default of an option that its type tells."""
    flag = next((mark for mark in getattr(marked, "__metadata__", ()) if hasattr(mark, "negated")), None)
    if bool in (kind, *get_args(kind)) and flag is not None and not flag.negated:
        return bool(flag.default)
    return None if type(None) in get_args(kind) else UNSET


def lists_options(defaults: Mapping[str, object] | None = None) -> Callable[[F], F]:
    """Return a decorator for a function with `**options: Unpack[…]`, whose signature then lists the options."""

    def decorate(function: F) -> F:
        plain: Any = function
        if plain.__code__.co_flags & inspect.CO_VARKEYWORDS and not hasattr(plain, "__signature__"):
            plain.__signature__ = OptionSignature.of(plain, defaults or {})
        return function

    return decorate
