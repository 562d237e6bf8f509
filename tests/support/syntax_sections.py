"""Sections of a file in its syntax tree, with which tests compare the sections that patterns find."""

from dataclasses import dataclass

from ripwrap._code.outline import MAX_NAME_CHARS, Section
from ripwrap._code.treesitter.outline import MAX_DEPTH, SyntaxDefinition, SyntaxOutline


@dataclass(frozen=True)
class SyntaxSections:
    """`Outline` of a syntax tree."""

    tree: SyntaxOutline

    def enclosing(self, line: int) -> Section | None:
        """Return the innermost section around a line (counted from 1), or None at the top level."""
        row, node, name = line - 1, self.tree.root, None
        section: Section | None = None
        for depth in range(MAX_DEPTH):
            inside = self.tree.definitions_in(node, top=depth == 0)
            found = next((one for one in inside if one.first <= row <= one.last), None)
            if found is None:
                break
            name = self.tree.qualified_name(name, found.name)
            first = self._definition_row(found)
            text = self.tree.lines[first].strip()[:MAX_NAME_CHARS]
            section = Section(name=name or "", line=first + 1, text=text, end_line=found.last + 1)
            if found.node is None:
                break
            node = found.node
        return section

    def _definition_row(self, definition: SyntaxDefinition) -> int:
        """Return the index of the first line of a definition's code that contains its name, else of its first line."""
        start = definition.first if definition.node is None else max(definition.node.start_point.row, definition.first)
        words = definition.name.replace(".", " ").split()
        if not words:
            return start
        return next((row for row in range(start, definition.last + 1) if words[-1] in self.tree.lines[row]), start)
