"""The released tests and the jars they need, from Maven Central. As a program: fetch them."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.maven import Artifact, attempts, by_https, main


def artifacts() -> list[Artifact]:
    """Returns the jars of `jars.txt`: on each line the coordinates and the SHA-256 of one."""
    lines = (Path(__file__).parent / "jars.txt").read_text(encoding="utf-8").splitlines()
    return [_artifact(*line.split()) for line in lines]


def _artifact(coordinates: str, sha256: str) -> Artifact:
    group, name, version, *classifier = coordinates.split(":")
    return Artifact(coordinates, group, name, version, sha256, *classifier)


def fetched(artifact: Artifact) -> Path:
    """Returns where a jar is. Tries HTTPS first, because Maven takes seconds for each jar.

    Raises what `Artifact.fetched` raises.
    """
    return artifact.fetched(ways=attempts(first=by_https))


if __name__ == "__main__":
    # The first jar that cannot be fetched ends this: without a network each takes 30 seconds.
    sys.exit(any(main(artifact, fetch=fetched) for artifact in artifacts()))
