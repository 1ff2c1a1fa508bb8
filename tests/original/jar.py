"""The released original server, one jar of Maven Central. As a program, it fetches it."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

from tests.maven import Artifact, main

VERSION = "0.99.0"
ORIGINAL = Artifact(
    title=f"the original server {VERSION}",
    group="org.projectnessie.nessie",
    name="nessie-quarkus",
    version=VERSION,
    classifier="runner",
    sha256="ce9fa33e2878bf5ea3981876b9e6204cabc0362b3dd82326b10e47271a78c417",
)


@cache
def jar() -> Path:
    """Returns its path; fetches it if it is missing. Raises the errors of `Artifact.fetched`."""
    return ORIGINAL.fetched()


if __name__ == "__main__":
    sys.exit(main(ORIGINAL))
