"""The Java of a wheel, as Spark starts it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from nessie_cli.workspace.java import wrapped


def test_all_arguments_are_passed_except_the_missing_module(tmp_path: Path) -> None:
    home = tmp_path / "a wheel's"
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\nprintf '<%s>' \"$@\"\n")
    java.chmod(0o755)
    words = [
        "-XX:+X",
        "--add-modules=jdk.incubator.vector",
        "-cp",
        "a b:*",
        "",
        "--conf",
        "x=$HOME 'y' \"z\"",
        "--add-modules=java.base",
    ]

    for _ in range(2):
        folder = wrapped(home, tmp_path / "cache" / "java")
        arguments = subprocess.run(
            [folder / "bin" / "java", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        ).stdout

        assert arguments == "".join(f"<{word}>" for word in words if "incubator" not in word)
    assert [path.name for path in (folder / "bin").iterdir()] == ["java"]
    assert (
        subprocess.run(
            [folder / "bin" / "java"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        == "<>"
    )
