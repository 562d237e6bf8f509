"""What is to be said of a collected answer, for a person or an agent: pure."""

from ripwrap._rg.sifter import Sifter, Window


def message(found: Sifter, window: Window, shown: int, next_offset: int | None, ended_after: float | None) -> str:
    """A sentence about the matches, and one for each thing that a reader could otherwise take for granted.

    Args:
        found: What was counted.
        window: What was asked for.
        shown: How many matches are on the page.
        next_offset: Where the next page begins, if there is one.
        ended_after: How many seconds rg had, if they were too few.
    """
    place = f"Matches {window.offset + 1} to {window.offset + shown} of "
    if not found.matches:
        text = "No matches found"
    elif not shown:
        text = f"{amount(found, ended_after)}, none of them shown"
        text += f" from offset={window.offset} on" if window.offset else ""
    else:
        text = ("" if shown == found.matches else place) + amount(found, ended_after)
        text += "" if next_offset is None else f"; offset={next_offset} gives the next"
    sentences = [text[0].upper() + text[1:]]
    if ended_after is not None:
        sentences.append(f"The search was ended after {ended_after:g} seconds; narrow it, or give it more time")
    if found.dropped_records:
        sentences.append(f"{plural(found.dropped_records, 'line')} left out, of over 20 MiB in rg's JSON")
    if found.binary:
        sentences.append(
            f"{plural(found.binary, 'file')} taken for binary, from its first NUL byte; text=True searches all"
        )
    return ". ".join(sentences) + "."


def amount(found: Sifter, ended_after: float | None = None) -> str:
    """How much was found, or at least was."""
    text = f"{plural(found.matches, 'match', 'es')} in {plural(found.files, 'file')}"
    return text if ended_after is None and not found.dropped_records else f"at least {text}"


def plural(number: int, noun: str, ending: str = "s") -> str:
    """`1 file`, `2 files`."""
    return f"{number} {noun}{'' if number == 1 else ending}"
