"""Eight people commit to one branch through the command line at once: every acknowledged
commit is in the log exactly once."""

from __future__ import annotations

import json
import os
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from nessie_cli import ContentKey, connect
from tests.command.process import Forker

PEOPLE = 8
ROUNDS = 2
DONE, CONFLICT = 0, 3


class Person:
    """Runs commands in a folder, each as a process of its own."""

    def __init__(self, folder: Path, forker: Forker) -> None:
        self.folder = folder
        self._forker = forker

    def __call__(
        self, *arguments: str, allowed: tuple[int, ...] = (DONE,)
    ) -> tuple[int, dict[str, object]]:
        """Runs a command; returns its exit code and its JSON."""
        done = self._forker.run([*arguments, "--json"], self.folder, os.environ)
        assert done.code in allowed, done.err
        assert "Traceback" not in done.err
        return done.code, json.loads(done.out)

    def put(
        self, key: str, location: str, message: str, allowed: tuple[int, ...] = (DONE,)
    ) -> tuple[int, dict[str, object]]:
        options = ("--type", "iceberg-table", "--metadata-location", location)
        return self("content", "put", key, *options, "-m", message, allowed=allowed)


def head(answer: dict[str, object]) -> str:
    branch = answer["targetBranch"]
    assert isinstance(branch, dict)
    return str(branch["hash"])


def batch(person: int, number: int) -> str:
    """Returns a namespace and two functions in it, as a file for `commit --batch`."""
    folder = f"batch {person}.{number}"
    contents = [({"type": "NAMESPACE", "elements": [folder]}, [folder])]
    contents += [
        ({"type": "UDF", "sqlText": part, "dialect": "x"}, [folder, part]) for part in ("a", "b")
    ]
    return json.dumps(
        [{"type": "PUT", "key": {"elements": key}, "content": content} for content, key in contents]
    )


def work(nessie: Person, person: int) -> tuple[dict[str, str], list[str]]:
    """Makes some commits; returns the hashes of acknowledged ones by message, and the messages
    of refused ones."""
    acknowledged, refused = {}, []
    for number in range(ROUNDS):
        _, answer = nessie.put(
            f'"table {person}.{number}"', "s3://lake/a.json", f"own {person} {number}"
        )
        acknowledged[f"own {person} {number}"] = head(answer)
        (nessie.folder / "batch.json").write_text(batch(person, number))
        _, answer = nessie("commit", "--batch", "batch.json", "-m", f"batch {person} {number}")
        acknowledged[f"batch {person} {number}"] = head(answer)
        message = f"shared {person} {number}"
        code, answer = nessie.put(
            "shared", f"s3://lake/{person}-{number}.json", message, (DONE, CONFLICT)
        )
        if code == DONE:
            acknowledged[message] = head(answer)
        else:
            refused.append(message)
            nessie("reset")
    return acknowledged, refused


def test_eight_processes_commit_to_one_branch(tmp_path: Path, forker: Forker) -> None:
    url = f"sqlite:///{tmp_path}/store.sqlite"
    people = [Person(tmp_path / f"person {n}", forker) for n in range(PEOPLE)]
    for nessie in people:
        nessie.folder.mkdir()
        nessie("init", "--store", url)
    people[0].put("shared", "s3://lake/0.json", "first")
    with ThreadPoolExecutor(PEOPLE) as pool:
        results = list(pool.map(work, people, range(PEOPLE)))
    people[0]("fsck")
    with connect(url) as repository:
        log = list(repository.log("main", operations=True))
        assert list(repository.check()) == []
        shared = repository.content("main", ContentKey(("shared",)))
        keys = [entry.key for entry in repository.entries("main")]
    messages = Counter(entry.meta.message for entry in log)
    by_hash = {entry.hash: entry.meta.message for entry in log}
    assert len(by_hash) == len(log) == 1 + sum(len(acknowledged) for acknowledged, _ in results)
    for acknowledged, refused in results:
        for message, hash_ in acknowledged.items():
            assert by_hash[hash_] == message
            assert messages[message] == 1
        assert not [message for message in refused if messages[message]]
    # No commit contains another person's change, and each change of the shared table is based on
    # the previous one.
    assert all(
        entry.meta.message.split()[0] == "batch" or len(entry.operations or ()) == 1
        for entry in log
    )
    last = next(entry for entry in log if entry.meta.message.startswith(("shared", "first")))
    assert last.operations is not None
    assert last.operations[0].content == shared  # type: ignore[union-attr]
    assert len(keys) == len(set(keys)) == 1 + PEOPLE * ROUNDS * 4
