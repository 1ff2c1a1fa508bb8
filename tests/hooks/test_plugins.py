"""`nessie foo` runs `nessie-foo` from the PATH if no command or alias has that name."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from tests.hooks.conftest import RUN


class Plugins:
    """A folder at the beginning of the PATH."""

    def __init__(self, nessie, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        nessie.environment["PATH"] = f"{folder}{os.pathsep}{os.defpath}"

    def add(self, name: str, script: str) -> Path:
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path


@pytest.fixture
def plugins(catalog, tmp_path):
    return Plugins(catalog, tmp_path / "plugins")


def test_a_plug_in_has_its_own_arguments_streams_and_exit_code(catalog, plugins):
    plugins.add("nessie-foo", 'printf "<%s>" "$@"; cat; echo told >&2; exit 42')

    outcome = catalog("foo", "a", "b c", "", "--json", "--help", "-n", "*", stdin="given")

    assert outcome == (42, "<a><b c><><--json><--help><-n><*>given", "told\n")


def test_commands_override_aliases_and_aliases_override_plug_ins(catalog, plugins):
    for name in ("nessie-log", "nessie-lg", "nessie-help"):
        plugins.add(name, "echo plugin")
    catalog.ok("config", "set", "alias.lg", "log --oneline")

    assert catalog("log").out != "plugin\n"
    assert "first tables" in catalog("lg").out
    catalog.ok("config", "unset", "alias.lg")
    assert catalog("lg").out == "plugin\n"


def test_global_options_apply_to_commands_that_a_plug_in_runs(catalog, plugins, tmp_path):
    other = tmp_path / "other"
    catalog.ok("init", str(other))
    catalog.ok("branch", "dev", cwd=other)
    plugins.add(
        "nessie-foo",
        f'echo "$@" "$NESSIE_REF" "$NESSIE_STORE" "$NO_COLOR" "$NESSIE_PAGER"; {RUN} log; {RUN} branch --jsonl; cd /; {RUN} branch --jsonl',
    )

    store = other / ".nessie/store.sqlite"
    outcome = catalog(
        "--store",
        "../other/.nessie/store.sqlite",
        "--ref",
        "dev",
        "--color=never",
        "--no-pager",
        "-q",
        "foo",
        "x",
    )

    lines = outcome.out.splitlines()
    assert lines[0] == f"--quiet x dev {catalog.folder}/../other/.nessie/store.sqlite 1 cat"
    assert [json.loads(line)["name"] for line in lines[1:]] == ["dev", "main", "dev", "main"]
    assert store.exists()


def test_a_plug_in_uses_the_store_and_reference_of_the_workspace(catalog, plugins):
    plugins.add(
        "nessie-feature",
        f'echo "$NESSIE_STORE|$NESSIE_REF|$NESSIE_HOOK"; {RUN} switch -q -c "$1" >&2; {RUN} content put n --type namespace -m new',
    )

    outcome = catalog.ok("feature", "dev")

    assert outcome.out.splitlines()[0] == f"{catalog.folder}/.nessie/store.sqlite||"
    assert catalog.messages("dev")[0] == "new"
    assert catalog.messages("main") == ["first tables"]


def test_a_plug_in_needs_no_workspace(nessie, tmp_path):
    Plugins(nessie, tmp_path / "plugins").add("nessie-foo", 'echo "hi $NESSIE_STORE"')

    assert nessie("foo") == (0, "hi \n", "")


def test_passwords_are_not_in_the_environment(nessie, tmp_path):
    Plugins(nessie, tmp_path / "plugins").add("nessie-foo", "env")

    outcome = nessie("--store", "postgresql://ada:lovelace@host/catalog", "foo")

    assert "NESSIE_STORE=postgresql://ada@host/catalog\n" in outcome.out
    assert "lovelace" not in outcome.out


def test_help_and_suggestions_include_plug_ins(catalog, plugins):
    path = plugins.add("nessie-report", "exit 1")
    plugins.add("nessie-data", "exit 1").chmod(0o644)
    plugins.add("nessie-log", "exit 1")

    shown = catalog.ok("--help").out

    assert "Plug-ins:\n  report " in shown
    assert str(path) in re.sub(r"\s+", "", shown)
    assert "nessie-data" not in shown
    assert "nessie-log" not in shown
    assert "did you mean 'report'" in catalog("reprot").err


def test_help_without_plug_ins_does_not_mention_them(nessie, tmp_path):
    nessie.environment["PATH"] = str(tmp_path)

    assert "Plug-ins" not in nessie.ok("--help").out


@pytest.mark.parametrize(
    "word", ["../plugins/nessie-foo", "x/../foo", "", "fo o", "f\x01", "-foo", "é" * 300]
)
def test_invalid_program_names_are_usage_errors(catalog, plugins, word):
    plugins.add("nessie-foo", "echo never")

    outcome = catalog(word)

    assert (outcome.code, outcome.out) == (2, "")


def test_a_plug_in_that_cannot_run_is_reported(catalog, plugins):
    (plugins.folder / "nessie-foo").write_text("echo no first line\n")
    (plugins.folder / "nessie-foo").chmod(0o755)

    outcome = catalog("foo")

    assert outcome.code == 1
    assert "nessie-foo: the plug-in cannot be run: Exec format error" in outcome.err


def test_a_plug_in_ends_quietly_when_its_output_is_closed(catalog, plugins):
    plugins.add("nessie-foo", "yes")
    script = f"{RUN} foo | head -n 1"
    plugins.add("nessie-piped", script)

    assert catalog("piped") == (0, "y\n", "")
