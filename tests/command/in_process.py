"""The command line, run in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from nessie_cli.cli.main import run
from tests.command.outcome import Outcome

SETTINGS = (
    "NESSIE_STORE",
    "NESSIE_ENDPOINT",
    "NESSIE_REF",
    "NO_COLOR",
    "CLICOLOR_FORCE",
    "PAGER",
    "NESSIE_PAGER",
    "COLUMNS",
)
"""Variables that change answers."""


def do_not_combine_tables(config: Path) -> None:
    """Makes a table that both sides changed a conflict, in a new folder of settings.

    The tables of most tests have no files, and a storage that does not exist answers slowly.
    """
    folder = config / "nessie"
    if not folder.exists():
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text('[merge]\ntables = "conflict"\n')


class InProcess:
    """`nessie ARGS...` in a folder, with a home of its own; stdin is not a terminal."""

    def __init__(
        self,
        folder: Path,
        author: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self._monkeypatch = monkeypatch
        self._capsys = capsys
        for name in SETTINGS:
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("NESSIE_AUTHOR", author)
        monkeypatch.setenv("HOME", str(folder / "home"))
        monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "home" / "config"))
        do_not_combine_tables(folder / "home" / "config")
        monkeypatch.chdir(folder)

    def __call__(self, *args: str, **environment: str) -> Outcome:
        """Runs one command line; the variables stay for those after it."""
        for name, value in environment.items():
            self._monkeypatch.setenv(name, value)
        self._capsys.readouterr()
        code = run(list(args))
        return Outcome(code, *self._capsys.readouterr())

    def ok(self, *args: str, **environment: str) -> Outcome:
        """Runs a command line that must succeed."""
        outcome = self(*args, **environment)
        assert outcome.code == 0, outcome
        return outcome
