"""`nessie init`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nessie_cli.cli.context import Invocation
from nessie_cli.errors import InvalidInput
from nessie_cli.model import check_new_reference_name

if TYPE_CHECKING:
    from nessie_cli.workspace.folder import Workspace

EXAMPLES = ("nessie init", "nessie init warehouse --default-branch main", "nessie init --store sqlite:////var/lib/catalog.sqlite")


def init(
    ctx: typer.Context,
    directory: Annotated[str, typer.Argument(metavar="[DIR]", help="Where; here, when it is left out.", show_default=False)] = ".",
    default_branch: Annotated[str, typer.Option(metavar="NAME", help="The default branch of a store that is made.")] = "main",
) -> None:
    """Make a workspace here and, when there is none, its store.

    With --store the workspace works on that store. Repeating it is harmless: what exists stays as it is.
    """
    call = Invocation.of(ctx)
    root = Path(directory).absolute()
    if root.exists() and not root.is_dir():
        raise InvalidInput(f"{directory}: is a file, not a folder")
    check_new_reference_name(default_branch)
    made, url, branch = _make(call, root, default_branch)
    if call.wants_json:
        call.answer({"workspace": str(root), "store": url, "defaultBranch": branch, "created": made})
    else:
        call.say(f"{'made' if made else 'already there:'} workspace {root / '.nessie'} on {url}, default branch {branch}")


def _make(call: Invocation, root: Path, default_branch: str) -> tuple[bool, str, str]:
    """Make what is missing. A store elsewhere comes first: no workspace is left that names a store which could not be made."""
    from nessie_cli.workspace.folder import Workspace, absolute_store, make_workspace
    from nessie_cli.workspace.locations import FOLDER
    from nessie_cli.workspace.secrets import refuse_secret
    from nessie_cli.workspace.trust import FOREIGN
    from nessie_cli.workspace.trust_records import record_workspace

    known = Workspace(root) if (root / FOLDER).is_dir() else None
    if known and known.trust == FOREIGN:
        raise known.refusal("nothing in it is used")
    elsewhere = absolute_store(call.options.store, Path.cwd()) if call.options.store else None
    if known and elsewhere and known.named_store() != elsewhere:
        raise InvalidInput(f"{known.folder}: this workspace works on {known.named_store()}; its config.toml names the store")
    if elsewhere:
        refuse_secret("--store", elsewhere)
        _open_or_create(call, elsewhere, default_branch, known)
        _accept(call, elsewhere)
    workspace = known or make_workspace(root, elsewhere)
    if known is None:
        record_workspace(str(root))
    url = elsewhere or workspace.store()
    branch = _open_or_create(call, url, default_branch, workspace)
    if workspace.current_reference() is None:
        workspace.set_current_reference(branch)
    return known is None, url, branch


def _accept(call: Invocation, url: str) -> None:
    """Remember the server that the user named, for later commands in this workspace."""
    from nessie_cli.workspace.credentials import DATABASE, WEB, endpoint
    from nessie_cli.workspace.trust_records import record_server

    if url.startswith((*WEB, *DATABASE)) and not record_server(endpoint(url) or url):
        call.note(f"hint: your state folder cannot be written, so later commands need NESSIE_TRUSTED_ENDPOINTS to name {endpoint(url) or url}")


def _open_or_create(call: Invocation, url: str, default_branch: str, workspace: "Workspace | None") -> str:
    """The default branch of the store at a URL, which is made where there is none."""
    from nessie_cli.errors import StoreNotFound
    from nessie_cli.repository.opening import connect, create

    try:
        repository = connect(url, who=call.who(), access=call.access(url, workspace))
    except StoreNotFound:
        if url.startswith(("http://", "https://")):
            # A server's store is made where it is.
            raise
        repository = create(url, default_branch=default_branch, who=call.who())
    with repository:
        return repository.config().default_branch
