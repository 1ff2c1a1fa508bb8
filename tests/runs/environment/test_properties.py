"""Properties files, as Java reads them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nessie_cli.runs.environment.properties import property_line, read_properties
from tests.spark.java import java_home

TEXT = r"""
# a comment \
! another one
spark.master            local[2]
spark.app.name=a load
spark.jars : a.jar,\
             b.jar
   spark.key\ with\:blank = v\u0041l\tue
spark.path C:\\data\\\
   x
spark.empty
spark.equal \=x
spark.master yarn
spark.end last \\"""

JAVA = """
import java.util.*; import java.io.*;
public class Read { public static void main(String[] a) throws Exception {
  Properties p = new Properties();
  p.load(new InputStreamReader(new FileInputStream(a[0]), "UTF-8"));
  for (String k : new TreeSet<String>(p.stringPropertyNames()))
    System.out.print(k + "\\0" + p.getProperty(k).trim() + "\\0");
} }
"""


def test_entries_are_those_of_java(tmp_path: Path) -> None:
    home = java_home()
    if home is None:
        pytest.skip("there is no Java here")
    source, file = tmp_path / "Read.java", tmp_path / "file.conf"
    source.write_text(JAVA)
    file.write_text(TEXT)
    out = subprocess.run(
        [f"{home}/bin/java", str(source), str(file)], capture_output=True, text=True, check=True
    ).stdout
    words = out.split("\0")[:-1]
    assert dict(zip(words[::2], words[1::2], strict=True)) == {
        entry.key: entry.value for entry in read_properties(TEXT)
    }


def test_the_lines_of_an_entry_mean_the_same_again() -> None:
    entries = list(read_properties(TEXT))
    again = read_properties("\n".join(entry.text for entry in entries))

    assert [(entry.key, entry.value) for entry in again] == [
        (entry.key, entry.value) for entry in entries
    ]


@given(st.text(st.characters(exclude_categories=("Cs",))).map(str.strip))
def test_a_line_can_be_read(value: str) -> None:
    (entry,) = read_properties(property_line("spark.key", value))

    assert (entry.key, entry.value) == ("spark.key", value)
