"""`nessie login` asks for a token on a terminal."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command.process import fresh
from tests.remote.listening import Answer, Request, listening

CONFIG = {"defaultBranch": "main", "maxSupportedApiVersion": 2, "actualApiVersion": 2}
REFUSED = {"status": 401, "message": "no", "errorCode": "X", "reason": "Y"}


@pytest.mark.parametrize(("typed", "code"), [("new-token", 0), ("", 6)])
def test_a_later_login_asks_again_because_the_stored_token_may_have_expired(
    tmp_path: Path, start, typed: str, code: int
) -> None:
    nessie, accepted = fresh(tmp_path, None), ["Bearer old-token"]

    def answer(request: Request) -> Answer:
        if request.headers.get("authorization") in accepted:
            return Answer(200, json.dumps(CONFIG).encode())
        return Answer(401, json.dumps(REFUSED).encode())

    with listening(answer) as url:
        nessie.ok("login", url, "--token-stdin", stdin="old-token")
        accepted[:] = ["Bearer new-token"]
        running = start(nessie, "login", url)
        running.wait_for("(empty for none)")
        running.type(f"{typed}\r")
        assert running.end().code == code
        assert nessie("login", url).code == code
