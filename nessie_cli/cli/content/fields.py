"""The options that describe a content, and the content that they make."""

from collections.abc import Mapping
from typing import Annotated, Any

import typer
from msgspec import Struct

from nessie_cli.cli.app.input import pairs, read_bytes
from nessie_cli.cli.app.invocation import Invocation
from nessie_cli.cli.errors.suggestions import did_you_mean
from nessie_cli.cli.staging.options import Author, ExpectedHash, Message
from nessie_cli.cli.staging.resolutions import FIELD_OPTION, TYPE_OPTION
from nessie_cli.errors import InvalidInput
from nessie_cli.model import CONTENT_TYPES, Content, ContentKey, Namespace, content_from
from nessie_cli.workspace.environment import of_s3

_FIELDS: Mapping[str, str] = {
    "metadata_location": "metadataLocation",
    "snapshot_id": "snapshotId",
    "schema_id": "schemaId",
    "spec_id": "specId",
    "sort_order_id": "sortOrderId",
    "version_id": "versionId",
    "sql_text": "sqlText",
    "dialect": "dialect",
    "signature_id": "signatureId",
    "checkpoint_location": "checkpointLocationHistory",
    "last_checkpoint": "lastCheckpoint",
    "properties": "properties",
}
"""The options' fields, and the attributes that they set."""


class ContentOptions(Struct, frozen=True, kw_only=True):
    """The options that describe a content."""

    type_: Annotated[
        str | None,
        typer.Option(
            "--type",
            metavar="TYPE",
            help="iceberg-table, iceberg-view, namespace, delta-table or udf. Required for a new"
            " key without --from-metadata or --content.",
        ),
    ] = None
    metadata_location: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URI", help="The metadata file; repeat for the history of a delta-table."
        ),
    ] = None
    snapshot_id: Annotated[
        int | None, typer.Option(metavar="N", help="iceberg-table: the current snapshot.")
    ] = None
    schema_id: Annotated[
        int | None,
        typer.Option(metavar="N", help="iceberg-table and iceberg-view: the current schema."),
    ] = None
    spec_id: Annotated[
        int | None, typer.Option(metavar="N", help="iceberg-table: the default partition spec.")
    ] = None
    sort_order_id: Annotated[
        int | None, typer.Option(metavar="N", help="iceberg-table: the default sort order.")
    ] = None
    version_id: Annotated[
        str | None, typer.Option(metavar="N", help="iceberg-view and udf: the current version.")
    ] = None
    sql_text: Annotated[
        str | None, typer.Option(metavar="SQL", help="iceberg-view and udf: the definition.")
    ] = None
    dialect: Annotated[
        str | None, typer.Option(metavar="NAME", help="iceberg-view and udf: the SQL dialect.")
    ] = None
    signature_id: Annotated[str | None, typer.Option(metavar="ID", help="udf: the signature.")] = (
        None
    )
    checkpoint_location: Annotated[
        list[str] | None,
        typer.Option(metavar="URI", help="delta-table: a checkpoint; repeatable, oldest first."),
    ] = None
    last_checkpoint: Annotated[
        str | None, typer.Option(metavar="URI", help="delta-table: the last checkpoint.")
    ] = None
    properties: Annotated[
        list[str] | None,
        typer.Option("--property", metavar="K=V", help="namespace: a property; repeatable."),
    ] = None
    from_metadata: Annotated[
        str | None,
        typer.Option(
            metavar="URI",
            help="Read the content from an Iceberg metadata file, or from the newest one in"
            " a table's folder.",
        ),
    ] = None
    content: Annotated[
        str | None,
        typer.Option(
            metavar="FILE|-",
            help="Read the content from a JSON file (-: stdin), as `content show --raw` prints it.",
        ),
    ] = None
    message: Message = None
    author: Author = None
    expected_hash: ExpectedHash = None


def content_from_file(app: Invocation, options: ContentOptions) -> Content | None:
    """Returns the content from `--from-metadata` or `--content`, or None without them.

    Raises `InvalidInput` if other options describe a content as well.
    """
    files = {"--from-metadata": options.from_metadata, "--content": options.content}
    named = [option for option, name in files.items() if name is not None]
    if not named:
        return None
    if len(named) > 1 or options.type_ or given_fields(options):
        raise InvalidInput(
            f"{named[0]} gives the whole content; omit the other options of the content"
        )
    return (
        _read_metadata(app, options.from_metadata)
        if options.from_metadata is not None
        else _read(options.content or "")
    )


