"""Downloads of tests: a wrong file is a failure, and a missing network is reported
separately."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import pytest

from tests.maven import ABSENT, PAUSES, Artifact, Damaged, Unavailable, by_https, main
from tests.original.jar import ORIGINAL
from tests.remote.listening import Answer, listening

DATA = b"the released file"
RELEASED = Artifact(
    "the thing", "org.example", "thing", "1.0", hashlib.sha256(DATA).hexdigest(), "runner"
)
PATH = "org/example/thing/1.0/thing-1.0-runner.jar"
ROOT = Path(__file__).parents[1]


def fetch(central: str, folder: Path) -> Path:
    """Fetches from another address, as on a machine without Maven."""
    return RELEASED.fetched(
        folder, [partial(by_https, central=central)] * len(PAUSES), [0] * len(PAUSES)
    )


def test_a_file_is_fetched_once_and_stored_atomically(tmp_path: Path) -> None:
    asked: list[str] = []
    answers: list[Answer] = [Answer(503), Answer(200, DATA, cut=80), Answer(200, DATA)]
    with listening(lambda request: (asked.append(str(request)), answers.pop(0))[1]) as url:
        for _ in range(2):
            assert fetch(url, tmp_path).read_bytes() == DATA
    assert asked == [f"GET /{PATH}"] * 3
    assert [path.name for path in (tmp_path / PATH).parent.iterdir()] == [Path(PATH).name]


@pytest.mark.parametrize("there", [{PATH: b"another"}, {}], ids=["that lies there", "that comes"])
def test_a_wrong_file_is_a_failure(tmp_path: Path, there: Mapping[str, bytes]) -> None:
    for path, data in there.items():
        (tmp_path / path).parent.mkdir(parents=True)
        (tmp_path / path).write_bytes(data)
    absent = tmp_path / "absent"
    answers = [Answer(404), Answer(200, b"another"), Answer(404), Answer(404)]
    with listening(lambda _: answers.pop(0)) as url, pytest.raises(Damaged, match="SHA-256"):
        fetch(url, tmp_path)
    answers = [Answer(404), Answer(200, b"another"), Answer(404), Answer(404)]
    with listening(lambda _: answers.pop(0)) as url:
        assert main(RELEASED, fetch=lambda _: fetch(url, tmp_path), absent=absent) == 1
    assert not absent.exists()
    assert list((tmp_path / PATH).parent.iterdir()) == [tmp_path / path for path in there]


def test_a_missing_network_is_reported_in_a_file(tmp_path: Path) -> None:
    absent = tmp_path / "absent"
    with listening(lambda _: Answer(404)) as url:
        with pytest.raises(Unavailable, match="is there a network") as fault:
            fetch(url, tmp_path)
        assert main(RELEASED, fetch=lambda _: fetch(url, tmp_path), absent=absent) == 1
    assert type(fault.value) is Unavailable
    assert (
        absent.read_text()
        == "the thing cannot be fetched from Maven Central; is there a network?\n"
    )


def test_the_program_reports_a_missing_network(tmp_path: Path) -> None:
    damaged = tmp_path / ORIGINAL.place
    damaged.parent.mkdir(parents=True)
    damaged.write_bytes(b"no jar")
    env = {
        "MAVEN_REPOSITORY": str(tmp_path),
        ABSENT: str(tmp_path / "absent"),
        "PYTHONPATH": str(ROOT),
    }
    words = [sys.executable, "-m", "tests.original.jar"]
    reports = subprocess.run(
        words,
        env=env,
        cwd=ROOT,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=120,
        check=False,
    )
    assert reports.returncode == 1, reports
    assert "SHA-256" in reports.stderr
    assert not (tmp_path / "absent").exists()
