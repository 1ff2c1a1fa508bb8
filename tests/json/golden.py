"""Golden files: a command line, its folder, and its output, with symbolic names.

`<main~1>` is a hash of the repository that every golden folder has, `<id of db.orders>` a content
id. Values that the command line creates are numbered in the order of their appearance: `<hash 1>`,
`<id 1>`, `<time 1>`, `<request 1>`, `<run 1>`.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.command.outcome import Outcome
from tests.command.process import Forker, Nessie, recorded
from tests.json.lake import BEGIN, MINUTE, Lakes, placeholders

FOLDER = Path(__file__).with_name("golden")
HAPPENS = "happens/"
"""Prefix of golden files that need more than a command line; `test_whatever_happens` creates
their situations."""
FIELDS = Path(__file__).with_name("fields.txt")
"""Every attribute that was ever published."""
_UUID = r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
_DIGITS = re.compile(
    rf"(?P<hash>(?<![0-9a-f])[0-9a-f]{{64}}(?![0-9a-f]))|(?P<id>{_UUID})|(?P<time>{_INSTANT})|(?P<run>\d{{8}}T\d{{6}}Z(?:-\d+)?)"
)
_REQUEST = re.compile(r'(?<="requestId":")[0-9a-f]{16,32}(?=")')
_SHORT = re.compile(r"\b[0-9a-f]{8,40}\b")
_AGO = re.compile(r"\bjust now\b|\b\d+ (?:second|minute|hour|day|week|month|year)s? ago\b")
_VERSIONS = re.compile(r'"(version|python)": ?"\d+\.[^"]*"')
_HOST = re.compile(r'"host":"[^"]*"')
_RUN_TIME = re.compile(r'"(began|ended)":"[^"]*"')
"""The begin and the end of a run, which may be in one second."""
_SCRIPT = re.compile(r'"(script|help|text|token|tokenId|fact)":"(?:[^"\\]|\\.)*"')
"""Long texts that have their own tests, and random texts."""
_INSTALLED = re.compile(
    r'("name":"(?:extra [\w-]+|java)"),"status":"\w+","fact":"[^"]*"(?:,"fix":"[^"]*")?'
)
"""A check of `nessie doctor` that depends on the machine."""
_NAME = re.compile(r"<(?:(id|time|request|hash|run) )?([^<>]*)>")


_WORDS = frozenset(
    {
        "<folder>",
        "<home>",
        "<server>",
        "<shared>",
        "<version>",
        "<python>",
        "<script>",
        "<help>",
        "<text>",
        "<token>",
        "<tokenId>",
        "<fact>",
        "<host>",
    }
)
"""Names that do not replace digits."""


class Case(NamedTuple):
    """The input of a golden file.

    `given` are command lines that run before, `stdin` is the input of the last one.
    """

    run: str
    folder: str = "lake"
    given: Sequence[str] = ()
    stdin: str = ""
    env: Mapping[str, str] = {}

    @property
    def words(self) -> list[str]:
        """Returns the arguments of `nessie`."""
        return shlex.split(self.run)[1:]


class Runner:
    """Runs cases, each in its own folder."""

    def __init__(self, root: Path, forker: Forker) -> None:
        self._lakes = Lakes(root / "lakes")
        self._root = root
        self._forker = forker
        self._number = 0

    def run(self, case: Case) -> tuple[Outcome, Outcome]:
        """Returns the outcome, raw and with names."""
        self._number += 1
        place = self._root / str(self._number)
        work, home = place / "work", place / "home"
        home.mkdir(parents=True)
        names = dict(self._lakes.put(case.folder, work))
        nessie = Nessie(work, home, self._forker)
        recorded(nessie)
        places = placeholders(work)
        for line in case.given:
            nessie.ok(*filled(line, places))
        outcome = nessie(*filled(case.run, places), env=case.env, stdin=case.stdin)
        return outcome, named(
            outcome, {str(place / "work"): "<folder>", str(home): "<home>"}, names, places["shared"]
        )


def filled(line: str, places: Mapping[str, str]) -> list[str]:
    """Returns the arguments of `nessie`; a case with its own braces (JSON) is unchanged."""
    arguments = shlex.split(line)[1:]
    return [
        argument.replace("{shared}", places["shared"]).replace("{folder}", places["folder"])
        for argument in arguments
    ]


def named(
    outcome: Outcome,
    paths: Mapping[str, str],
    names: dict[str, str] | None = None,
    shared: str = "",
) -> Outcome:
    """Returns an outcome with names instead of paths and digits; `names` maps known digits."""
    namer = _Namer({} if names is None else names)
    texts = {}
    for field in ("out", "err"):
        text = getattr(outcome, field)
        for path, name in paths.items():
            text = text.replace(path, name)
        if shared:
            text = text.replace(f"'{shared}'", "'<shared>'")
        texts[field] = namer.text(text)
    return outcome._replace(**texts)


class _Namer:
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names
        self._counts = dict.fromkeys(("hash", "id", "time", "request", "run"), 0)

    def text(self, text: str) -> str:
        text = _INSTALLED.sub(r'\1,"status":"OK","fact":""', text)
        text = _HOST.sub('"host":"<host>"', text)
        text = _RUN_TIME.sub(r'"\1":"<time \1>"', text)
        text = _VERSIONS.sub(r'"\1":"<\1>"', _SCRIPT.sub(r'"\1":"<\1>"', text))
        text = _DIGITS.sub(lambda match: self._name(match.lastgroup or "", match[0]), text)
        text = _SHORT.sub(lambda match: self._short(match[0]), text)
        text = _AGO.sub("<ago>", text)
        return _REQUEST.sub(lambda match: self._name("request", match[0]), text)

    def _short(self, digits: str) -> str:
        return next(
            (
                name.replace("<", "<short ")
                for hash_, name in self._names.items()
                if hash_.startswith(digits)
            ),
            digits,
        )

    def _name(self, kind: str, digits: str) -> str:
        if kind == "time" and _is_prepared(digits):
            return digits
        if digits not in self._names:
            self._counts[kind] += 1
            self._names[digits] = f"<{kind} {self._counts[kind]}>"
        return self._names[digits]


def _is_prepared(instant: str) -> bool:
    """Returns whether an instant is one of the prepared repository's, which never change."""
    from datetime import datetime

    microseconds = int(datetime.fromisoformat(instant).timestamp() * 1_000_000)
    return microseconds < BEGIN + 1000 * MINUTE


