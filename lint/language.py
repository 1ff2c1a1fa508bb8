"""Finds wording, names and long lines that the style of this project rules out.

Python files: docstrings and comments, and in shipped code all other strings (help texts, messages)
and the names of parameters and local variables.
Markdown files: prose, not code blocks or tables.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
CHECKED = ("*.md", "*.py")
GENERATED = ("docs/reference/commands/", "docs/reference/json/", "man/")
"""Written by `make docs`; their sources are checked."""
NAMES = (
    "begin", "beside", "found", "kept", "known", "lasts",
    "one", "pieces", "some", "wanted", "words",
)  # fmt: skip
"""Names that do not say what a parameter or local variable of shipped code holds."""
DATA = ("tests/", "bench/", "lint/")
"""Code whose strings are data: only its docstrings and comments are checked."""

COLUMNS = 100
FIRST_LINE = 90
"""Columns of the first line of a docstring."""
SENTENCE = 200
"""Columns of a Markdown line with one sentence. Targets of links are not counted."""

_LINK_TARGET = re.compile(r"(?<=\])\([^)\s]*\)|https?://\S+")
_INLINE_CODE = re.compile(r"(`+).+?\1")
_LIST_MARKER = re.compile(r"^\s*(?:[-*+]|\d+\.)\s+")
_SENTENCE_BREAK = re.compile(r"(?<!\be\.g)(?<!\bi\.e)(?<!\bvs)[.!?][)\"'*_]*\s+[(\"'*_\[]*[A-Z0-9]")
_NOT_PROSE = re.compile(r"^\s*(?:\||#|<|:{3,}|\[[^\]]+\]:|\(\w[\w-]*\)=$)")


class Finding(NamedTuple):
    """A place that breaks a rule, and what to do about it."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


class Text(NamedTuple):
    """A piece of text and the line of its file where it begins."""

    line: int
    text: str


def lines_of(name: str) -> list[str]:
    """Returns the entries of a list in this folder, without comments and empty lines."""
    text = (ROOT / "lint" / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line.strip() and not line.startswith("#")]


def check(path: str, source: str) -> list[Finding]:
    """Returns the findings of one file in the order of their lines."""
    findings = _markdown(source) if path.endswith(".md") else _python(path, source)
    return sorted({Finding(path, line, message) for line, message in findings})


# -- wording ----------------------------------------------------------------------------------


@cache
def _words() -> list[tuple[re.Pattern[str], str]]:
    entries = (line.rpartition(" -> ") for line in lines_of("words.txt"))
    return [(re.compile(pattern, re.IGNORECASE), instead) for pattern, _, instead in entries]


@cache
def _original() -> re.Pattern[str] | None:
    phrases = lines_of("original.txt")
    return re.compile("|".join(map(re.escape, phrases))) if phrases else None


def _wording(text: Text) -> Iterator[tuple[int, str]]:
    original = _original()
    # Replaced by as many characters, so that the line numbers stay. A phrase may cross lines.
    body = original.sub(lambda found: "x" * len(found[0]), text.text) if original else text.text
    body = re.sub(r"\s", lambda space: " " if space[0] == "\n" else space[0], body)
    for pattern, instead in _words():
        for found in pattern.finditer(body):
            line = text.line + text.text.count("\n", 0, found.start())
            yield line, f"{found[0].strip()!r}: write {instead}"


# -- Python -----------------------------------------------------------------------------------


def _python(path: str, source: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(source)
    docstrings, strings = _strings(tree)
    if path.startswith("nessie_cli/"):
        yield from _names(tree)
    comments = list(_comments(source))
    for text in (*docstrings, *comments, *(() if path.startswith(DATA) else strings)):
        yield from _wording(text)
    for docstring in docstrings:
        # Three quotes and the indentation are not counted: the rule is about the sentence.
        if len(docstring.text.split("\n", 1)[0]) > FIRST_LINE:
            yield docstring.line, f"first line of a docstring: more than {FIRST_LINE} columns"
    written = source.splitlines()
    for text in (*docstrings, *comments):
        for line in range(text.line, text.line + text.text.count("\n") + 1):
            if len(written[line - 1]) > COLUMNS and not re.search(
                r"# (noqa|type: ignore)", written[line - 1]
            ):
                yield line, f"{len(written[line - 1])} columns: at most {COLUMNS}"


def _names(tree: ast.Module) -> Iterator[tuple[int, str]]:
    functions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    for function in (node for node in ast.walk(tree) if isinstance(node, functions)):
        for node in ast.walk(function):
            match node:
                case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) if name in NAMES:
                    yield node.lineno, f"{name!r}: name a variable for what it holds"


def _strings(tree: ast.Module) -> tuple[list[Text], list[Text]]:
    """Returns the docstrings, those below attributes included, and all other strings."""
    alone = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    docstrings: list[Text] = []
    strings: list[Text] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            (docstrings if id(node) in alone else strings).append(Text(node.lineno, node.value))
    return docstrings, strings


def _comments(source: str) -> Iterator[Text]:
    """Yields comments; those on lines that follow each other are one text."""
    begun: Text | None = None
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type != tokenize.COMMENT:
            continue
        line, words = token.start[0], token.string.lstrip("#").strip()
        if begun and line == begun.line + begun.text.count("\n") + 1:
            begun = begun._replace(text=f"{begun.text}\n{words}")
        else:
            if begun:
                yield begun
            begun = Text(line, words)
    if begun:
        yield begun


# -- Markdown ---------------------------------------------------------------------------------


def _markdown(source: str) -> Iterator[tuple[int, str]]:
    for paragraph in _paragraphs(source):
        yield from _wording(paragraph)
        for number, line in enumerate(paragraph.text.split("\n"), paragraph.line):
            if not _NOT_PROSE.match(line):
                yield from _prose_line(number, line)


def _paragraphs(source: str) -> Iterator[Text]:
    """Yields what stands between empty lines and code blocks."""
    begun, fence = 0, ""
    lines = [*source.splitlines(), ""]
    for number, line in enumerate(lines, 1):
        mark = re.match(r"\s*(```+|~~~+)", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence):
            fence = ""
        elif not fence and line.strip():
            begun = begun or number
            continue
        if begun:
            yield Text(begun, "\n".join(lines[begun - 1 : number - 1]))
        begun = 0


def _prose_line(number: int, line: str) -> Iterator[tuple[int, str]]:
    if len(line) <= COLUMNS:
        return
    shown = _LINK_TARGET.sub("", line)
    body = _LIST_MARKER.sub("", _INLINE_CODE.sub("X", shown))
    if _SENTENCE_BREAK.search(body):
        yield number, f"{len(line)} columns: one sentence per line, or at most {COLUMNS} columns"
    elif len(shown) > SENTENCE:
        yield number, f"a sentence of {len(shown)} columns: at most {SENTENCE}"


# -- the files --------------------------------------------------------------------------------


def files(paths: Iterable[str]) -> list[str]:
    """Returns the checked files among paths, which may be folders, relative to the project."""
    found: set[str] = set()
    for name in paths:
        path = ROOT / name
        if path.is_dir():
            parts = {
                one.relative_to(ROOT).as_posix() for kind in CHECKED for one in path.rglob(kind)
            }
        else:
            parts = {path.relative_to(ROOT).as_posix()}
        found |= {
            part for part in parts if not part.startswith((*GENERATED, ".", "build/", "dist/"))
        }
    return sorted(found)


def find(paths: Iterable[str]) -> list[Finding]:
    """Returns the findings of all files of paths."""
    return [
        finding
        for path in files(paths)
        for finding in check(path, (ROOT / path).read_text(encoding="utf-8"))
    ]
