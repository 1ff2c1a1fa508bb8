"""What wheel and source distribution hold."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

import nessie_cli
from tests.environment import given
from tests.install.conftest import ROOT, run

NAME = f"nessie_cli-{nessie_cli.__version__}"
SHARE = f"{NAME}.data/data/share"


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_the_wheel_carries_the_package_the_manual_and_the_completions_and_nothing_else(released):
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
    }

    assert set(contents(released.wheel)) == expected
    assert len(pages) > 50


def test_the_wheel_says_what_it_is(released):
    found = contents(released.wheel)
    metadata = found[f"{NAME}.dist-info/METADATA"].decode()

    assert found[f"{NAME}.dist-info/entry_points.txt"].decode().split("\n")[:2] == [
        "[console_scripts]",
        "nessie = nessie_cli.cli.main:main",
    ]
    assert f"Version: {nessie_cli.__version__}\n" in metadata
    for extra in ("iceberg", "serve", "spark", "postgres", "all"):
        assert f"Provides-Extra: {extra}\n" in metadata


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
