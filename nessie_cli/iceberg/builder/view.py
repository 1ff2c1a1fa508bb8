"""View metadata: new views, and the 8 updates of the Iceberg REST specification.

https://iceberg.apache.org/view-spec/
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, ClassVar

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.builder import schemas, values
from nessie_cli.iceberg.builder.document import NEWEST_VERSION, set_properties, with_ids
from nessie_cli.iceberg.builder.values import Definitions, Document

VERSION = 1
LAST_ADDED = -1
_HISTORY_SIZE = "version.history.num-entries"
_HISTORY_SIZE_DEFAULT = 10
_SIZE = re.compile(r"\d{1,9}", re.ASCII)
_MAY_DROP_DIALECTS = "replace.drop-dialect.allowed"
_ORDER = (
    "view-uuid", "format-version", "location", "properties", "schemas", "current-version-id",
    "versions", "version-log",
)  # fmt: skip


def new_view(
    schema: Document,
    version: Document,
    location: str,
    properties: Mapping[str, str],
    now: int,
) -> Document:
    """Returns the metadata of a new view. `now` is in milliseconds since 1970."""
    builder = ViewBuilder(None, now)
    builder.apply({"action": "assign-uuid", "uuid": str(uuid.uuid4())})
    builder.apply({"action": "set-location", "location": location})
    builder.apply({"action": "set-properties", "updates": dict(properties)})
    builder.apply({"action": "add-schema", "schema": schema})
    builder.apply(
        {"action": "add-view-version", "view-version": {**version, "schema-id": LAST_ADDED}}
    )
    builder.apply({"action": "set-current-view-version", "view-version-id": LAST_ADDED})
    return builder.build()


def updated(base: Document | None, updates: Sequence[Document], now: int) -> Document:
    """Returns metadata with updates applied in order. Raises `InvalidInput`."""
    builder = ViewBuilder(base, now)
    for update in updates:
        builder.apply(update)
    return builder.build()


class ViewBuilder:
    """Applies updates to metadata. `now` is in milliseconds since 1970."""

    def __init__(self, base: Document | None, now: int) -> None:
        self._base = base
        self._now = now
        self._made: Document = deepcopy(base) if base is not None else {"format-version": VERSION}
        self._made["properties"] = self._made.get("properties") or {}
        for member in ("schemas", "versions", "version-log"):
            self._made.setdefault(member, [])
        listed = with_ids(self._made["schemas"])
        self._schemas = Definitions(listed, "schema-id", schemas.form)
        self._versions = Definitions(self._made["versions"], "version-id", _behaviour)
        self._last_schema: int | None = None
        self._last_version: int | None = None
        self._added: set[int] = set()
        self._changed = base is None
        self._entry: Document | None = None

    def apply(self, update: Document) -> None:
        """Applies one update. Raises `InvalidInput`."""
        action = values.text(update, "action", "update")
        apply = self._UPDATES.get(action)
        if apply is None:
            raise InvalidInput(f"update: there is no update {action!r} of a view")
        apply(self, update)

    def build(self) -> Document:
        """Returns the new metadata, or the base if nothing has changed."""
        made = self._made
        if self._base is not None and not self._changed:
            return self._base
        made |= {"schemas": [*self._schemas], "versions": [*self._versions]}
        for member in ("view-uuid", "location", "current-version-id"):
            if made.get(member) is None:
                raise InvalidInput(f"view metadata: {member} is missing")
        if self._entry is not None:
            made["version-log"].append(self._entry)
        if (
            self._base is not None
            and made["properties"].get(_MAY_DROP_DIALECTS, "false").lower() != "true"
        ):
            _check_dialects(_current(self._base), _current(made))
        self._expire()
        return {
            name: made[name] for name in (*_ORDER, *(made.keys() - set(_ORDER))) if name in made
        }

    def _expire(self) -> None:
        """Drops the oldest versions beyond the size of the history, but no version added now."""
        made = self._made
        given = made["properties"].get(_HISTORY_SIZE, str(_HISTORY_SIZE_DEFAULT))
        if not _SIZE.fullmatch(given) or int(given) < 1:
            raise InvalidInput(
                f"property {_HISTORY_SIZE}: must be a positive integer, not {given!r}"
            )
        current = made["current-version-id"]
        most = max(int(given), len(self._added | {current}))
        if len(made["versions"]) <= most:
            return
        newest = sorted((version["version-id"] for version in made["versions"]), reverse=True)
        retained = {current, *[id_ for id_ in newest if id_ != current][: most - 1]}
        made["versions"] = [
            version for version in made["versions"] if version["version-id"] in retained
        ]
        log: list[Document] = []
        for entry in made["version-log"]:
            log.append(entry)
            if entry["version-id"] not in retained:
                # A history with a gap would be wrong, so it begins after the last gap.
                log.clear()
        made["version-log"] = log

    def _assign_uuid(self, update: Document) -> None:
        given = values.text(update, "uuid", "assign-uuid")
        if self._made.get("view-uuid") not in (None, given):
            raise InvalidInput("assign-uuid: the UUID of a view cannot be changed")
        self._set("view-uuid", given)

    def _upgrade(self, update: Document) -> None:
        version = values.integer(update, "format-version", "upgrade-format-version")
        if version != VERSION:
            raise InvalidInput(
                f"view format version {version} is not supported; supported: {VERSION}"
            )

    def _set_location(self, update: Document) -> None:
        self._set("location", values.text(update, "location", "set-location"))

    def _set_properties(self, update: Document) -> None:
        given = values.text_map(update, "updates", "set-properties")
        self._changed |= set_properties(self._made["properties"], given)

    def _remove_properties(self, update: Document) -> None:
        given = values.texts(update, "removals", "remove-properties")
        for name in given:
            self._made["properties"].pop(name, None)
        self._changed |= bool(given)

    def _set(self, member: str, value: object) -> None:
        if self._made.get(member) != value:
            self._made[member] = value
            self._changed = True

    def _add_schema(self, update: Document) -> None:
        schema = schemas.canonical(values.object_(update, "schema", "add-schema"))
        schemas.check(schema, NEWEST_VERSION)
        self._last_schema = id_ = self._schemas.id_of(schema, 0)
        if id_ not in self._schemas:
            self._schemas.add({**schema, "schema-id": id_})
            self._changed = True

    def _add_version(self, update: Document) -> None:
        where = "add-view-version"
        version = dict(values.object_(update, "view-version", where))
        first = values.integer(version, "version-id", where)
        values.long(version, "timestamp-ms", where)
        values.check_few(values.object_(version, "summary", where), "summary", where)
        levels = values.texts(version, "default-namespace", where)
        values.check_few(levels, "default-namespace", where)
        representations = values.objects(version, "representations", where)
        values.check_few(representations, "representations", where)
        schema = values.integer(version, "schema-id", where)
        if schema == LAST_ADDED:
            if self._last_schema is None:
                raise InvalidInput(f"{where}: no schema has been added")
            schema = version["schema-id"] = self._last_schema
        _dialects(version, where, unique=True)
        id_ = self._versions.id_of(version, first)
        if id_ in self._versions:
            self._last_version = id_ if id_ in self._added else None
            return
        if schema not in self._schemas:
            raise InvalidInput(f"{where}: there is no schema {schema}")
        self._versions.add({**version, "version-id": id_})
        self._added.add(id_)
        self._last_version = id_
        self._changed = True

    def _set_current(self, update: Document) -> None:
        where = "set-current-view-version"
        version_id = values.integer(update, "view-version-id", where)
        if version_id == LAST_ADDED:
            if self._last_version is None:
                raise InvalidInput(f"{where}: no version has been added")
            version_id = self._last_version
        if self._made.get("current-version-id") == version_id:
            return
        version = self._versions.get(version_id)
        if version is None:
            raise InvalidInput(f"{where}: there is no version {version_id}")
        self._set("current-version-id", version_id)
        time = version["timestamp-ms"] if version_id in self._added else self._now
        self._entry = {"timestamp-ms": time, "version-id": version_id}

    _UPDATES: ClassVar[Mapping[str, Callable[[ViewBuilder, Document], None]]] = {
        "assign-uuid": _assign_uuid,
        "upgrade-format-version": _upgrade,
        "add-schema": _add_schema,
        "set-location": _set_location,
        "set-properties": _set_properties,
        "remove-properties": _remove_properties,
        "add-view-version": _add_version,
        "set-current-view-version": _set_current,
    }


def _current(metadata: Document) -> Document:
    current = metadata["current-version-id"]
    return next(
        (version for version in metadata["versions"] if version["version-id"] == current),
        {"representations": []},
    )


def _behaviour(version: Document) -> list[Any]:
    """Returns what versions with the same behaviour have in common."""
    members = ("summary", "representations", "default-catalog", "default-namespace", "schema-id")
    return [version.get(member) for member in members]


def _dialects(version: Document, where: str, *, unique: bool = False) -> set[str]:
    dialects: set[str] = set()
    for representation in values.objects(version, "representations", where):
        if representation.get("type") != "sql":
            continue
        dialect = values.text(representation, "dialect", where).lower()
        values.text(representation, "sql", where)
        if unique and dialect in dialects:
            raise InvalidInput(
                f"Invalid view version: Cannot add multiple queries for dialect {dialect}"
            )
        dialects.add(dialect)
    return dialects


def _check_dialects(before: Document, after: Document) -> None:
    was, is_ = (_dialects(version, "view version") for version in (before, after))
    if was - is_:
        raise InvalidInput(
            f"the new version has no query for {', '.join(sorted(was - is_))}",
            hint=f"the property {_MAY_DROP_DIALECTS}=true allows that",
        )
