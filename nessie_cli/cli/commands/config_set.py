"""`nessie config set`."""

from typing import Annotated

import typer

from nessie_cli.cli import configuring
from nessie_cli.cli.context import Invocation
from nessie_cli.workspace.known import Scope, check_value, parse_name

EXAMPLES = (
    "nessie config set author 'Ada <ada@example.org>'",
    "nessie config set profile.work.store sqlite:////srv/catalog.sqlite",
    "nessie config set alias.lg 'log --oneline --graph --all' --user",
    "nessie config set safe-directories /srv/lake --add",
    "nessie config set protect.main no-delete,no-rewind --repository",
)


def config_set(
    ctx: typer.Context,
    name: configuring.Key,
    value: Annotated[str, typer.Argument(metavar="VALUE", help="Its value.", show_default=False)],
    *,
    add: Annotated[bool, typer.Option("--add", help="Add VALUE to a list instead of replacing the list.")] = False,
    user: configuring.User = False,
    workspace: configuring.Workspace = False,
    repository: configuring.Repository = False,
) -> None:
    """Set one setting; comments and everything else in the file stay. Secrets are refused: they are never written.

    Without an option it becomes a setting of this workspace, and one that only a user has (profiles) one of yours.
    """
    call = Invocation.of(ctx)
    scope = configuring.place_to_write(call, name, configuring.scope_of(user=user, workspace=workspace, repository=repository))
    check_value(name, value)
    if scope is not Scope.REPOSITORY and parse_name(name)[0] == "alias":
        from nessie_cli.cli.aliases import check_alias

        check_alias(parse_name(name)[1], value)
    value = configuring.written_form(name, value)
    if add:
        value = configuring.with_another(call, name, value, scope)
    before = configuring.write(call, name, value, scope)
    if call.wants_json:
        call.answer(configuring.document(configuring.Setting(name, value, scope)) | {"previous": before})
    else:
        call.say(f"{name} = {value}")
