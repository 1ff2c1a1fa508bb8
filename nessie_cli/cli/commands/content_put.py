"""`nessie content put` and `nessie content replace`."""
# ruff: noqa: ARG001 (the parser's parameters are read together, from `ctx.params`)

import uuid
from typing import Annotated

import typer

from nessie_cli.cli import content_fields as f
from nessie_cli.cli import staging
from nessie_cli.cli.context import Invocation
from nessie_cli.errors import ContentExists, ContentNotFound, InvalidInput
from nessie_cli.iceberg.agreement import check_ids
from nessie_cli.model import Content, ContentKey
from nessie_cli.workspace.staging import StagedList, State, effective, put, replace, without

EXAMPLES = (
    "nessie content put finance --type namespace -m 'add finance'",
    "nessie content put db.orders --type iceberg-table --metadata-location s3://lake/db/orders/00001.json --snapshot-id 42",
    "nessie content put db.orders --from-metadata s3://lake/db/orders/00002.json -m 'nightly load'",
    "nessie content replace db.orders --type iceberg-view --metadata-location s3://lake/v.json --version-id 1 --schema-id 0",
)


def content_put(
    ctx: typer.Context,
    key: staging.Key,
    *,
    type_: f.Type = None,
    metadata_location: f.MetadataLocation = None,
    snapshot_id: f.SnapshotId = None,
    schema_id: f.SchemaId = None,
    spec_id: f.SpecId = None,
    sort_order_id: f.SortOrderId = None,
    version_id: f.VersionId = None,
    sql_text: f.SqlText = None,
    dialect: f.Dialect = None,
    signature_id: f.SignatureId = None,
    checkpoint_location: f.CheckpointLocation = None,
    last_checkpoint: f.LastCheckpoint = None,
    properties: f.Properties = None,
    from_metadata: f.FromMetadata = None,
    content_file: f.ContentFile = None,
    content_id: f.ContentId = None,
    new: Annotated[bool, typer.Option("--new", help="Insist on creating: the key must not exist.")] = False,
    existing: Annotated[bool, typer.Option("--existing", help="Insist on updating: the key must exist.")] = False,
    expected_hash: staging.ExpectedHash = None,
    message: staging.Message = None,
    author: staging.Author = None,
) -> None:
    """Stage a content: create the key, or update it under the content id that it has.

    An option that is left out keeps the value there is. An update expects the content that is there now; when it is committed and somebody
    was faster, that is a conflict.
    """
    wanted = ContentKey.parse(key)
    if new and existing:
        raise InvalidInput("--new and --existing exclude each other")

    given = f.given_fields(Invocation.of(ctx), ctx.params)

    def change(staged: StagedList, state: State) -> StagedList:
        if expected_hash:
            staged = without(staged, [wanted])
        current = effective(staged, wanted, state)
        if new and current is not None:
            raise ContentExists(f"key '{wanted}' exists already", str(wanted))
        if existing and current is None:
            raise ContentNotFound(f"there is no content with key '{wanted}'", wanted)
        content = f.content_of(wanted, given, current)
        _check_id(content, current, wanted)
        check_ids(wanted, content)
        return put(staged, wanted, content, state)

    staging.stage(Invocation.of(ctx), staging.Step(change, [wanted], message, expected_hash, author))


def _check_id(content: Content, current: Content | None, key: ContentKey) -> None:
    if content.id is None or (current is not None and current.id == content.id):
        return
    if current is None:
        raise InvalidInput(f"--id {content.id}: key '{key}' is new, and the repository gives new contents their id")
    raise InvalidInput(f"--id {content.id}: key '{key}' has the content id {current.id}; `nessie content replace` makes another content of it")


def content_replace(
    ctx: typer.Context,
    key: staging.Key,
    *,
    type_: f.Type = None,
    metadata_location: f.MetadataLocation = None,
    snapshot_id: f.SnapshotId = None,
    schema_id: f.SchemaId = None,
    spec_id: f.SpecId = None,
    sort_order_id: f.SortOrderId = None,
    version_id: f.VersionId = None,
    sql_text: f.SqlText = None,
    dialect: f.Dialect = None,
    signature_id: f.SignatureId = None,
    checkpoint_location: f.CheckpointLocation = None,
    last_checkpoint: f.LastCheckpoint = None,
    properties: f.Properties = None,
    from_metadata: f.FromMetadata = None,
    content_file: f.ContentFile = None,
    content_id: f.ContentId = None,
    expected_hash: staging.ExpectedHash = None,
    message: staging.Message = None,
    author: staging.Author = None,
) -> None:
    """Stage a drop and re-creation of one key: another content with its own id takes the place of the one there is."""
    wanted = ContentKey.parse(key)

    given = f.given_fields(Invocation.of(ctx), ctx.params)

    def change(staged: StagedList, state: State) -> StagedList:
        content = f.content_of(wanted, given, None)
        check_ids(wanted, content)
        return replace(staged, wanted, content, state, content.id or str(uuid.uuid4()), afresh=bool(expected_hash))

    staging.stage(Invocation.of(ctx), staging.Step(change, [wanted], message, expected_hash, author))
