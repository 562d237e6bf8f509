"""The definition that encloses a line, and where its block ends; the patterns are loaded with `outline` alone."""

from pydantic import BaseModel


class Section(BaseModel, frozen=True):
    """A definition, heading, table or key, and the lines that belong to it.

    Attributes:
        name: What it is called, with what it stands in where that is a definition too, as in `Shop.add`; the text of a
            heading; empty where none can be told.
        line: The number of the line that defines it, from 1.
        text: That line, without the white space around it, and at most 200 characters of it.
        end_line: The number of its last line.
    """

    name: str
    line: int
    text: str
    end_line: int
