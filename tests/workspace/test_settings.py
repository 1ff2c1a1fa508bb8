"""Settings files, and the errors for invalid ones."""

from __future__ import annotations

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.settings import Settings


def test_the_error_for_invalid_toml_names_file_and_line(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('author = "a"\nstore = \n', encoding="utf-8")

    with pytest.raises(InvalidInput, match=r"config\.toml, line 2: not TOML"):
        Settings(path)
