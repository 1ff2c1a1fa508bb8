"""Iceberg's runtime for Spark, a jar from Maven Central. As a program: fetches it.

Users set `spark.jars.packages=COORDINATES`. The tests use the file, so that none waits for a
network.
"""

from __future__ import annotations

import sys

from tests.maven import Artifact, Damaged, Unavailable

RUNTIME = Artifact(
    title="Iceberg's runtime for Spark",
    group="org.apache.iceberg",
    name="iceberg-spark-runtime-4.1_2.13",
    version="1.11.0",
    sha256="d6ea6c5d099288daeb7d5a92061bd3d7d8f296492632b42378e5f2f0e3066242",
)
COORDINATES = f"{RUNTIME.group}:{RUNTIME.name}:{RUNTIME.version}"
MISSING = f"{RUNTIME.title} is not here: `make test-spark` gets it from Maven Central"
EXTENSIONS = "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions"


def settings() -> dict[str, str]:
    """Returns the settings of a session for `sessions.session`, none if the jar is missing."""
    return (
        {"spark__jars": str(RUNTIME.path), "spark__sql__extensions": EXTENSIONS}
        if RUNTIME.path.exists()
        else {}
    )


if __name__ == "__main__":
    try:
        RUNTIME.fetched()
    except Damaged as fault:
        sys.exit(str(fault))
    except Unavailable as fault:
        print(f"{MISSING}, which has not given it:", str(fault).partition("\n")[2])
