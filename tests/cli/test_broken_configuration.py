"""PyIceberg's configuration that its parser refuses: the place, and none of its secrets."""

from __future__ import annotations

from pathlib import Path

import pytest

from nessie_cli.cli.errors.faults import fault_of
from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.filesystems import properties_of
from tests.command.process import Nessie, fresh

BROKEN = 'catalog:\n  prod: {type: rest, token: "s3cr3t"}\n'


@pytest.mark.parametrize("words", [("import", "prod"), ("export", "--to", "prod")])
def test_the_place_is_named_and_no_secret(tmp_path: Path, words: tuple[str, ...]) -> None:
    nessie: Nessie = fresh(tmp_path, None)
    nessie.ok("init")
    (nessie.folder / ".pyiceberg.yaml").write_text(BROKEN)
    ran = nessie(*words)
    assert ran.code == 2, ran
    assert "(.pyiceberg.yaml) cannot be read: line 2, column 10: Found" in ran.err
    assert "s3cr3t" not in ran.err + ran.out


def test_a_configuration_of_many_levels_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    levels = "".join(f"{' ' * level}a:\n" for level in range(1, 800))
    (tmp_path / ".pyiceberg.yaml").write_text(f"catalog:\n{levels}")
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    with pytest.raises(RecursionError) as deep:
        properties_of("a")
    fault = fault_of(deep.value)
    assert isinstance(fault, InvalidInput)
    assert fault.message.startswith("PyIceberg's configuration (.pyiceberg.yaml) cannot be read")
