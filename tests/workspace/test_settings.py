"""Settings files: reading without the parser gives the same result as with it."""

from __future__ import annotations

import tomllib

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from nessie_cli.errors import InvalidInput
from nessie_cli.workspace.settings import Settings, _plain_texts

LINES = st.lists(
    st.text(st.sampled_from('ab-_.=#"\\ [] \t\r\u2028ü'), max_size=12), max_size=4
).map("\n".join)


@given(LINES)
@settings(print_blob=True, deadline=None)
@example('a = "b"\n# c\n\nstore="sqlite:///x=y"')
@example('a = "b"\na = "c"')
@example('a = "b" # "c"')
@example('a.b = "c"')
@example('= "a"')
def test_plain_lines_are_read_as_by_the_parser(source):
    found = _plain_texts(source)

    assert found is None or found == tomllib.loads(source)


def test_a_file_of_plain_lines_needs_no_parser():
    assert _plain_texts('author = "Ada <ada@example.org>"\n\n# where\nstore = "sqlite:///x"\n') == {
        "author": "Ada <ada@example.org>",
        "store": "sqlite:///x",
    }


def test_the_error_for_invalid_toml_names_file_and_line(tmp_path):
    path = tmp_path / "config.toml"
    path.write_text('author = "a"\nstore = \n', encoding="utf-8")

    with pytest.raises(InvalidInput, match=r"config\.toml, line 2: not TOML"):
        Settings(path)
