"""`nessie content replace`."""

from typing import Annotated

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.content.fields import (
    ContentOptions,
    content_from_file,
    content_of,
    given_fields,
)
from nessie_cli.cli.content.keys import KeyArgument
from nessie_cli.cli.staging.batch import BatchResult
from nessie_cli.cli.staging.committed import CommittedResult
from nessie_cli.cli.staging.step import Step, print_step, stage
from nessie_cli.errors import ContentNotFound, InvalidInput
from nessie_cli.iceberg.content_ids import check_ids
from nessie_cli.model import ContentKey
from nessie_cli.workspace.staging import StagedList, State, effective, replace, without

EXAMPLES = (
    (
        "nessie content replace db.orders --type iceberg-view --metadata-location s3://lake/v.json"
        " --version-id 1 --schema-id 0"
    ),
    (
        "nessie content replace db.orders --from-metadata s3://lake/db/orders/00002.json -m"
        " 'recreate orders'"
    ),
    "nessie content replace db.orders -m 'new content id'",
)


class Options(ContentOptions, frozen=True, kw_only=True):
    """Stage a replacement: delete a key's content, and create a new one with a new content id.

    No field of the old content is kept, so set --type with its fields, --from-metadata or
    --content; an id in --content is ignored. Without any of these, the content keeps its type and
    all its fields, and only gets a new content id: this repairs a content id that `nessie fsck`
    reports under several keys. Fails if the key does not exist.
    """

    key: Annotated[str, KeyArgument]
    type_: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="iceberg-table, iceberg-view, namespace, delta-table or udf. Required with options"
            " that set fields.",
        ),
    ] = None


def run(options: Options, app: Invocation) -> BatchResult | CommittedResult:
    """Stages the replacement."""
    key = ContentKey.parse(options.key)
    whole = content_from_file(app, options)
    content = None
    if whole is not None or options.type_ is not None:
        content = content_of(key, options, whole, None)
        check_ids(key, content)
    elif given_fields(options):
        raise InvalidInput(
            "replace keeps no field of the old content",
            hint="set --type with all fields, --from-metadata or --content",
        )

    def change(staged: StagedList, state: State) -> StagedList:
        if options.expected_hash:
            staged = without(staged, [key])
        current = effective(staged, key, state)
        if current is None:
            raise ContentNotFound(f"there is no content with key '{key}'", key)
        return replace(staged, key, content or current, state)

    return stage(app, Step(change, (key,), options.expected_hash), options.message, options.author)


show = print_step
