"""Declarations of flags and of groups of flags, which become cyclopts' own when cyclopts reads them.

cyclopts takes 60 ms to import, and 60 ms more to assemble the flags of a search. `ripwrap.cli.plain` reads the same
declarations without it.
"""

from functools import cache, cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    import cyclopts

Class = TypeVar("Class", bound=type)


class FlagGroup(NamedTuple):
    """Group of options in help texts."""

    title: str
    sort_key: int

    @property
    def of_cyclopts(self) -> "cyclopts.Group":
        """Group as cyclopts has it; the same object each time."""
        return _group(self)


@cache  # two groups of cyclopts are never equal
def _group(group: FlagGroup) -> "cyclopts.Group":
    import cyclopts  # late: see above

    return cyclopts.Group(group.title, sort_key=group.sort_key)


class Parameter:
    """Declaration of a flag or of an argument, with the settings of `cyclopts.Parameter`.

    cyclopts looks for its own `Parameter` in annotations with `isinstance()`, which asks for `__class__`, and then
    reads the attributes.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings: dict[str, Any] = settings

    def __call__(self, declared: Class) -> Class:
        """Decorate a class whose fields are flags."""
        setattr(declared, "__cyclopts__", SimpleNamespace(obj=declared, parameters=[self]))  # noqa: B010 - not declared
        return declared

    @property  # type: ignore[misc]
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride] - it is never set
        return type(self.of_cyclopts)

    @cached_property
    def of_cyclopts(self) -> "cyclopts.Parameter":
        """Declaration as cyclopts has it."""
        import cyclopts  # late: see above

        made: dict[str, Any] = {
            name: _group(one) if type(one) is FlagGroup else one for name, one in self.settings.items()
        }
        return cyclopts.Parameter(**made)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.of_cyclopts, name)

    def names(self, key: str) -> tuple[str, ...]:
        """Return the flags of the option `key` that switch it on or take its value."""
        return (
            *(_several("name", self.settings) or (f"--{key.replace('_', '-')}",)),
            *_several("alias", self.settings),
        )

    def negatives(self) -> tuple[str, ...]:
        """Return the declared flags that switch the option off."""
        return tuple(one for one in _several("negative", self.settings) if one.startswith("-"))


def _several(name: str, settings: dict[str, Any]) -> tuple[str, ...]:
    value = settings.get(name) or ()
    return (value,) if isinstance(value, str) else tuple(value)


def parameter_of(hint: Any) -> Parameter | None:
    """Return the declaration in an annotation, if it has one."""
    return next((one for one in getattr(hint, "__metadata__", ()) if type(one) is Parameter), None)