def content_of(
    key: ContentKey, options: ContentOptions, whole: Content | None, current: Content | None
) -> Content:
    """Returns the content that the options describe.

    `whole` is the content of `content_from_file`. Otherwise a field without an option keeps the
    value of `current` if that has the same type. Raises `InvalidInput` that names the option.
    """
    return whole or _from_options(key, options, current)


def given_fields(options: ContentOptions) -> dict[str, Any]:
    """Returns the values of the options by attribute."""
    values = {attribute: getattr(options, name) for name, attribute in _FIELDS.items()}
    return {attribute: value for attribute, value in values.items() if value not in (None, [])}


def _read_metadata(app: Invocation, location: str) -> Content:
    from nessie_cli.iceberg.metadata import read_content
    from nessie_cli.iceberg.newest import is_folder, newest_metadata

    properties = of_s3()
    if is_folder(location):
        location = newest_metadata(location, properties)
        app.output.note(f"the newest metadata file is {location}")
    return read_content(location, properties)


def _read(name: str) -> Content:
    from nessie_cli.wire.decode import decode_content

    data = read_bytes(name, "--content")
    return decode_content(data, "stdin" if name == "-" else name, allow_unknown=True)


def _from_options(key: ContentKey, options: ContentOptions, current: Content | None) -> Content:
    type_name = type_of(options.type_) if options.type_ else current.type_name if current else None
    if type_name is None:
        raise InvalidInput(
            f"key '{key}' is new and needs a type: --type"
            f" ({', '.join(TYPE_OPTION.values())}), --from-metadata or --content"
        )
    current_attributes = (
        current.attributes() if current is not None and current.type_name == type_name else {}
    )
    try:
        content = content_from(
            type_name, None, current_attributes | _attributes(type_name, given_fields(options))
        )
    except InvalidInput as error:
        raise InvalidInput(_in_options(error.message)) from None
    if isinstance(content, Namespace):
        elements = tuple(current_attributes.get("elements", key.elements))
        return Namespace(elements=elements, properties=content.properties)
    return content


def type_of(option: str) -> str:
    """Returns the content type of `--type`, in any spelling. Raises `InvalidInput`."""
    word = option.lower().replace("_", "-")
    word = "delta-table" if word == "delta-lake-table" else word
    type_name = next((name for name, spelled in TYPE_OPTION.items() if spelled == word), None)
    if type_name is None:
        spellings = TYPE_OPTION.values()
        raise InvalidInput(
            f"--type {option}: known are {', '.join(spellings)}{did_you_mean(word, spellings)}"
        )
    return type_name


def _attributes(type_name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """Returns the attributes of a type.

    Raises `InvalidInput` for an attribute that the type lacks.
    """
    locations = fields.pop("metadataLocation", None)
    if locations is not None and type_name == "DELTA_LAKE_TABLE":
        fields["metadataLocationHistory"] = locations
    elif locations is not None:
        fields["metadataLocation"] = _only(locations)
    kind = CONTENT_TYPES.get(type_name)
    for name in fields:
        if kind and name not in kind.attribute_names():
            type_label = TYPE_OPTION.get(type_name, type_name)
            raise InvalidInput(
                f"{FIELD_OPTION[name]}: a content of type {type_label} has no such attribute"
            )
    if "versionId" in fields and type_name == "ICEBERG_VIEW":
        fields["versionId"] = _number(fields["versionId"])
    if "properties" in fields:
        fields["properties"] = dict(pairs(fields["properties"], "--property"))
    return {"elements": []} | fields if type_name == "NAMESPACE" else fields


def _only(locations: list[str]) -> str:
    if len(locations) > 1:
        raise InvalidInput("--metadata-location: only a delta-table has several")
    return locations[0]


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise InvalidInput(
            f"--version-id {text}: the version of an iceberg-view is an integer"
        ) from None


def _in_options(message: str) -> str:
    """Replaces attributes such as `ICEBERG_TABLE.metadataLocation` in a message by options."""
    place, colon, rest = message.partition(":")
    option = FIELD_OPTION.get(place.partition(".")[2])
    return f"{option}:{rest}" if option and colon else message
