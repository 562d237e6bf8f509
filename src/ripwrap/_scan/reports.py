"""Reports of a scan: SARIF for other programs, and a baseline, which lists the matched texts that are already known."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from typing import Annotated, Any, Literal, Self
from urllib.parse import quote

from pydantic import Field, ValidationError

from ripwrap._scan.rules import Rule, check_rules
from ripwrap._text import plural
from ripwrap.models import HistoryScanMatch, Model, ScanMatch
from ripwrap.options import StrPath

SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


def sarif(hits: Iterable[ScanMatch], rules: Mapping[str, str] | Iterable[Rule]) -> dict[str, Any]:
    """Return the log of a scan in the format SARIF 2.1.0, for `json.dump`.

    The log has the positions of the texts, but not the texts themselves, because they may be secrets. Paths are
    relative to the `cwd` of the scan. The properties of a result from a git history have the commit that introduced the
    version of the file, with its author, date and subject.
    https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html defines the format.

    Args:
        hits: Texts that `scan()` found.
        rules: Rules of the scan.

    Raises:
        ValueError: The matches have no line numbers, because of `no_line_number`; or there is no rule, or two rules
            have the same name.
        KeyError: A text has a rule that is not in `rules`.
    """
    known = check_rules(rules)
    order = {rule.id: number for number, rule in enumerate(known)}
    driver = {
        "name": "ripwrap",
        "version": metadata.version("ripwrap"),
        "rules": [
            {
                "id": rule.id,
                "shortDescription": {"text": rule.description or rule.id},
                **({"properties": {"tags": list(rule.tags)}} if rule.tags else {}),
            }
            for rule in known
        ],
    }
    run = {
        "tool": {"driver": driver},
        "columnKind": "unicodeCodePoints",
        "results": [_result(hit, known[order[hit.rule]], order[hit.rule]) for hit in hits],
    }
    return {"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(hit: ScanMatch, rule: Rule, index: int) -> dict[str, Any]:
    place: dict[str, Any] = {"artifactLocation": {"uri": quote(os.fsencode(hit.path.replace(os.sep, "/")))}}
    if not rule.finds_names:
        ((start_line, start_column, end_line, end_column),) = hit.ranges()
        place["region"] = {
            "startLine": start_line,
            "startColumn": start_column + 1,
            "endLine": end_line,
            "endColumn": end_column + 1,
        }
    return {
        "ruleId": rule.id,
        "ruleIndex": index,
        "level": "warning",
        "message": {"text": rule.description or f"matched by the rule {rule.id}"},
        "locations": [{"physicalLocation": place}],
        "partialFingerprints": {"ripwrap/v1": hit.fingerprint},
        **({"properties": _version(hit)} if isinstance(hit, HistoryScanMatch) else {}),
    }


def _version(hit: HistoryScanMatch) -> dict[str, Any]:
    """Return the commit that introduced the version of a match, and the version."""
    commit = hit.first.model_dump(mode="json")
    return {"commit": commit.pop("id"), **commit, "blob": hit.blob, "paths": hit.model_dump(mode="json")["paths"]}


class Baseline(Model, frozen=True):
    """Texts that an earlier scan has found, so that later scans can report only new texts.

    A text is known if the baseline has a text with the same rule, path and content. The line number does not matter. If
    a file has a text twice, and the baseline has the text once, the second occurrence is new. In a git history, this
    holds for each version of a file, so a known text in a new version is known. The baseline stores hashes, not texts.
    A short text can be guessed from its hash.

    Attributes:
        version: Version of the format.
        known: Map from each `ScanMatch.fingerprint` (a hash) to the number of known texts with this fingerprint.
    """

    version: Literal[1] = 1
    known: dict[str, Annotated[int, Field(ge=1)]]

    @classmethod
    def of(cls, hits: Iterable[ScanMatch]) -> Self:
        """Return the baseline of all texts of a scan."""
        numbers = Counter((hit.fingerprint, _blob(hit)) for hit in hits)
        known: dict[str, int] = {}
        for (fingerprint, _), number in numbers.items():
            known[fingerprint] = max(number, known.get(fingerprint, 0))
        return cls(known=dict(sorted(known.items())))

    @classmethod
    def read(cls, path: StrPath) -> Self:
        """Read a baseline from a file.

        Raises:
            ValueError: The file is not a baseline.
            OSError: The file cannot be read.
        """
        with open(path, "rb") as file:
            content = file.read()
        try:
            return cls.model_validate_json(content)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            said = f"{where}: {first['msg']}" if where else first["msg"]
            raise ValueError(f"{os.fspath(path)} is not a baseline of ripwrap ({said}); write a new one") from error

    def write(self, path: StrPath) -> None:
        """Write the baseline to a file; an existing file is replaced.

        Raises:
            OSError: The file cannot be written.
        """
        text = json.dumps(self.model_dump(), indent=1)
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(f"{text}\n")

    def new(self, hits: Iterable[ScanMatch]) -> Iterator[ScanMatch]:
        """Yield the texts that are not in the baseline."""
        seen: Counter[tuple[str, str]] = Counter()
        for hit in hits:
            fingerprint = hit.fingerprint
            seen[fingerprint, _blob(hit)] += 1
            if seen[fingerprint, _blob(hit)] > self.known.get(fingerprint, 0):
                yield hit

    def __str__(self) -> str:
        return plural(sum(self.known.values()), "known text")


def _blob(hit: ScanMatch) -> str:
    return hit.blob if isinstance(hit, HistoryScanMatch) else ""
