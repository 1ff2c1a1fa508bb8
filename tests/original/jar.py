"""The released original server, one jar of Maven Central, which is kept in the local Maven repository. As a program it fetches it."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import requests

from tests.environment import as_given

VERSION = "0.99.0"
NAME = f"org/projectnessie/nessie/nessie-quarkus/{VERSION}/nessie-quarkus-{VERSION}-runner.jar"
CENTRAL = "https://repo1.maven.org/maven2"
SHA256 = "ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417"
ATTEMPTS = 4
PATIENCE = 60
"""Seconds without a byte after which a download has failed."""
LONGEST = 600
"""Seconds that one download of 245 MB may take."""


class Unavailable(Exception):
    """What is needed to run the original server cannot be had; the text says what, and why."""


class Damaged(Unavailable):
    """What came is not the released file. Unlike a network that is not there, this is a failure."""


@as_given()
def jar() -> Path:
    """Where the jar is; it is fetched when it is not there, by Maven where there is one, else over plain HTTPS.

    Errors: Unavailable when several attempts have failed, Damaged when something else came in one of them.
    """
    path = repository() / NAME
    faults: list[str] = []
    damaged = False
    for attempt in range(ATTEMPTS):
        if path.exists():
            return path
        time.sleep(5 * attempt)
        fetch = by_maven if shutil.which("mvn") and attempt % 2 == 0 else by_https
        try:
            fetch(path)
        except (OSError, subprocess.SubprocessError, Unavailable) as fault:
            faults.append(f"{fetch.__name__}: {fault}")
            damaged = damaged or isinstance(fault, Damaged)
    if path.exists():
        return path
    if damaged:
        raise Damaged(f"the original server {VERSION} is not what its checksum says\n" + "\n".join(faults))
    # `.ci/run` knows this sentence: what the network does not give is no failure.
    raise Unavailable(f"the original server {VERSION} cannot be fetched from Maven Central; is there a network?\n" + "\n".join(faults))


@as_given()
def repository() -> Path:
    """The local Maven repository: MAVEN_REPOSITORY, or Maven's own place."""
    return Path(os.environ.get("MAVEN_REPOSITORY") or Path.home() / ".m2" / "repository")


def by_maven(path: Path) -> None:
    """Maven knows the mirrors and proxies of this machine; it checks what it has fetched, and moves it into place whole."""
    words = ["mvn", "-q", "-B", "-U", "dependency:get", f"-Dmaven.repo.local={repository()}", "-Dtransitive=false"]
    words += [f"-Dartifact=org.projectnessie.nessie:nessie-quarkus:{VERSION}:jar:runner"]
    told = subprocess.run(words, capture_output=True, stdin=subprocess.DEVNULL, timeout=LONGEST, check=False)
    if told.returncode:
        raise Unavailable((told.stdout + told.stderr).decode(errors="replace")[-500:])
    if not path.exists():
        raise Unavailable(f"Maven has not put it to {path}")


def by_https(path: Path) -> None:
    """The same file from Maven Central itself, checked, and moved into place whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    digest, deadline = hashlib.sha256(), time.monotonic() + LONGEST
    try:
        with requests.get(f"{CENTRAL}/{NAME}", stream=True, timeout=PATIENCE) as answer, part.open("wb") as file:
            answer.raise_for_status()
            for piece in answer.iter_content(1 << 20):
                digest.update(piece)
                file.write(piece)
                if time.monotonic() > deadline:
                    raise Unavailable(f"{CENTRAL} is too slow: more than {LONGEST} seconds")
        if digest.hexdigest() != SHA256:
            raise Damaged(f"what {CENTRAL} sends is not the released file: SHA-256 {digest.hexdigest()}")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


if __name__ == "__main__":
    try:
        jar()
    except Unavailable as fault:
        sys.exit(str(fault))
