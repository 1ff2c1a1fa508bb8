"""`nessie content put`."""

from typing import Annotated
from uuid import UUID

import typer

from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.content.fields import ContentOptions, content_from_file, content_of
from nessie_cli.cli.content.keys import KeyArgument
from nessie_cli.cli.staging.batch import BatchResult
from nessie_cli.cli.staging.committed import CommittedResult
from nessie_cli.cli.staging.step import Step, print_step, stage
from nessie_cli.errors import ContentExists, ContentNotFound, InvalidInput
from nessie_cli.iceberg.content_ids import check_ids
from nessie_cli.model import Content, ContentKey, Namespace
from nessie_cli.workspace.staging import StagedList, State, effective, put, without

EXAMPLES = (
    "nessie content put finance --type namespace -m 'add finance'",
    (
        "nessie content put db.orders --type iceberg-table --metadata-location"
        " s3://lake/db/orders/00001.json --snapshot-id 42"
    ),
    "nessie content put db.orders --from-metadata s3://lake/db/orders/00002.json -m 'nightly load'",
)


class Options(ContentOptions, frozen=True, kw_only=True):
    """Stage the content of a key.

    A new key needs --type, --from-metadata or --content. An existing key keeps its content id and
    its type; `content replace` changes them. --from-metadata and --content give the whole content:
    use only one of them, and without --type and options that set fields. Otherwise, fields that no
    option sets keep their values. Repeatable options such as --property replace all earlier values.
    When you commit, the key must be in the state that it had when you staged it; otherwise the
    commit fails with a conflict.
    """

    key: Annotated[str, KeyArgument]
    id_: Annotated[
        str | None,
        typer.Option(
            "--id",
            metavar="UUID",
            help="Fail unless the key has this content id. Not allowed for a new key.",
        ),
    ] = None
    new: Annotated[bool, typer.Option("--new", help="Fail if the key exists.")] = False
    existing: Annotated[
        bool, typer.Option("--existing", help="Fail if the key does not exist.")
    ] = False


def run(options: Options, app: Invocation) -> BatchResult | CommittedResult:
    """Stages the content."""
    key = ContentKey.parse(options.key)
    if options.new and options.existing:
        raise InvalidInput("--new and --existing cannot be used together")
    whole = content_from_file(app, options)

    def change(staged: StagedList, state: State) -> StagedList:
        if options.expected_hash:
            staged = without(staged, [key])
        current = effective(staged, key, state)
        if options.new and current is not None:
            raise ContentExists(f"key '{key}' already exists", str(key))
        if options.existing and current is None:
            raise ContentNotFound(f"there is no content with key '{key}'", key)
        content = content_of(key, options, whole, current)
        if options.id_ is not None:
            content = content.with_id(_content_id(options.id_))
        if current is None and content.id is not None and not options.id_:
            app.output.note(f"key '{key}' is new: it gets a new content id, not {content.id}")
            content = _copy(content, key)
        _check_id(content, current, key, "--id" if options.id_ else "--content: id")
        check_ids(key, content)
        return put(staged, key, content, state)

    return stage(app, Step(change, (key,), options.expected_hash), options.message, options.author)


show = print_step


def _content_id(text: str) -> str:
    try:
        parsed = str(UUID(text))
    except ValueError:
        parsed = None
    if parsed != text.lower():
        raise InvalidInput(f"--id {text!r} is not a UUID")
    return parsed


def _copy(content: Content, key: ContentKey) -> Content:
    """Copies the content of another key, without its id.

    A namespace gets the elements of the new key.
    """
    if isinstance(content, Namespace):
        return Namespace(elements=key.elements, properties=content.properties)
    return content.with_id(None)


def _check_id(content: Content, current: Content | None, key: ContentKey, option: str) -> None:
    """Raises `InvalidInput` if the id of a content differs from that of its key."""
    if content.id is None or (current is not None and current.id == content.id):
        return
    if current is None or current.id is None:
        raise InvalidInput(
            f"{option} {content.id}: key '{key}' is new, and the repository assigns the ids of new"
            " contents"
        )
    raise InvalidInput(
        f"{option} {content.id}: key '{key}' has the content id {current.id}",
        hint="`nessie content replace` replaces it by a new content, which gets a new id",
    )
