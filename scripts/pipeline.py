"""Draw `docs/pictures/pipeline.svg`: the modules that a search passes through."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Stage:
    """Stage of the pipeline: its name, its modules, and the data that it passes on."""

    name: str
    rooms: Sequence[str]
    gives: str


PIPELINE = [
    Stage("query", ["options", "_ripgrep.command", "_ripgrep.query"], "a Query"),
    Stage("place", ["places", "_ripgrep.planning"], "runs of rg"),
    Stage("process", ["_ripgrep.runner", "_ripgrep.process", "_ripgrep.change"], "bytes of rg, changed"),
    Stage("decoder", ["_ripgrep.decoder"], "models"),
    Stage("operation", ["_operations", "_edits", "_scan"], "streams and results"),
]
ON_TOP = [
    Stage("blocking twins", ["sync"], "for scripts"),
    Stage("tools", ["workspace"], "for agents"),
    Stage("MCP server", ["mcp"], "for clients"),
    Stage("commands", ["cli"], "for people"),
]


def picture() -> str:
    """Return the drawing as SVG: the pipeline from left to right, with its front ends above."""
    width, gap, margin, line = 148, 22, 16, 15
    whole = margin * 2 + len(PIPELINE) * width + (len(PIPELINE) - 1) * gap
    parts: list[str] = []

    def box(x: float, y: float, wide: float, high: float, stage: Stage, fill: str) -> None:
        middle = x + wide / 2
        parts.append(f'<rect x="{x:g}" y="{y:g}" width="{wide:g}" height="{high}" rx="8" fill="{fill}"/>')
        parts.append(f'<text class="name" x="{middle:g}" y="{y + 24:g}">{escape(stage.name)}</text>')
        for number, room in enumerate(stage.rooms):
            y_room = y + 44 + number * line
            parts.append(f'<text class="room" x="{middle:g}" y="{y_room:g}">{escape(room)}</text>')

    def height(stages: Sequence[Stage]) -> int:
        return 39 + line * max(len(stage.rooms) for stage in stages)

    low, high = 36 + height(ON_TOP) + 46, height(PIPELINE)
    for number, stage in enumerate(PIPELINE):
        x = margin + number * (width + gap)
        box(x, low, width, high, stage, "#e4ecf7")
        parts.append(f'<text class="gives" x="{x + width / 2:g}" y="{low + high + 20}">{escape(stage.gives)}</text>')
        if number:
            parts.append(f'<path class="way" d="M{x - gap} {low + high / 2:g}h{gap - 7}"/>')
    wide = (whole - margin * 2 - gap * (len(ON_TOP) - 1)) / len(ON_TOP)
    last = whole - margin - width / 2
    for number, stage in enumerate(ON_TOP):
        left = margin + number * (wide + gap)
        box(left, 36, wide, height(ON_TOP), stage, "#fbeede")
        parts.append(f'<text class="gives" x="{left + wide / 2:g}" y="26">{escape(stage.gives)}</text>')
        parts.append(f'<path class="way" d="M{last:g} {low}v-22H{left + wide / 2:g}v-17"/>')
    about = f"{' → '.join(stage.name for stage in PIPELINE)}; on top: {', '.join(stage.name for stage in ON_TOP)}"
    whole_high = low + high + 34
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {whole} {whole_high}" role="img" '
        f'aria-label="{about}">\n'
        "<style>text{font-family:system-ui,sans-serif;text-anchor:middle;fill:#1b2733}"
        ".name{font-size:16px;font-weight:600}.room{font-size:11px;font-family:ui-monospace,monospace}.gives{font-size:12px;fill:#4a5a6a}"
        ".way{fill:none;stroke:#4a5a6a;stroke-width:1.5;marker-end:url(#tip)}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 6 6" refX="1" refY="3" markerWidth="6" markerHeight="6" orient="auto">'
        '<path d="M0 0L6 3L0 6z" fill="#4a5a6a"/></marker></defs>\n'
        f'<rect width="{whole}" height="{whole_high}" rx="10" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )
