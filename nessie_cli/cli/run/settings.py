"""What `nessie run` takes from the invocation: store, warehouse, rules, version of code."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from nessie_cli.cli.merge.combining import rules_of
from nessie_cli.repository.urls import is_server
from nessie_cli.runs.session import SessionSettings
from nessie_cli.runs.temporary_server import WarehouseChoice
from nessie_cli.workspace import environment as env

if TYPE_CHECKING:
    from nessie_cli.cli.app.invocation import Invocation

CATALOG, WAREHOUSE = "lake", "warehouse"
"""Defaults: the name of the catalog, and the folder of the warehouse beside `.nessie/`."""
_GIT_TIMEOUT = 2.0


class SessionOptions(Protocol):
    """The options that decide how the programs of a run reach it, and how it is published."""

    @property
    def warehouses(self) -> Path | None:
        """The file that defines the warehouses."""

    @property
    def warehouse(self) -> Sequence[str] | None:
        """The locations of the warehouses."""

    @property
    def allow_location(self) -> Sequence[str] | None:
        """Other locations that may be read and written."""

    @property
    def no_recheck(self) -> bool:
        """Whether a merged state is published without checks."""

    @property
    def message(self) -> str | None:
        """The message of the merge."""


def session_settings(options: SessionOptions, app: Invocation) -> SessionSettings:
    """Returns the settings of the session of a run."""
    return SessionSettings(
        store=app.store.url(),
        inherited=env.everything(),
        folder=Path.cwd(),
        catalog=app.setting("run.catalog") or CATALOG,
        warehouses=_warehouses(options, app),
        rules=rules_of(app) if app.combines_tables else None,
        storage=env.of_s3(),
        rechecks=not options.no_recheck,
        message=options.message or "",
    )


def _warehouses(options: SessionOptions, app: Invocation) -> WarehouseChoice:
    """Returns the warehouses of the options, else that of the settings."""
    if options.warehouses is not None:
        return WarehouseChoice(warehouses=str(options.warehouses.absolute()))
    allowed = tuple(options.allow_location or ())
    if options.warehouse:
        return WarehouseChoice(warehouse=tuple(options.warehouse), allowed=allowed)
    if is_server(app.store.url()) or app.workspace is None:
        return WarehouseChoice(allowed=allowed)
    location = app.setting("run.warehouse") or WAREHOUSE
    if "://" not in location:
        location = str(Path(app.workspace.root) / location)
    return WarehouseChoice(warehouse=(location,), allowed=allowed)


def code_version() -> str:
    """Returns the commit of the git repository of the working folder, or an empty text."""
    try:
        ended = subprocess.run(
            ["git", "rev-parse", "--verify", "-q", "HEAD"],  # noqa: S607 - the user's git
            capture_output=True,
            text=True,
            timeout=_GIT_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return ended.stdout.strip() if ended.returncode == 0 else ""
