"""Settings files, and the errors for invalid ones."""

from __future__ import annotations

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.settings import SettingsFile


def test_the_error_for_invalid_toml_names_file_and_line(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('author = "a"\nstore = \n', encoding="utf-8")

    with pytest.raises(InvalidInput, match=r"config\.toml, line 2: not TOML"):
        SettingsFile(path)


def test_dots_of_usual_settings_are_not_too_many(tmp_path):
    path = tmp_path / "config.toml"
    names = "".join(
        f"[profiles.p{n}]\nstore = 'https://h{n}.example.org/api/v2'\n" for n in range(5000)
    )
    folders = ", ".join(f"'/home/jane.doe/lake.{n}'" for n in range(1000))
    path.write_text(
        f"safe-directories = [{folders}]\n{'a.' * 100}a = 'x'\n{names}", encoding="utf-8"
    )
    settings = SettingsFile(path)
    assert settings.text("profiles", "p4999", "store") == "https://h4999.example.org/api/v2"
    assert len(settings.texts_of("safe-directories")) == 1000
