"""Files of Maven Central for tests: cached in the local Maven repository, fetched and
verified.

A program that fetches one reports whether only the network failed: see `main`.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import requests

from tests.environment import as_given

CENTRAL = "https://repo1.maven.org/maven2"
ABSENT = "NESSIE_TEST_ABSENT"
"""The environment variable with the name of a file. A program that cannot fetch its
requirements writes the reason there, in one line. `.ci/run` reads it."""
PAUSES = (0, 5, 10, 15)
"""Seconds before each attempt."""
PATIENCE = 60
"""Seconds without a byte after which a download has failed."""
LONGEST = 600
"""Seconds that one download may take: the largest has 245 MB."""


class Unavailable(Exception):
    """A requirement is unavailable; the text names it and the reason."""


class Damaged(Unavailable):
    """A fetched file is not the released one. Unlike a missing network, this is a failure."""


class Artifact(NamedTuple):
    """One released jar."""

    title: str
    """Its name in messages."""
    group: str
    name: str
    version: str
    sha256: str
    classifier: str = ""

    @property
    def place(self) -> str:
        """The path below the address of every Maven repository, and below its folder."""
        file = "-".join(filter(None, [self.name, self.version, self.classifier]))
        return f"{self.group.replace('.', '/')}/{self.name}/{self.version}/{file}.jar"

    @property
    def path(self) -> Path:
        """The path in the local repository, even if the file does not exist."""
        return repository() / self.place

    @property
    def coordinates(self) -> str:
        """The coordinates as Maven writes them."""
        return ":".join(
            [self.group, self.name, self.version, "jar", *filter(None, [self.classifier])]
        )

    def fetched(
        self, into: Path | None = None, ways: Sequence[Fetch] = (), pauses: Sequence[float] = PAUSES
    ) -> Path:
        """Returns the path of the file, after fetching it by Maven or HTTPS if it is missing.

        Reads all of it once. `into` is another repository than the machine's, for `ways` that
        support it. Raises Unavailable if several attempts failed, and Damaged if the file is not
        the expected one.
        """
        path = (into or repository()) / self.place
        faults: list[str] = []
        damaged = False
        for pause, fetch in zip(pauses, ways or attempts(), strict=True):
            if path.exists():
                return self._checked(path)
            time.sleep(pause)
            try:
                fetch(self, path)
            except (OSError, subprocess.SubprocessError, Unavailable) as fault:
                faults.append(str(fault))
                damaged = damaged or isinstance(fault, Damaged)
        if path.exists():
            return self._checked(path)
        if damaged:
            raise Damaged("\n".join([f"{self.title} is not what its checksum says", *faults]))
        raise Unavailable(
            "\n".join(
                [f"{self.title} cannot be fetched from Maven Central; is there a network?", *faults]
            )
        )

    def _checked(self, path: Path) -> Path:
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != self.sha256:
            raise Damaged(
                f"{path} is not the released file: SHA-256 {found}; remove it, and it is fetched"
                " again"
            )
        return path


Fetch = Callable[[Artifact, Path], None]
"""Stores an artifact at a path. Errors: OSError, SubprocessError, Unavailable, Damaged."""


@as_given()
def repository() -> Path:
    """Returns the local Maven repository: MAVEN_REPOSITORY, or Maven's default."""
    return Path(os.environ.get("MAVEN_REPOSITORY") or Path.home() / ".m2" / "repository")


def by_maven(artifact: Artifact, path: Path) -> None:
    """Uses Maven, which knows the mirrors and proxies of this machine.

    It checks the file and stores it atomically.
    """
    words = [
        "mvn",
        "-q",
        "-B",
        "-U",
        "dependency:get",
        f"-Dmaven.repo.local={repository()}",
        "-Dtransitive=false",
    ]
    words += [f"-Dartifact={artifact.coordinates}"]
    reason = subprocess.run(
        words, capture_output=True, stdin=subprocess.DEVNULL, timeout=LONGEST, check=False
    )
    if reason.returncode:
        raise Unavailable(
            "Maven: " + (reason.stdout + reason.stderr).decode(errors="replace")[-500:]
        )
    if not path.exists():
        raise Unavailable(f"Maven has not put it to {path}")


def by_https(artifact: Artifact, path: Path, central: str = CENTRAL) -> None:
    """Fetches the file from Maven Central, checks it, and stores it atomically."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    digest, deadline = hashlib.sha256(), time.monotonic() + LONGEST
    try:
        with (
            requests.get(f"{central}/{artifact.place}", stream=True, timeout=PATIENCE) as answer,
            part.open("wb") as file,
        ):
            answer.raise_for_status()
            for piece in answer.iter_content(1 << 20):
                digest.update(piece)
                file.write(piece)
                if time.monotonic() > deadline:
                    raise Unavailable(f"{central} is too slow: more than {LONGEST} seconds")
        if digest.hexdigest() != artifact.sha256:
            raise Damaged(
                f"what {central} sends is not the released file: SHA-256 {digest.hexdigest()}"
            )
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def attempts(first: Fetch = by_maven) -> list[Fetch]:
    """Returns Maven and plain HTTPS in turn, with this machine's own proxies and certificates.

    Without Maven, only HTTPS is tried.
    """
    ways = (
        [first, by_https if first is by_maven else by_maven] if shutil.which("mvn") else [by_https]
    )
    return [as_given()(ways[number % len(ways)]) for number in range(len(PAUSES))]


def main(
    artifact: Artifact,
    fetch: Callable[[Artifact], Path] = Artifact.fetched,
    absent: Path | None = None,
) -> int:
    """Fetches an artifact; returns the exit status for a program.

    If only the network has failed, the reason is also written to the file `absent` (the one that
    the variable `ABSENT` names), because a missing network is not a failure of the tested code.
    """
    try:
        fetch(artifact)
    except Unavailable as fault:
        sys.stderr.write(f"{fault}\n")
        absent = absent or Path(os.environ.get(ABSENT) or os.devnull)
        if not isinstance(fault, Damaged):
            absent.write_text(str(fault).partition("\n")[0] + "\n", encoding="utf-8")
        return 1
    return 0
