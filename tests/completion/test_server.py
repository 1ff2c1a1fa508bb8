"""Completion where the store is a server: a real `nessie serve`, a server that is gone, one that never answers, answers that are kept."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time

import pytest
from platformdirs import user_cache_path

from nessie_cli.cli.completion.asking import ask
from nessie_cli.cli.completion.server import KEPT, Kept, Server, using_server, within
from nessie_cli.repository.access import Access
from nessie_cli.workspace import locations
from nessie_cli.workspace.glance import Place
from tests.remote.listening import Answer, Request, forward, listening, server_tls
from tests.remote.proxy import proxying
from tests.remote.tls import PASSWORD, TLS
from tests.server.processes import started

PATIENCE = 120.0
"""Seconds: a busy machine is no server that is gone."""


@pytest.fixture(scope="module")
def address(catalog):
    with started("--store", str(catalog / ".nessie" / "store.sqlite")) as (_, url):
        yield f"{url}/api/v2"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "cache" / "nessie" / "completion.json"


def asked(url, ask, **options):
    return dict(using_server(Place({"--store": url, **{f"--{name}": value for name, value in options.items()}}), url, ask, PATIENCE))


def test_references_of_a_server(address, cache):
    assert asked(address, lambda server: server.references("")) == {
        "main": "branch", "feature/new-orders": "branch", "feature/old": "branch", "v1.0": "tag",
    }  # fmt: skip
    assert asked(address, lambda server: server.references("feature/o", "BRANCH")) == {"feature/old": "branch"}
    assert asked(address, lambda server: server.references("", "TAG")) == {"v1.0": "tag"}


def test_hashes_with_their_subjects(address, cache):
    found = asked(address, lambda server: server.hashes(""), ref="feature/new-orders")

    assert list(found.values())[:2] == ["only on the branch", "no sweets"]
    assert {len(hash_) for hash_ in found} == {12}
    one = next(iter(found))
    assert asked(address, lambda server: server.revisions(f"feature/new-orders@{one[:5]}")) == {f"feature/new-orders@{one}": "only on the branch"}


def test_a_hash_that_has_been_begun_is_completed_where_a_revision_is_due(address, cache):
    one = next(iter(asked(address, lambda server: server.hashes(""), ref="main")))
    again = asked(address, lambda server: server.revisions(one[:5]), ref="main")

    assert again == {one: asked(address, lambda server: server.hashes(""), ref="main")[one]}
    assert again[one]
    assert asked(address, lambda server: server.revisions(one[:3]), ref="main") == {}
    assert one not in asked(address, lambda server: server.revisions("main"), ref="main")


def test_references_are_told_with_their_subjects_once_the_log_is_known(address):
    answers = {}

    def answer(path):
        return answers.setdefault(path, ask(address, path, Access(), PATIENCE))

    server = Server(answer, "main", answers.get)
    assert server.references("ma") == [("main", "branch")]
    subject = server.hashes("")[0][1]

    assert subject
    assert server.references("ma") == [("main", f"branch: {subject}")]


def test_keys_element_by_element(address, cache):
    assert asked(address, lambda server: server.keys("")) == {"db.": "namespace", "web.": "namespace", "later": "iceberg-table"}
    assert asked(address, lambda server: server.keys("db.")) == {
        "db.orders": "iceberg-table", 'db."order.lines"': "iceberg-table", "db.sales.": "namespace",
    }  # fmt: skip
    assert asked(address, lambda server: server.keys("db.sales.it")) == {"db.sales.items": "iceberg-table"}
    assert "éclair" in asked(address, lambda server: server.keys("", "v1.0"))


def test_a_range_of_revisions(address, cache):
    assert "main..v1.0" in asked(address, lambda server: server.range("main..v"))


def test_what_was_answered_is_kept_for_the_user_alone_and_holds_no_secret(address, cache, monkeypatch):
    monkeypatch.setenv("NESSIE_AUTH_TYPE", "BEARER")
    monkeypatch.setenv("NESSIE_AUTH_TOKEN", "a-secret-token")

    assert "main" in asked(address, lambda server: server.references(""))

    assert stat.S_IMODE(cache.stat().st_mode) == 0o600
    assert "main" in cache.read_text(encoding="utf-8")
    assert "secret" not in cache.read_text(encoding="utf-8")


def test_credentials_are_sent_and_only_to_that_server(cache, monkeypatch):
    monkeypatch.setenv("NESSIE_AUTH_TYPE", "BEARER")
    monkeypatch.setenv("NESSIE_AUTH_TOKEN", "a-secret-token")
    with socket.create_server(("127.0.0.1", 0)) as elsewhere, socket.create_server(("127.0.0.1", 0)) as listening:
        heard: list[bytes] = []

        def answer() -> None:
            connection, _ = listening.accept()
            with connection:
                heard.append(connection.recv(65536))
                there = f"http://127.0.0.1:{elsewhere.getsockname()[1]}/"
                connection.sendall(f"HTTP/1.1 302 Found\r\nLocation: {there}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())

        listening.settimeout(PATIENCE)
        answering = threading.Thread(target=answer)
        answering.start()
        assert asked(f"http://127.0.0.1:{listening.getsockname()[1]}/api/v2", lambda server: server.references("")) == {}
        answering.join()
        elsewhere.settimeout(0)
        with pytest.raises(BlockingIOError):
            elsewhere.accept()

    assert b"Authorization: Bearer a-secret-token\r\n" in heard[0]
    assert b"GET /api/v2/trees?max-records=" in heard[0]


def test_certificates_and_the_proxy_are_those_of_every_command(address, cache, monkeypatch):
    def references(url: str) -> dict[str, str]:
        cache.unlink(missing_ok=True)
        return asked(url, lambda server: server.references("v"))

    def secure(request: Request) -> Answer:
        return forward(address.removesuffix("/api/v2"), request)

    with listening(secure, server_tls(client_certificates=True)) as place, proxying() as proxy:
        url = f"{place}/api/v2"
        assert references(url) == {}
        monkeypatch.setenv("NESSIE_CA_FILE", str(TLS / "ca.pem"))
        assert references(url) == {}
        monkeypatch.setenv("NESSIE_CERTIFICATE_FILE", str(TLS / "client.pem"))
        monkeypatch.setenv("NESSIE_KEY_FILE", str(TLS / "client-encrypted.key"))
        monkeypatch.setenv("NESSIE_KEY_PASSWORD", PASSWORD)
        assert references(url) == {"v1.0": "tag"}
        assert proxy.seen == []
        monkeypatch.setenv("NESSIE_PROXY", proxy.url)
        assert references(url) == {"v1.0": "tag"}
        assert proxy.seen == [f"CONNECT {place.removeprefix('https://')}"]


def test_a_server_that_is_gone_completes_nothing_and_is_left_alone(cache):
    with socket.create_server(("127.0.0.1", 0)) as free:
        url = f"http://127.0.0.1:{free.getsockname()[1]}/api/v2"

    assert asked(url, lambda server: server.references("")) == {}
    assert [answer for _, answer in json.loads(cache.read_text(encoding="utf-8")).values()] == [None]


def test_a_server_that_never_answers_is_not_waited_for():
    never = threading.Event()

    assert within(0.05, never.wait) is None
    never.set()


@pytest.mark.parametrize("answer", [None, [], {}, "text", {"references": None}, {"references": [1]}, {"references": [{"name": 1}]}])
def test_an_answer_that_is_none_offers_nothing(answer, cache):
    url = "http://127.0.0.1/api/v2"

    assert using_server(Place({"--store": url}), url, lambda _: Server(lambda _: answer, None).references("m")) == []


def test_an_answer_is_given_again_while_it_is_young(tmp_path):
    answers, times = iter(["first", "second"]), iter([100.0, 100.0 + KEPT - 1, 100.0 + KEPT])
    kept = Kept(str(tmp_path / "cache"), lambda _: next(answers), times.__next__)

    assert [kept.answer("server trees", "trees") for _ in range(3)] == ["first", "first", "second"]


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"a": 1}', '{"a": []}', '{"a": ["x", 1]}'])
def test_a_damaged_cache_is_written_anew(tmp_path, text):
    (tmp_path / "completion.json").write_text(text, encoding="utf-8")

    assert Kept(str(tmp_path), lambda path: path).answer("name", "trees") == "trees"
    assert Kept(str(tmp_path), lambda _: "not asked").answer("name", "trees") == "trees"


def test_a_cache_that_cannot_be_written_is_none(tmp_path):
    (tmp_path / "file").write_text("")

    assert Kept(str(tmp_path / "file"), lambda path: path).answer("name", "trees") == "trees"


def test_the_cache_is_where_every_program_keeps_it(cache):
    assert locations.cache() == str(user_cache_path("nessie"))


def test_a_keystroke_asks_the_server_of_the_line(address, cache):
    """The whole way, with the patience of a keystroke: asked again until a busy machine was quick enough once."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "XDG_CACHE_HOME": os.environ["XDG_CACHE_HOME"]}
    command = [sys.executable, "-m", "nessie_cli", "__complete", "--", "--store", address, "switch", "feature/o"]
    deadline = time.monotonic() + PATIENCE
    found = ""
    while not found and time.monotonic() < deadline:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=True)
        found = done.stdout
        assert done.stderr == ""
        cache.unlink(missing_ok=True)

    assert found == "feature/old\tbranch\n"
