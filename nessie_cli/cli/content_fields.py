"""The options that describe a content (`nessie content put` and `replace`), and the content that they make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from nessie_cli.cli.batch_resolutions import FIELD_OPTION, TYPE_OPTION
from nessie_cli.cli.input import pairs, read_bytes
from nessie_cli.errors import InvalidInput
from nessie_cli.model import Content, ContentKey, Namespace, content_from

if TYPE_CHECKING:
    from nessie_cli.cli.context import Invocation

Type = Annotated[str | None, typer.Option("--type", metavar="TYPE", help="iceberg-table, iceberg-view, namespace, delta-table or udf.")]
MetadataLocation = Annotated[
    list[str] | None, typer.Option(metavar="URI", help="The metadata file; several for the history of a delta-table.", show_default=False)
]
SnapshotId = Annotated[int | None, typer.Option(metavar="N", help="iceberg-table: the current snapshot.")]
SchemaId = Annotated[int | None, typer.Option(metavar="N", help="iceberg-table and -view: the current schema.")]
SpecId = Annotated[int | None, typer.Option(metavar="N", help="iceberg-table: the default partition spec.")]
SortOrderId = Annotated[int | None, typer.Option(metavar="N", help="iceberg-table: the default sort order.")]
VersionId = Annotated[str | None, typer.Option(metavar="N", help="iceberg-view and udf: the current version.")]
SqlText = Annotated[str | None, typer.Option(metavar="SQL", help="iceberg-view and udf: the definition.")]
Dialect = Annotated[str | None, typer.Option(metavar="NAME", help="iceberg-view and udf: the SQL dialect.")]
SignatureId = Annotated[str | None, typer.Option(metavar="ID", help="udf: the signature.")]
CheckpointLocation = Annotated[list[str] | None, typer.Option(metavar="URI", help="delta-table: checkpoints, oldest first.", show_default=False)]
LastCheckpoint = Annotated[str | None, typer.Option(metavar="URI", help="delta-table: the last checkpoint.")]
Properties = Annotated[list[str] | None, typer.Option("--property", metavar="K=V", help="namespace: a property; repeat it.", show_default=False)]
FromMetadata = Annotated[
    str | None,
    typer.Option(metavar="URI", help="Take everything from an Iceberg metadata file, or from the newest one in a table's folder."),
]
ContentFile = Annotated[str | None, typer.Option("--content", metavar="FILE|-", help="Take the content from a file of REST JSON.")]
ContentId = Annotated[str | None, typer.Option("--id", metavar="UUID", help="The content id.")]

_PARAMETERS: Mapping[str, str] = {
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
"""The parser's names and the attributes that they set."""

_ALLOWED: Mapping[str, frozenset[str]] = {
    "ICEBERG_TABLE": frozenset({"metadataLocation", "snapshotId", "schemaId", "specId", "sortOrderId"}),
    "ICEBERG_VIEW": frozenset({"metadataLocation", "versionId", "schemaId", "sqlText", "dialect"}),
    "NAMESPACE": frozenset({"properties"}),
    "DELTA_LAKE_TABLE": frozenset({"metadataLocationHistory", "checkpointLocationHistory", "lastCheckpoint"}),
    "UDF": frozenset({"metadataLocation", "versionId", "signatureId", "sqlText", "dialect"}),
}


def content_of(key: ContentKey, given: Mapping[str, Any], current: Content | None) -> Content:
    """The content that the options describe, `given` by the parser's names.

    An option that is left out keeps the value of `current`, where that is of the same type. Raises `InvalidInput` that names the option.
    """
    fields = {attribute: given[name] for name, attribute in _PARAMETERS.items() if given.get(name) not in (None, [], ())}
    whole = [option for option, name in (("--from-metadata", "from_metadata"), ("--content", "content_file")) if given.get(name)]
    if len(whole) > 1 or (whole and (fields or given.get("type_"))):
        raise InvalidInput(f"{whole[0]} gives the whole content; leave the other options that describe one out")
    content = _whole(given) if whole else _from_options(key, fields, given.get("type_"), current)
    return content.with_id(given["content_id"]) if given.get("content_id") else content


def given_fields(call: Invocation, params: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options by the parser's names; a folder is replaced by its newest metadata file."""
    given = dict(params)
    if given.get("from_metadata"):
        from nessie_cli.iceberg.newest import is_folder, newest_metadata

        if is_folder(given["from_metadata"]):
            given["from_metadata"] = newest_metadata(given["from_metadata"])
            call.note(f"the newest metadata file is {given['from_metadata']}")
    return given


def _whole(given: Mapping[str, Any]) -> Content:
    if given.get("from_metadata"):
        from nessie_cli.iceberg.metadata import read_content

        return read_content(given["from_metadata"])
    from nessie_cli.wire.decode import decode_content

    name = given["content_file"]
    return decode_content(read_bytes(name, "--content"), "stdin" if name == "-" else name, allow_unknown=True)


def _from_options(key: ContentKey, fields: dict[str, Any], type_option: str | None, current: Content | None) -> Content:
    type_name = type_of(type_option) if type_option else current.type_name if current else None
    if type_name is None:
        raise InvalidInput(f"key '{key}' is new: --type says what it is ({', '.join(TYPE_OPTION.values())}), or --from-metadata, or --content")
    kept = current.attributes() if current is not None and current.type_name == type_name else {}
    try:
        content = content_from(type_name, None, kept | _attributes(type_name, fields))
    except InvalidInput as error:
        raise InvalidInput(_in_options(error.message)) from None
    if isinstance(content, Namespace):
        return Namespace(elements=tuple(kept.get("elements", key.elements)), properties=content.properties)
    return content


def type_of(option: str) -> str:
    """The content type that `--type` names, in any of its spellings; raises `InvalidInput`."""
    word = option.lower().replace("_", "-")
    word = "delta-table" if word == "delta-lake-table" else word
    found = next((name for name, spelled in TYPE_OPTION.items() if spelled == word), None)
    if found is None:
        from nessie_cli.cli.errors.suggestions import did_you_mean

        raise InvalidInput(f"--type {option}: known are {', '.join(TYPE_OPTION.values())}{did_you_mean(word, TYPE_OPTION.values())}")
    return found


def _attributes(type_name: str, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields in the form that the type wants; raises `InvalidInput` for an option that it does not have."""
    fields = dict(fields)
    locations = fields.pop("metadataLocation", None)
    if locations is not None and type_name == "DELTA_LAKE_TABLE":
        fields["metadataLocationHistory"] = locations
    elif locations is not None:
        fields["metadataLocation"] = _only(locations)
    for name in fields:
        if name not in _ALLOWED.get(type_name, fields):
            raise InvalidInput(f"{FIELD_OPTION[name]}: a content of type {TYPE_OPTION.get(type_name, type_name)} has no such attribute")
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
        raise InvalidInput(f"--version-id {text}: the version of an iceberg-view is a whole number") from None


def _in_options(message: str) -> str:
    """A message about `ICEBERG_TABLE.metadataLocation` as one about `--metadata-location`."""
    place, colon, rest = message.partition(":")
    option = FIELD_OPTION.get(place.partition(".")[2])
    return f"{option}:{rest}" if option and colon else message
