"""Options and arguments of Python as flags of the command line: what commands take, and what messages name."""

import re
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, Unpack, get_type_hints

from cyclopts import Parameter
from typing_extensions import TypedDict

from ripwrap.options import FileOptions, Paths, SearchOptions, Strings, flag_of

Function = TypeVar("Function", bound=Callable[..., Any])
Json = Annotated[bool, Parameter(help="Print JSON, one value a line.", negative=())]
Cwd = Annotated[str, Parameter(help="The directory to start from.")]
Limit = Annotated[int | None, Parameter(help="How many results at most, over all files.")]
Places = Annotated[int | None, Parameter(help="How many places at most.")]
RgPath = Annotated[str | None, Parameter(help="Which rg to run.")]

_NAMES = "|".join((*get_type_hints(SearchOptions), "chunker", "embedder", "hybrid_weight", "location", "refresh", "rg"))
_TOLD: tuple[tuple[str, Callable[[re.Match[str]], str]], ...] = (
    (rf"(?<!\S)({_NAMES})=(?:True\b)?(?=[\s,;.)]|$)", lambda found: _flag(found[1])),
    (rf"(?<!\S)({_NAMES})=False\b", lambda found: f"--no-{_dashed(found[1])}"),
    (rf"(?<!\S)({_NAMES})='([^\s']*)'", lambda found: f"{_flag(found[1])}={found[2]}"),
    (r"(?<!\S)paths=(?=[\s,;.:]|$)", lambda _: "PATHS"),
    (r"^(\[Errno \d+\] )?(cwd|limit|hybrid_weight)(?= (?:is|does|should|says) )", lambda found: _flag(found[2])),
    (r"(?<!\S)refresh\(\)", lambda _: "`ripwrap index build`"),
    (r"(?<!\S)refresh\((\w+)=True\)", lambda found: f"`ripwrap index build --{_dashed(found[1])}`"),
    (r"(?<!\S)gc\(\)", lambda _: "`ripwrap index gc`"),
)


def flags(options: type[FileOptions]) -> Callable[[Function], Function]:
    """Give a command's `**options` the flags of a TypedDict: rg's names, letters, negations and our help."""

    def decorate(function: Function) -> Function:
        hints = get_type_hints(options, include_extras=True)
        named = {key: _parameter(key, hint) for key, hint in hints.items()}
        # Made at run time, so no checker can see its keys; they see `Unpack[SearchOptions]` in the signature.
        flags: Any = TypedDict("flags", named, total=False)  # type: ignore[misc]  # pyright: ignore[reportArgumentType]
        function.__annotations__["options"] = Unpack[flags]
        return function

    return decorate


def in_flags(text: str) -> str:
    """A message of ours that names arguments and methods, in flags: `fixed_strings=True` as `--fixed-strings`."""
    for pattern, told in _TOLD:
        text = re.sub(pattern, told, text)
    return text


def _flag(name: str) -> str:
    return f"--{_dashed(name)}"


def _dashed(name: str) -> str:
    return name.replace("_", "-")


def _parameter(key: str, hint: Any) -> Any:
    flag = flag_of(hint)
    name = _flag(key)
    negative = name.replace("--no-", "--", 1) if name.startswith("--no-") else name.replace("--", "--no-", 1)
    names = [name, f"-{flag.short}"] if flag.short else [name]
    kind = list[str] if hint.__origin__ in (Strings, Paths) else hint.__origin__
    text = flag.help + " (On by default.)" if flag.default else flag.help
    return Annotated[kind, Parameter(name=names, help=text, negative=negative if kind is bool else ())]
