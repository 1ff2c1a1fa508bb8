"""The wheel, installed by each of the three usual installers into its own environment: the
command, its manual and its completions work."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import nessie_cli
from tests.install.conftest import ROOT, Released, run

TOOLS = Path(sys.executable).parent
BASE_PYTHON = Path(sys.base_prefix) / "bin" / "python3"


class Installed(NamedTuple):
    """A home in which the command was installed: the paths of its files, and the environment of
    a user with only it on the PATH."""

    prefix: Path
    home: Path
    environment: dict[str, str]

    def __call__(self, *words: str, cwd: Path | None = None) -> str:
        program = shutil.which("nessie", path=self.environment["PATH"])
        assert program
        assert Path(program).is_relative_to(self.home)
        return run(program, *words, env=self.environment, cwd=cwd or self.home)


def by_pip(home: Path, wheel: Path, environment: dict[str, str]) -> Path:
    venv.create(home / ".local", symlinks=True)
    run(
        TOOLS / "python",
        "-m",
        "pip",
        "--python",
        home / ".local/bin/python",
        "install",
        "--no-compile",
        wheel,
        env=environment,
        cwd=home,
    )
    return home / ".local"


def by_pipx(home: Path, wheel: Path, environment: dict[str, str]) -> Path:
    run(
        TOOLS / "pipx",
        "install",
        "--python",
        BASE_PYTHON,
        "--pip-args=--no-compile",
        wheel,
        env=environment,
        cwd=home,
    )
    return home / "pipx/venvs/nessie-cli"


def by_uv(home: Path, wheel: Path, environment: dict[str, str]) -> Path:
    run(TOOLS / "uv", "tool", "install", "--python", BASE_PYTHON, wheel, env=environment, cwd=home)
    return home / "uv/nessie-cli"


INSTALLERS: dict[str, Callable[[Path, Path, dict[str, str]], Path]] = {
    "pip": by_pip,
    "pipx": by_pipx,
    "uv": by_uv,
}


@pytest.fixture(scope="module", params=INSTALLERS)
def installed(
    request: pytest.FixtureRequest,
    released: Released,
    wheels: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Installed]:
    """The command, installed by one installer in an otherwise empty home, without a registry."""
    home = tmp_path_factory.mktemp(request.param)
    offline = {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(wheels),
        "UV_NO_INDEX": "1",
        "UV_OFFLINE": "1",
        "UV_FIND_LINKS": str(wheels),
    }
    places = {
        "PIPX_HOME": "pipx",
        "UV_TOOL_DIR": "uv",
        "UV_CACHE_DIR": "uv-cache",
        "XDG_DATA_HOME": ".local/share",
    }
    environment = {
        "PATH": f"{home}/.local/bin{os.pathsep}{os.defpath}",
        "HOME": str(home),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
    }
    installing = environment | offline | {name: str(home / place) for name, place in places.items()}
    prefix = INSTALLERS[request.param](home, released.wheel, installing)
    yield Installed(prefix, home, environment)
    shutil.rmtree(home)


def test_the_command_works(installed):
    assert installed("--version").startswith(f"nessie {nessie_cli.__version__} (Python ")
    assert "NAME\n    nessie-log - " in installed("help", "log")


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        ("serve", "serve"),
        ("log --filter true", "filters"),
        ("gc mark", "iceberg"),
        ("branch --store postgresql://localhost/x", "postgres"),
    ],
)
def test_a_missing_package_is_reported_with_a_hint_to_install_it(installed, tmp_path, words, extra):
    installed("init", cwd=tmp_path)
    table = ("content", "put", "t", "--type", "iceberg-table", "--metadata-location")
    installed(*table, "s3://lake/t.json", "--snapshot-id", "1", "-m", "t", cwd=tmp_path)
    program = shutil.which("nessie", path=installed.environment["PATH"])
    done = subprocess.run(
        [program, *words.split()],
        env=installed.environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1, done.stderr
    assert f"pip install 'nessie-cli[{extra}]'" in done.stderr
    assert not list(tmp_path.glob(".nessie/gc/*"))


def test_a_workflow_works_outside_of_the_checkout(installed, tmp_path):
    story = [
        "init",
        "content put db --type namespace -m first",
        "switch -c dev",
        (
            "content put db.orders --type iceberg-table --metadata-location s3://lake/1.json"
            " --snapshot-id 1 -m orders"
        ),
        "switch main",
        "merge dev",
        "fsck",
    ]
    for line in story:
        installed(*line.split(), cwd=tmp_path)

    log = json.loads(installed("log", "--json", cwd=tmp_path))
    assert [entry["commitMeta"]["message"] for entry in log["logEntries"]][1:] == [
        "orders",
        "first",
    ]
    assert installed("content", "list", cwd=tmp_path).split()[::3] == ["db", "db.orders"]


def test_completion_files_are_where_shells_find_them(installed):
    places = {
        "bash": "bash-completion/completions/nessie",
        "zsh": "zsh/site-functions/_nessie",
        "fish": "fish/vendor_completions.d/nessie.fish",
    }
    files = {"bash": "nessie.bash", "zsh": "_nessie", "fish": "nessie.fish"}

    for shell, place in places.items():
        script = (ROOT / "completions" / files[shell]).read_text(encoding="utf-8")
        assert (installed.prefix / "share" / place).read_text(encoding="utf-8") == script
        assert installed("completion", shell) == script
    assert "switch" in installed("__complete", "--", "swi")


@pytest.mark.skipif(shutil.which("man", path=os.defpath) is None, reason="man is not installed")
def test_man_finds_every_page(installed):
    pages = sorted((ROOT / "man").glob("man*/*"))
    # uv links only programs into a common folder; with pip and pipx, the pages are beside the
    # program's folder on the PATH, where man finds them.
    place = (
        {}
        if installed.prefix.parent.name != "uv"
        else {"MANPATH": str(installed.prefix / "share/man")}
    )

    found = run(
        "man", "-w", *(page.name for page in pages), env=installed.environment | place, cwd=ROOT
    ).splitlines()

    assert all(Path(line).is_relative_to(installed.home) for line in found)
    assert [Path(line).name for line in found] == [shown_for(page) for page in pages]


def shown_for(page: Path) -> str:
    """Returns the file that man reads for a page, which may refer to another one."""
    first = page.read_text(encoding="utf-8").splitlines()[0]
    return Path(first.removeprefix(".so ")).name if first.startswith(".so ") else page.name