def concrete(value: Any) -> Any:
    """Returns a golden answer with digits instead of names, so that a schema can check it."""
    if isinstance(value, dict):
        return {name: concrete(item) for name, item in value.items()}
    if isinstance(value, list):
        return [concrete(item) for item in value]
    return _NAME.sub(_digits, value) if isinstance(value, str) else value


def _digits(match: re.Match[str]) -> str:
    kind, name = match[1], match[0]
    if kind == "id":
        return str(uuid.uuid5(uuid.NAMESPACE_OID, name))
    if kind == "time":
        return "2026-01-01T00:00:00.000001Z"
    if name in _WORDS:
        return match[2]
    digest = hashlib.sha256(name.encode()).hexdigest()
    return digest[:32] if kind == "request" else digest


# -- files ---------------------------------------------------------------------------------------
def path_of(name: str) -> Path:
    return FOLDER / f"{name}.json"


def every() -> list[str]:
    """Returns the names of all golden files."""
    return sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.json"))


def of_command_lines() -> list[str]:
    """Returns the names of those that a command line produces."""
    return [name for name in every() if not name.startswith(HAPPENS)]


def read(name: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(path_of(name).read_text(encoding="utf-8"))
    return document


def case_of(document: Mapping[str, Any]) -> Case:
    return Case(**{name: document[name] for name in Case._fields if name in document})


def document_of(case: Case, outcome: Outcome) -> dict[str, Any]:
    """Returns the content of a golden file: the case without defaults, and the answer.

    An answer of several lines is a list.
    """
    asked = {
        name: value
        for name, value in case._asdict().items()
        if value and value != Case._field_defaults.get(name)
    }
    lines = [json.loads(line) for line in outcome.out.splitlines()]
    answer = lines if "--jsonl" in case.words else lines[0] if len(lines) == 1 else lines
    return {**asked, "exit": outcome.code, "stderr": outcome.err.splitlines(), "stdout": answer}
