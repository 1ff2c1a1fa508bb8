"""A conflict as a file to edit: both contents as one JSON document, with git's markers.

Attributes that are equal on both sides are outside of the markers. Between the markers are those of
ours, of the base and of theirs, as with git's setting merge.conflictStyle=diff3.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any

from nessie_cli.errors import InvalidInput
from nessie_cli.model import Conflict, Content
from nessie_cli.wire.contents import content_json
from nessie_cli.wire.decode import decode_content

_OURS, _BASE, _BETWEEN, _THEIRS = "<<<<<<<", "|||||||", "=======", ">>>>>>>"

Document = Mapping[str, Any]


def conflict_text(conflict: Conflict, titles: Sequence[str]) -> str:
    """Returns the file to edit. `titles` are the names of base, ours and theirs.

    If only one side has a content, that content is the whole document.
    """
    base, ours, theirs = (
        content_json(side) if side else None
        for side in (conflict.expected, conflict.actual, conflict.proposed)
    )
    if ours is None or theirs is None:
        return json.dumps(ours or theirs, indent=2, ensure_ascii=False) + "\n"
    lines = ["{", *_members(base, ours, theirs, titles), "}"]
    return "\n".join(lines) + "\n"


def edited_content(text: str) -> Content:
    """Returns the content of an edited file. Raises `InvalidInput` if conflict markers are left.

    Commas may be missing or redundant at the ends of lines, because deleted markers and lines leave
    them behind.
    """
    if any(line.startswith((_OURS, _BASE, _BETWEEN, _THEIRS)) for line in text.splitlines()):
        raise InvalidInput("conflict markers are left in the file")
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        text = _with_commas(text)
    return decode_content(text.encode(), "the edited content", allow_unknown=True)


def _members(
    base: Document | None, ours: Document, theirs: Document, titles: Sequence[str]
) -> Iterator[str]:
    names = list(dict.fromkeys([*ours, *theirs]))

    def differs(name: str) -> bool:
        return (name in ours) != (name in theirs) or ours.get(name) != theirs.get(name)

    for in_conflict, group in groupby(names, differs):
        members = list(group)
        comma = "" if members[-1] == names[-1] else ","
        if not in_conflict:
            yield from _lines(ours, members, comma)
            continue
        yield f"{_OURS} {titles[1]}"
        yield from _lines(ours, members, comma)
        if base is not None:
            yield f"{_BASE} {titles[0]}"
            yield from _lines(base, members, comma)
        yield _BETWEEN
        yield from _lines(theirs, members, comma)
        yield f"{_THEIRS} {titles[2]}"


def _lines(document: Document, names: Sequence[str], comma: str) -> list[str]:
    present = {name: document[name] for name in names if name in document}
    if not present:
        return []
    lines = json.dumps(present, indent=2, ensure_ascii=False).splitlines()[1:-1]
    return [*lines[:-1], lines[-1] + comma]


def _with_commas(text: str) -> str:
    """Adds a comma to each line that needs one. A JSON string never spans two lines."""
    lines = [line.rstrip() for line in text.splitlines() if line.strip()]
    for number, line in enumerate(lines[:-1]):
        bare = line.removesuffix(",")
        last = lines[number + 1].lstrip().startswith(("}", "]"))
        lines[number] = bare if last or bare.endswith(("{", "[", ":")) else f"{bare},"
    return "\n".join(lines)
