"""The commands of the Dockerfile and the container's entry point, without Docker.

The workflow `image` builds the real image and tests it by docker/smoke-test.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml

from tests.environment import given
from tests.install.conftest import PATIENCE, ROOT
from tests.store.postgres_server import new_url

USER = "10001"


class Instruction(NamedTuple):
    """One instruction of a Dockerfile."""

    name: str
    text: str

    @property
    def words(self) -> list[str]:
        """Returns the words of the form `["a", "b"]`."""
        found: list[str] = json.loads(self.text)
        return found


def instructions() -> list[Instruction]:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
    return [Instruction(*line.split(" ", 1)) for line in lines if line.strip()]


def last(name: str) -> Instruction:
    return [one for one in instructions() if one.name == name][-1]


def compose() -> dict:
    return yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))


class Image(NamedTuple):
    """A folder that replaces the root of the image's file system."""

    root: Path

    def path(self, text: str) -> str:
        """Replaces the folders of the image in a text."""
        text = text.replace("/usr/local/bin/nessie-entrypoint", f"{ROOT}/docker/entrypoint")
        return text.replace("/opt/nessie", f"{self.root}/opt").replace("/data", f"{self.root}/data")

    def environment(self) -> dict[str, str]:
        assignments = shlex.split(last("ENV").text.replace("$PATH", os.defpath))
        return {
            "HOME": f"{self.root}/data",
            **dict(self.path(one).split("=", 1) for one in assignments),
        }

    def command(self, *words: str) -> list[str]:
        """Returns a command as the image's user, who may read Python's files if only root may."""
        if os.geteuid() != 0:
            return [*words]
        user = (f"--reuid={USER}", f"--regid={USER}", "--clear-groups")
        may_read = ("--inh-caps=-all,+dac_read_search", "--ambient-caps=+dac_read_search")
        return ["setpriv", *user, *may_read, *words]

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            env=self.environment() | environment,
            cwd=self.root / "data",
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=PATIENCE,
            check=False,
        )


@pytest.fixture(scope="module")
def image(wheels: Path) -> Iterator[Image]:
    """The result of the build stage, in a folder that other users can enter."""
    root = Path(tempfile.mkdtemp(prefix="nessie-image-", dir="/tmp"))
    root.chmod(0o755)
    copied = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    for name in (line[1:] for line in copied if line.startswith("!")):
        source, target = ROOT / name, root / "src" / name
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, target)
    made = Image(root)
    (build,) = (one for one in instructions() if one.name == "RUN" and "venv" in one.text)
    (extras,) = (one for one in instructions() if one.text.startswith("EXTRAS="))
    script = made.path(build.text.replace("python -m venv", f"{sys.executable} -m venv"))
    done = subprocess.run(
        ["sh", "-euc", script],
        env=given() | dict([extras.text.split("=", 1)]),
        cwd=root / "src",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (root / "data").mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(root / "data", int(USER), int(USER))
    yield made
    shutil.rmtree(root)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def running(image: Image, *arguments: str, **environment: str) -> Iterator[tuple[int, object]]:
    """Runs the entry point with arguments. Yields its port and its health command."""
    port = free_port()
    entry = [image.path(word) for word in last("ENTRYPOINT").words]
    process = subprocess.Popen(
        image.command(*entry, *arguments, "--port", str(port)),
        env=image.environment() | environment,
        cwd=image.root / "data",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    _, _, check = last("HEALTHCHECK").text.partition(" CMD ")
    words = [word.replace(":19120", f":{port}") for word in json.loads(check)]

    def healthy() -> bool:
        return image.run(*words).returncode == 0

    try:
        deadline = time.monotonic() + PATIENCE
        while process.poll() is None and time.monotonic() < deadline and not healthy():
            time.sleep(0.2)
        assert process.poll() is None, process.stdout.read() if process.stdout else ""
        yield port, healthy
    finally:
        process.terminate()
        process.communicate(timeout=PATIENCE)


def test_the_image_runs_as_an_unprivileged_user():
    names = [one.name for one in instructions()]

    assert last("USER").text == USER
    assert f"--uid {USER} " in last("RUN").text
    assert "RUN" not in names[names.index("USER") :]


def test_the_image_keeps_its_store_and_is_healthy(image):
    serve = ("serve", "--host", "0.0.0.0", "--insecure")
    with running(image, *serve) as (_, healthy):
        put = image.run("nessie", "content", "put", "db", "--type", "namespace", "-m", "add db")
        assert put.returncode == 0, put.stderr
        assert healthy()
    with running(image, *serve) as (port, healthy):
        url = f"http://127.0.0.1:{port}/api/v2"
        shown = image.run("nessie", "--store", url, "log", "--oneline")
        assert "add db" in shown.stdout, shown.stderr
    assert not healthy()


def test_the_image_is_healthy_with_tokens(image):
    made = image.run("nessie", "token", "new", "ada", "--file", "tokens")
    assert made.returncode == 0, made.stderr

    with running(image, *last("CMD").words, NESSIE_SERVE_TOKENS="tokens") as (port, _):
        url = f"http://127.0.0.1:{port}/api/v2"
        refused = image.run("nessie", "--store", url, "log")
    assert refused.returncode == 6, refused.stderr


def test_the_image_refuses_to_serve_everyone_by_default(image):
    done = image.run(image.path(last("ENTRYPOINT").words[0]), *last("CMD").words)

    assert done.returncode == 6, done.stderr
    assert "--tokens" in done.stderr


def test_the_service_of_compose_runs_on_postgresql(image):
    service = compose()["services"]["nessie"]
    assert service["environment"]["NESSIE_STORE"] == "postgresql://nessie@postgres/lake"
    assert all(one.startswith("127.0.0.1:") for one in service["ports"])

    put = ("content", "put", "pg", "--type", "namespace", "-m", "add pg")
    with (
        new_url() as store,
        running(image, *service["command"], NESSIE_STORE=store) as (port, _),
    ):
        url = f"http://127.0.0.1:{port}/api/v2"
        done = image.run("nessie", "--store", url, *put)
        assert done.returncode == 0, done.stderr
        assert "add pg" in image.run("nessie", "--store", store, "log", "--oneline").stdout
