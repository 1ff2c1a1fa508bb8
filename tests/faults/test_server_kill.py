"""A server is killed under load many times: every acknowledged commit is in the log once,
and nothing is half-written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from http.client import HTTPException
from pathlib import Path
from random import Random
from typing import Self

from nessie_cli import connect, create
from tests.server.client import EMPTY, Client, put, table

KILLS = 50
CLIENTS = 4
MOST_BETWEEN = 6  # acknowledgements between a start and the kill
PATIENCE = 120

# Python and the server are imported once, not fifty times: each server is a fork of a process whose
# only open file is the listening socket.
LIVES = """
import os, socket, sys
import uvicorn
from nessie_cli import connect
from nessie_cli.server.pipeline.pipeline import Parts
from nessie_cli.server.web_server import configuration
from nessie_cli.server.running import application
from nessie_cli.server.workers import STOPPING, handled
import nessie_cli.store.sqlite.store, zstandard, uvloop, httptools

def live(listener):
    with connect(sys.argv[1]) as repository, handled(STOPPING):
        ready = lambda: os.write(1, f"{os.getpid()}\\n".encode())
        app = application(repository, Parts(started=ready))
        uvicorn.Server(configuration(app)).run([listener])

with socket.create_server(("127.0.0.1", 0), backlog=100) as listener:
    print(listener.getsockname()[1], flush=True)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            try:
                live(listener)
            finally:
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        print(os.waitstatus_to_exitcode(status), flush=True)
"""


class Lives:
    """Servers on one port, one after another."""

    def __init__(self, path: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", LIVES, path],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._running = 0
        self.url = f"http://127.0.0.1:{self._said()}"

    def start(self) -> int:
        """Starts a server; returns its process id when it answers."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        self._running = self._said()
        return self._running

    def end(self, pid: int, how: signal.Signals) -> int:
        """Ends the server; returns its exit status."""
        os.kill(pid, how)
        ended = self._said()
        self._running = 0
        return ended

    def _said(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._running:
            os.kill(self._running, signal.SIGKILL)
        self._process.communicate()


class Writer(threading.Thread):
    """A client that commits as fast as possible over a persistent connection, and records the
    answers."""

    def __init__(self, number: int, url: str, answers: threading.Semaphore) -> None:
        super().__init__(name=f"writer-{number}", daemon=True)
        self.number = number
        self.acknowledged: dict[str, str] = {}
        self.sent = 0
        self.odd: list[object] = []
        self._url = url
        self._answers = answers
        self.ended = threading.Event()

    def run(self) -> None:
        client = Client(self._url, PATIENCE)
        while not self.ended.is_set():
            message, operations = f"{self.number} {self.sent}", self._operations()
            self.sent += 1
            try:
                answer = client.commit("main", EMPTY, *operations, message=message)
            except (OSError, HTTPException):
                # Killed before the answer: the commit may exist or not.
                client.close()
                client = Client(self._url, PATIENCE)
                continue
            if answer.status != 200:
                self.odd.append(answer)
            else:
                self.acknowledged[message] = answer.body["targetBranch"]["hash"]
                self._answers.release()
        client.close()

    def _operations(self) -> list[object]:
        return [
            put(f"t {self.number} {self.sent} {part}", content=table(part))
            for part in range(1 + self.sent % 2)
        ]


def test_a_killed_server_loses_no_acknowledged_commit(tmp_path: Path) -> None:
    path = str(tmp_path / "store.sqlite")
    create(path).close()
    seed = Random().randrange(2**32)
    print("seed", seed)
    random = Random(seed)
    answers = threading.Semaphore(0)
    with Lives(path) as lives:
        writers = [Writer(number, lives.url, answers) for number in range(CLIENTS)]
        pid = lives.start()
        for writer in writers:
            writer.start()
        for _ in range(KILLS):
            for _ in range(random.randint(0, MOST_BETWEEN)):
                assert answers.acquire(timeout=PATIENCE)
            time.sleep(random.uniform(0, 0.01))
            assert lives.end(pid, signal.SIGKILL) == -signal.SIGKILL
            pid = lives.start()
        for writer in writers:
            writer.ended.set()
        for writer in writers:
            writer.join(PATIENCE)
        assert not any(writer.is_alive() for writer in writers)
        assert lives.end(pid, signal.SIGTERM) == 0
    compare(path, writers)


def compare(path: str, writers: list[Writer]) -> None:
    """Compares the answers to the clients with the final state."""
    assert [odd for writer in writers for odd in writer.odd] == []
    with connect(path) as repository:
        log = list(repository.log("main", operations=True))
        assert list(repository.check()) == []
        moves = [entry for entry in repository.reflog("main") if entry.operation == "commit"]
        keys = sum(1 for _ in repository.entries("main"))
    assert len(moves) == len(log)
    assert keys == sum(len(entry.operations or ()) for entry in log)
    messages = Counter(entry.meta.message for entry in log)
    hashes = {entry.hash: entry.meta.message for entry in log}
    assert max(messages.values()) == 1
    for writer in writers:
        assert writer.acknowledged
        assert {
            hashes.get(hash_): hash_ for hash_ in writer.acknowledged.values()
        } == writer.acknowledged
        made = [
            int(message.split()[1])
            for message in reversed(messages)
            if int(message.split()[0]) == writer.number
        ]
        # The commits are complete, in the order in which they were sent, and no others exist.
        assert made == sorted(made)
        assert made[-1] < writer.sent
    assert all(
        len(entry.operations or ()) == 1 + int(entry.meta.message.split()[1]) % 2 for entry in log
    )
