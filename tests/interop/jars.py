"""The released tests and their jars, from Maven Central. As a program, it fetches them."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.maven import Artifact, attempts, by_https, main


def artifacts() -> list[Artifact]:
    """Returns the jars of `jars.txt`; each line has the coordinates and the SHA-256 of one."""
    lines = (Path(__file__).parent / "jars.txt").read_text(encoding="utf-8").splitlines()
    return [_artifact(*line.split()) for line in lines]


def _artifact(coordinates: str, sha256: str) -> Artifact:
    group, name, version, *classifier = coordinates.split(":")
    return Artifact(coordinates, group, name, version, sha256, *classifier)


def fetched(artifact: Artifact) -> Path:
    """Returns the path of a jar. Tries HTTPS first, because Maven takes seconds for each jar.

    Raises the errors of `Artifact.fetched`.
    """
    return artifact.fetched(ways=attempts(first=by_https))


if __name__ == "__main__":
    # The first failure ends this, because without a network each jar takes 30 seconds.
    sys.exit(any(main(artifact, fetch=fetched) for artifact in artifacts()))
