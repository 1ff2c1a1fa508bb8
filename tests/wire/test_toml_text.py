"""Files that people write: one that Python cannot read is an error that says why."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from nessie_cli.cli.merge.conflict_file import edited_content
from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.warehouses.configuration import from_toml
from nessie_cli.model.imports import ImportRecord
from nessie_cli.server.auth.rules import read_rules
from nessie_cli.server.runtime.watched_files import TRUSTED, WatchedFile
from nessie_cli.server.warehouse_file import read_warehouses
from nessie_cli.wire.row_decisions import decode_row_decisions
from nessie_cli.wire.toml_text import parse_toml

DEEP, DIGITS = "[" * 50_000 + "]" * 50_000, "9" * 5_000
DOTS = "".join(f"k{number}{'.a' * 900} = 1\n" for number in range(500))


@pytest.mark.parametrize(
    "read",
    [parse_toml, lambda text: read_rules(text.encode()), lambda text: from_toml(text.encode())],
    ids=["settings", "rules", "warehouses"],
)
@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"a = {DEEP}", "the TOML is nested too deeply"),
        (f"a = {DIGITS}", "a number has too many digits"),
        (DOTS, "has too many dots in its keys"),
    ],
    ids=["deep", "digits", "dots"],
)
def test_toml_that_python_does_not_read_is_refused(
    read: Callable[[str], object], text: str, why: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(text)
    assert refused.value.message == why


@pytest.mark.parametrize(
    "read",
    [
        lambda: edited_content(f'{{"a": {DEEP}}}'),
        lambda: decode_row_decisions(DEEP),
        lambda: ImportRecord.decode("import.x", f'{{"format": 1, "more": {DEEP}}}'),
    ],
)
def test_deep_json_that_people_write_is_refused(read: Callable[[], object]) -> None:
    with pytest.raises(InvalidInput, match=r"nested too deeply|recursion depth"):
        read()


def test_the_message_names_the_file_and_a_running_server_keeps_its_rules(tmp_path: Path) -> None:
    path, reports = tmp_path / "rules.toml", list[str]()
    path.write_text('all = "true"')
    rules = WatchedFile(path, TRUSTED, "rules file", read_rules, reports.append)
    before = rules.value()
    path.write_text(f"a = {DEEP}")
    assert rules.value() is before
    assert reports == [
        f"rules file {path}: the TOML is nested too deeply; its last valid state stays in force"
    ]
    with pytest.raises(InvalidInput, match=f"warehouse file {path}: the TOML is nested"):
        read_warehouses(path)
