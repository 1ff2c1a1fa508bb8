"""Variables of the page that allow credentials for the server of a workspace, and for a
server without TLS."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.ci.conftest import CHECKED_IN, COMPOSE
from tests.command.process import Nessie, fresh
from tests.remote.listening import Answer, Request, listening

TOKEN = "t0ken-Of-A-Pipeline"


class Recorder:
    """A server that records the Authorization headers that it gets."""

    def __init__(self) -> None:
        self.url = ""
        self.seen: set[str | None] = set()

    def __call__(self, request: Request) -> Answer:
        self.seen.add(request.headers.get("authorization"))
        return Answer(404, b"{}")


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    found = Recorder()
    with listening(found) as url:
        found.url = url
        yield found


@pytest.fixture
def nessie(tmp_path: Path) -> Nessie:
    return fresh(tmp_path, None)


def test_a_service_of_compose_gets_the_token_if_http_is_allowed(
    nessie: Nessie, recorder: Recorder, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    env = COMPOSE["services"]["load"]["environment"] | {
        "NESSIE_AUTH_TOKEN_FILE": str(token),
        "NESSIE_PROXY": recorder.url,
    }
    allowed = env.pop("NESSIE_ALLOW_HTTP")
    assert (nessie("log", env=env).code, recorder.seen) == (6, set())
    nessie("log", env=env | {"NESSIE_ALLOW_HTTP": allowed})
    assert recorder.seen == {f"Bearer {TOKEN}"}


def test_the_server_of_a_workspace_gets_the_token_if_the_job_names_it(
    nessie: Nessie, recorder: Recorder
) -> None:
    (nessie.folder / ".nessie").mkdir()
    (nessie.folder / ".nessie" / "config.toml").write_text(f'store = "{recorder.url}/api/v2"\n')
    assert CHECKED_IN["env"].keys() == {
        "NESSIE_AUTH_TOKEN",
        "NESSIE_TRUSTED_ENDPOINTS",
        "NESSIE_SAFE_DIRECTORIES",
    }
    env = {
        "NESSIE_AUTH_TOKEN": TOKEN,
        "NESSIE_TRUSTED_ENDPOINTS": CHECKED_IN["env"]["NESSIE_TRUSTED_ENDPOINTS"],
    }
    assert (nessie("log", env=env).code, recorder.seen) == (6, set())
    nessie("log", env=env | {"NESSIE_TRUSTED_ENDPOINTS": recorder.url})
    assert recorder.seen == {f"Bearer {TOKEN}"}
