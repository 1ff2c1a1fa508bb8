"""The language check finds what it is for, and nothing in good English."""

from __future__ import annotations

import pytest

from lint import language


def found(path: str, source: str) -> list[tuple[int, str]]:
    return [(one.line, one.message.split(":")[0]) for one in language.check(path, source)]


LONG = "word " * 20


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ('"""Read by whoever asks."""\n', [(1, "'whoever'")]),
        ('"""One.\n\nTwo is\ntold three."""\n', [(3, "'is told'")]),
        ('X = 1\n"""Is gone on with."""\n', [(2, "'gone on with'")]),
        ("# A file that\n# is no folder.\n", [(2, "'is no'")]),
        ('f(f"{name} is no folder")\n', [(1, "'is no'")]),
        (f'"""{LONG}"""\n', [(1, "106 columns"), (1, "first line of a docstring")]),
        (f"X = 1  # {LONG}\n", [(1, "109 columns")]),
        (f'X = "{LONG}"\n', []),
        ('"""There is no file, and it is no longer read. Tell pytest."""\n', []),
    ],
)
def test_python(source: str, expected: list[tuple[int, str]]) -> None:
    assert found("nessie_cli/x.py", source) == expected


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("# Title\n\nRead by whoever\nasks.\n", [(3, "'whoever'")]),
        ("```console\n$ whoever\n```\n", []),
        (f"{LONG}. W{LONG}\n", [(1, "203 columns")]),
        (f"{LONG}, e.g. `a. B` {LONG[:70]}\n", []),
        (f"| {LONG}. {LONG} |\n", []),
        (f"1. {LONG}[link](https://example.org/{'x' * 200}).\n", []),
        (f"{LONG * 2} word word.\n", [(1, "a sentence of 211 columns")]),
        (f"- One. `two`. {LONG}\n", [(1, "114 columns")]),
    ],
)
def test_markdown(source: str, expected: list[tuple[int, str]]) -> None:
    assert found("docs/x.md", source) == expected


def test_strings_of_tests_are_data() -> None:
    source = '"""Read by whoever."""\nX = "is no folder"\n'
    assert found("tests/x.py", source) == [(1, "'whoever'")]
    assert len(found("nessie_cli/x.py", source)) == 2


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("def f():\n    found = 1\n", "found"),
        ("def f():\n    for one in x: ...\n", "one"),
        ("def f():\n    return [0 for known in x]\n", "known"),
        ("def f(): #\n    async def g(*words): ...\n", "words"),
        ("x = (0,\n    lambda wanted: 0)\n", "wanted"),
    ],
)
def test_local_variables_have_names_that_say_what_they_hold(source: str, name: str) -> None:
    assert found("nessie_cli/x.py", source) == [(2, f"'{name}'")]
    assert found("tests/x.py", source) == []


def test_fields_and_called_names_may_be_any_word() -> None:
    source = "class A:\n    kept: int\n\n    def f(self):\n        return self.found(one=1)\n"
    assert found("nessie_cli/x.py", source) == []


def test_words_of_the_original_server_are_not_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lines = {"words.txt": [r"\bis no\b -> is not a"], "original.txt": ["'x' is no branch"]}
    monkeypatch.setattr(language, "lines_of", lines.__getitem__)
    monkeypatch.setattr(language, "_original", language._original.__wrapped__)
    assert found("nessie_cli/x.py", "f(\"'x' is no branch\")\n") == []
    assert len(found("nessie_cli/x.py", "f(\"'y' is no branch\")\n")) == 1
