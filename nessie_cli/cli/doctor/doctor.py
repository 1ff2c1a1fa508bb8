"""`nessie doctor`."""

from collections.abc import Iterator

from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document
from nessie_cli.cli.doctor.check import Check, CheckStatus
from nessie_cli.cli.doctor.installed import installed
from nessie_cli.errors import NessieError, StoreNotFound
from nessie_cli.render.spans import Column, Span
from nessie_cli.workspace.locations import user_config
from nessie_cli.workspace.secrets import without_secrets
from nessie_cli.workspace.trust import FOREIGN, TRUSTED
from nessie_cli.workspace.user import user_settings

EXAMPLES = ("nessie doctor", "nessie doctor --ref feature", "nessie doctor --json")
NOT_USABLE = 7
_COLUMNS = (
    Column("CHECK", "key"),
    Column("STATUS"),
    Column("FACT", room="fold"),
    Column("FIX", "command", "fold"),
)
_STYLES = {CheckStatus.OK: "created", CheckStatus.ABSENT: "label", CheckStatus.FAILED: "conflict"}


class Options(Struct, frozen=True, kw_only=True):
    """Check the installation, and the store that a command would use.

    Shows the installed versions, the user settings, the workspace, the store and why it is chosen,
    the kind of credentials for a server, whether the store responds, and the reference. Checks that
    depend on a failed check are omitted. Secrets are never shown.

    The exit status is 7 if the store cannot be determined or used, 1 if another check failed, and 0
    otherwise, even if no store is chosen.
    """


class Diagnosis(Document, frozen=True):
    """The checks. `usable` is whether the chosen store responds, and null if no store is chosen."""

    usable: bool | None
    checks: list[Check]

    @property
    def exit_code(self) -> int:
        """7 if the chosen store is not usable, 1 if another check failed."""
        if self.usable is False:
            return NOT_USABLE
        return int(any(check.status is CheckStatus.FAILED for check in self.checks))


def run(options: Options, app: Invocation) -> Diagnosis:  # noqa: ARG001 - the shape of a command
    """Runs all checks. A failed check does not stop the others."""
    settings = _user_settings()
    checks = [*installed(), settings]
    if settings.status is CheckStatus.FAILED:
        # Without the user's settings, no store and no trust can be determined.
        return Diagnosis(None, checks)
    checks.append(_workspace(app))
    try:
        url = app.store.url()
    except NessieError as error:
        is_missing = isinstance(error, StoreNotFound)
        checks.append(
            Check("store", CheckStatus.ABSENT if is_missing else CheckStatus.FAILED, error.message)
        )
        return Diagnosis(None if is_missing else False, checks)
    checks.append(
        Check("store", CheckStatus.OK, f"{without_secrets(url)}, chosen by {app.store.origin()}")
    )
    store_checks = [*_credentials(app, url), _answer(app)]
    usable = all(check.status is not CheckStatus.FAILED for check in store_checks)
    return Diagnosis(usable, [*checks, *store_checks, *([_reference(app)] if usable else [])])


def show(result: Diagnosis, output: Output) -> None:
    """Prints a row for each check."""
    rows = (
        (check.name, Span(check.status.value, _STYLES[check.status]), check.fact, check.fix or "")
        for check in result.checks
    )
    output.out.print_table(_COLUMNS, rows)


def _user_settings() -> Check:
    path = str(user_config())
    if not user_config().exists():
        return Check("user settings", CheckStatus.ABSENT, f"{path} does not exist")
    try:
        user_settings().check()
    except NessieError as error:
        return Check("user settings", CheckStatus.FAILED, error.message)
    return Check("user settings", CheckStatus.OK, path)


def _workspace(app: Invocation) -> Check:
    workspace = app.store.found_workspace
    if workspace is None:
        return Check(
            "workspace", CheckStatus.ABSENT, "none in this folder or a parent", "nessie init"
        )
    if workspace.trust == FOREIGN:
        fact = f"{workspace.root} belongs to another user: nothing in it is used"
        return Check("workspace", CheckStatus.ABSENT, fact, workspace.trusting)
    if workspace.trust != TRUSTED:
        fact = (
            f"{workspace.root} is not trusted: its aliases and files of secrets are ignored, and"
            " its hooks prevent commits"
        )
        return Check("workspace", CheckStatus.ABSENT, fact, workspace.trusting)
    return Check("workspace", CheckStatus.OK, f"{workspace.root}, trusted")


def _credentials(app: Invocation, url: str) -> Iterator[Check]:
    """Checks the kind of credentials, and where the connection settings come from."""
    try:
        access = app.store.access(url)
    except NessieError as error:
        yield Check("credentials", CheckStatus.FAILED, error.message)
        return
    if access is None:
        return
    kind = type(access.credentials).__name__.lower() if access.credentials else "none"
    sources = ", ".join(access.sources)
    fact = f"{kind}, from {sources}" if sources else kind
    yield Check("credentials", CheckStatus.OK if access.credentials else CheckStatus.ABSENT, fact)


def _answer(app: Invocation) -> Check:
    try:
        default = app.repository().config().default_branch
    except NessieError as error:
        return Check("answer", CheckStatus.FAILED, error.message)
    return Check("answer", CheckStatus.OK, f"the store responds; its default branch is {default}")


def _reference(app: Invocation) -> Check:
    try:
        head = app.repository().resolve(app.head)
    except NessieError as error:
        return Check("reference", CheckStatus.FAILED, error.message, "nessie switch REF")
    return Check(
        "reference", CheckStatus.OK, f"{head.name or head.hash}, chosen by {app.head_origin}"
    )
