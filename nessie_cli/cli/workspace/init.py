"""`nessie init`."""

from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.app.result import Document, Result
from nessie_cli.errors import InvalidInput, StoreNotFound
from nessie_cli.model import check_new_reference_name
from nessie_cli.repository.opening import connect, create
from nessie_cli.workspace import environment as env
from nessie_cli.workspace.credentials import DATABASE, WEB, endpoint
from nessie_cli.workspace.folder import (
    Workspace,
    absolute_store,
    make_workspace,
    working_folder,
)
from nessie_cli.workspace.locations import FOLDER
from nessie_cli.workspace.secrets import refuse_secret, without_secrets
from nessie_cli.workspace.trust import FOREIGN
from nessie_cli.workspace.trust_records import record_server, record_workspace

EXAMPLES = (
    "nessie init",
    "nessie init warehouse --default-branch main",
    "nessie init --store sqlite:////var/lib/catalog.sqlite",
)


class Options(Struct, frozen=True, kw_only=True):
    """Create a workspace (.nessie/), and its store if it does not exist.

    A new workspace uses the store that --store, --profile or an environment variable names,
    otherwise .nessie/store.sqlite. A server (http:// or https://) must exist already. Repeating
    the command is safe: it changes nothing that exists.
    """

    directory: Annotated[
        str,
        typer.Argument(metavar="[DIR]", help="The folder in which .nessie/ is created."),
    ] = "."
    default_branch: Annotated[
        str,
        typer.Option(
            "--default-branch",
            metavar="NAME",
            help="The default branch of a new store. An existing store keeps its own.",
        ),
    ] = "main"


class Initialised(Document, frozen=True):
    """A workspace and its store. `created` is false if the workspace existed."""

    workspace: str
    store: str
    default_branch: str
    created: bool


class InitialisedResult(Result, frozen=True):
    """A workspace, and whether its store is new."""

    document: Initialised
    has_new_store: bool


def run(options: Options, app: Invocation) -> InitialisedResult:
    """Creates the workspace and the store, if they are missing."""
    if "://" in options.directory:
        raise InvalidInput(
            "DIR must be a folder, not a URL",
            hint="`nessie init --store URL` uses a store elsewhere",
        )
    root = Path(options.directory).absolute()
    if root.exists() and not root.is_dir():
        raise InvalidInput(f"{options.directory} is a file, not a folder")
    check_new_reference_name(options.default_branch)
    existing = Workspace(root) if (root / FOLDER).is_dir() else None
    if existing and existing.trust == FOREIGN:
        raise existing.refusal("nothing in it is used")
    origin, named = _named_store(app)
    elsewhere = absolute_store(named, working_folder()) if named else None
    if existing and elsewhere and existing.named_store() != elsewhere:
        if not origin.startswith("--"):
            app.output.note(
                f"{origin} overrides the workspace: commands work on {without_secrets(elsewhere)}"
            )
            elsewhere = None
        else:
            raise InvalidInput(
                f"{existing.folder}: this workspace uses {existing.named_store()}",
                hint="run `nessie init` in another folder",
            )
    is_new = False
    if elsewhere:
        # The store first, so that no workspace refers to a store that could not be created.
        refuse_secret(origin, elsewhere)
        _, is_new = _open_or_create(app, elsewhere, options.default_branch, existing)
        _trust_server(app, elsewhere)
    workspace = existing or make_workspace(root, elsewhere)
    if existing is None:
        record_workspace(str(root))
    url = elsewhere or workspace.store()
    branch, is_new_file = _open_or_create(app, url, options.default_branch, workspace)
    if workspace.current_reference() is None:
        workspace.set_current_reference(branch)
    document = Initialised(str(root), url, branch, existing is None)
    return InitialisedResult(document, is_new or is_new_file)


def show(result: InitialisedResult, output: Output) -> None:
    """Prints the workspace, its store and the default branch."""
    made = result.document
    verb = "created" if made.created else "already exists:"
    folder = Path(made.workspace) / FOLDER
    output.say(f"{verb} workspace {folder} on {made.store}, default branch {made.default_branch}")
    if result.has_new_store and not made.created:
        output.note("its store did not exist; an empty store was created")


def _named_store(app: Invocation) -> tuple[str, str | None]:
    """Returns the option or variable that names the store, and its value."""
    app.store.refuse_two_stores()
    for origin, value in (
        ("--store", app.options.store),
        (env.STORE, env.variable(env.STORE)),
        (env.ENDPOINT, env.variable(env.ENDPOINT)),
    ):
        if value and not app.options.profile:
            return origin, value
    if app.store.profile_name and app.store.profile:
        origin = "--profile" if app.options.profile else env.PROFILE
        return origin, app.store.profile.store
    return "", None


def _trust_server(app: Invocation, url: str) -> None:
    """Trusts the server that the user named, for later commands in this workspace."""
    server = endpoint(url) or url
    if url.startswith((*WEB, *DATABASE)) and not record_server(server):
        app.output.note(
            "hint: your state folder is not writable, so later commands need"
            f" NESSIE_TRUSTED_ENDPOINTS to name {server}"
        )


def _open_or_create(
    app: Invocation, url: str, default_branch: str, workspace: Workspace | None
) -> tuple[str, bool]:
    """Returns the default branch of a store, and whether the store was created.

    A store that does not exist is created, but not a server.
    """
    is_new = False
    try:
        repository = connect(url, who=app.who(), access=app.store.access(url, workspace))
    except StoreNotFound:
        if url.startswith(WEB):
            raise
        repository = create(url, default_branch=default_branch, who=app.who())
        is_new = True
    with repository:
        return repository.config().default_branch, is_new
