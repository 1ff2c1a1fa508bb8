"""`nessie content replace`."""

import uuid
from typing import Annotated

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.app.output import Output
from nessie_cli.cli.content.fields import ContentOptions, content_from_file, content_of
from nessie_cli.cli.content.keys import KeyArgument
from nessie_cli.cli.staging.batch import Batch
from nessie_cli.cli.staging.committed import Committed
from nessie_cli.cli.staging.step import Step, print_step, stage
from nessie_cli.cli.staging.submission import head_of_branch
from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.content_ids import check_ids
from nessie_cli.model import ContentKey
from nessie_cli.workspace.staging import StagedList, State, effective, replace

EXAMPLES = (
    (
        "nessie content replace db.orders --type iceberg-view --metadata-location s3://lake/v.json"
        " --version-id 1 --schema-id 0"
    ),
    (
        "nessie content replace db.orders --from-metadata s3://lake/db/orders/00002.json -m"
        " 'recreate orders'"
    ),
)


class Options(ContentOptions, frozen=True, kw_only=True):
    """Stage a replacement: drop a key's content, and create a new one.

    The content id is new as well, unless --id or --content names one. If the named id is the
    current id of the key, the content is updated instead, and its type cannot change. No field of
    the old content is kept, so --type (with its fields), --from-metadata or --content is required.
    Fails if the key does not exist.
    """

    key: Annotated[str, KeyArgument]
    type_: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="iceberg-table, iceberg-view, namespace, delta-table or udf. Required without"
            " --from-metadata or --content.",
        ),
    ] = None


def run(options: Options, app: Invocation) -> Batch | Committed:
    """Stages the replacement."""
    key = ContentKey.parse(options.key)
    whole = content_from_file(app, options)
    if whole is None and options.type_ is None:
        raise InvalidInput(
            "replace keeps no field of the old content. Hint: set --type with its fields,"
            " --from-metadata or --content"
        )
    content = content_of(key, options, whole, None)
    _refuse_id_of_another(app, content.id, key)
    check_ids(key, content)
    new_id = content.id or str(uuid.uuid4())

    def change(staged: StagedList, state: State) -> StagedList:
        now = state(key)
        if now is not None and now.id == content.id and now.type_name != content.type_name:
            raise InvalidInput(
                f"content id {content.id}: key '{key}' already has it, with another type. Hint:"
                " omit --id"
            )
        if content.id is not None and now is None and effective(staged, key, state) is not None:
            raise InvalidInput(
                f"content id {content.id}: the batch creates key '{key}', and the repository"
                " assigns the ids of new contents"
            )
        return replace(
            staged, key, content, state, new_id, discard_staged=bool(options.expected_hash)
        )

    return stage(app, Step(change, (key,), options.expected_hash), options.message, options.author)


def _refuse_id_of_another(app: Invocation, id_: str | None, key: ContentKey) -> None:
    """Raises `InvalidInput` if another key of the branch has a content id."""
    if id_ is None:
        return
    repository = app.repository()
    for entry in repository.entries(head_of_branch(repository, app.reference_name())):
        if entry.content_id == id_ and entry.key != key:
            raise InvalidInput(
                f"content id {id_}: key '{entry.key}' has it. Hint: omit the id, or rename that key"
            )


def show(result: Batch | Committed, output: Output) -> None:
    """Prints the change, or its commit."""
    print_step(result, output)
