"""The contents of the wheel and the source distribution."""

from __future__ import annotations

import hashlib
import os
import re
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import nessie_cli
from tests.environment import given
from tests.install.conftest import ROOT, run

APACHE_2_0 = "cfc7749b96f63bd31c3c42b5c471bf756814053e847c10f3eb003417bc523d30"
"""The SHA-256 of https://www.apache.org/licenses/LICENSE-2.0.txt"""
NAME = f"nessie_cli-{nessie_cli.__version__}"
LICENCES = ("LICENSE", "NOTICE", "THIRD-PARTY-NOTICES.md")
SHARE = f"{NAME}.data/data/share"


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_contains_exactly_package_manual_and_completions(released):
    pages = [path.relative_to(ROOT) for path in (ROOT / "man").glob("man*/*")]
    modules = [
        path.relative_to(ROOT)
        for path in (ROOT / "nessie_cli").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    ]
    expected = {
        *map(str, modules),
        *(f"nessie_cli/{page}" for page in pages),
        *(f"{SHARE}/{page}" for page in pages),
        *(f"nessie_cli/completions/{path.name}" for path in (ROOT / "completions").iterdir()),
        f"{SHARE}/bash-completion/completions/nessie",
        f"{SHARE}/zsh/site-functions/_nessie",
        f"{SHARE}/fish/vendor_completions.d/nessie.fish",
        *(
            f"{NAME}.dist-info/{name}"
            for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt")
        ),
        *(f"{NAME}.dist-info/licenses/{name}" for name in LICENCES),
    }

    assert set(contents(released.wheel)) == expected
    assert len(pages) > 50


def test_the_wheel_has_complete_metadata(released):
    found = contents(released.wheel)
    metadata = found[f"{NAME}.dist-info/METADATA"].decode()

    assert found[f"{NAME}.dist-info/entry_points.txt"].decode().split("\n")[:2] == [
        "[console_scripts]",
        "nessie = nessie_cli.cli.main:main",
    ]
    assert f"Version: {nessie_cli.__version__}\n" in metadata
    for extra in ("iceberg", "serve", "spark", "postgres", "all"):
        assert f"Provides-Extra: {extra}\n" in metadata


def test_the_licence_is_the_unchanged_apache_licence(released):
    found = contents(released.wheel)
    text = found[f"{NAME}.dist-info/licenses/LICENSE"]

    assert hashlib.sha256(text).hexdigest() == APACHE_2_0
    assert b"\nLicense-Expression: Apache-2.0\n" in found[f"{NAME}.dist-info/METADATA"]


def test_the_notices_list_every_installed_library():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.match(r"[\w-]+", line)[0] for lines in needed for line in lines} - {"nessie-cli"}
    page = (ROOT / "THIRD-PARTY-NOTICES.md").read_text(encoding="utf-8")

    assert {
        name for name in names if not re.search(rf"^\| .*\b{name}\b", page, re.MULTILINE)
    } == set()


def test_builds_are_reproducible(released, tmp_path):
    """The second build has another folder, another time, other file modes and file times."""
    with tarfile.open(released.source) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / NAME
    (source / "PKG-INFO").unlink()
    for path in source.rglob("*"):
        os.utime(path, (1_700_000_000, 1_700_000_000))
        path.chmod(0o700 if path.stat().st_mode & 0o100 else 0o600)
    environment = given() | {"TZ": "Pacific/Auckland", "PYTHONHASHSEED": "7"}
    run(sys.executable, "-m", "hatchling", "build", "-d", tmp_path, env=environment, cwd=source)

    for file in released:
        assert (tmp_path / file.name).read_bytes() == file.read_bytes()


def test_the_source_distribution_builds_the_same_wheel(released, tmp_path):
    with tarfile.open(released.source) as archive:
        archive.extractall(tmp_path, filter="data")
    source = tmp_path / NAME
    run(
        sys.executable,
        "-m",
        "hatchling",
        "build",
        "-t",
        "wheel",
        "-d",
        tmp_path,
        env=given(),
        cwd=source,
    )

    assert contents(tmp_path / released.wheel.name) == contents(released.wheel)
    for name in (
        "Makefile",
        "README.md",
        "tests/conftest.py",
        "completions/nessie.bash",
        "man/man1/nessie.1",
        "docs/reference/commands/nessie.md",
    ):
        assert (source / name).read_bytes() == (ROOT / name).read_bytes()
