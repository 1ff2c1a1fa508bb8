"""JSON Schemas of everything that travels: requests as the guards take them, answers as `encode` and `encode_v1` write them.

They describe; they check nothing at run time. The OpenAPI document is made of them, and tests hold real answers against them.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from nessie_cli.model import ConflictType, MergeBehavior
from nessie_cli.wire import bodies, guards, repository_config
from nessie_cli.wire.encode import Json

PREFIX = "#/components/schemas/"
TEXT: Json = {"type": "string"}
NUMBER: Json = {"type": "integer"}
FLAG: Json = {"type": "boolean"}
INSTANT: Json = {"type": "string", "format": "date-time"}
HASH: Json = {"type": "string", "pattern": "^[0-9a-fA-F]{8,64}$"}
SPEC: Json = {"type": "string", "pattern": r"^[0-9a-fA-F]{8,64}([~*^][0-9TZ:.-]+)*$"}
"""A hash with relative parts behind it."""
NAME: Json = {"type": "string", "pattern": r"^(-|[A-Za-z](?:[A-Za-z0-9./_-]*[A-Za-z0-9_-])?)$"}


def ref(name: str) -> Json:
    """A named schema."""
    return {"$ref": PREFIX + name}


def maybe(schema: Json) -> Json:
    """A value or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def many(schema: Json) -> Json:
    """A list."""
    return {"type": "array", "items": schema}


def texts(schema: Json | None = None) -> Json:
    """A map of texts to values."""
    return {"type": "object", "additionalProperties": schema or TEXT}


def record(required: Json, optional: Json | None = None) -> Json:
    """An object with these attributes and no others."""
    return {"type": "object", "properties": required | (optional or {}), "required": list(required), "additionalProperties": False}


def _page(name: str, item: Json, **more: Json) -> Json:
    return record({"hasMore": FLAG, "token": maybe(TEXT), name: many(item)} | more)


# -- requests: from the guards ------------------------------------------------------------------------------------------------------------


def _of_guard(guard: type[BaseModel], **overrides: Json) -> Json:
    """The schema of a guard, without the titles that repeat the names, with some attributes described better than their guard can."""
    schema = guard.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    definitions = schema.pop("$defs", {})
    schema["properties"] = {name: overrides.get(name) or _without_titles(value, definitions) for name, value in schema["properties"].items()}
    return schema


def _without_titles(value: Any, definitions: Json) -> Any:
    if isinstance(value, list):
        return [_without_titles(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return _without_titles(definitions[value["$ref"].rpartition("/")[2]], definitions)
    return {name: _without_titles(item, definitions) for name, item in value.items() if name not in ("title", "description", "default")}


def _typed(name: str, schema: Json) -> Json:
    """One alternative of a union: the attribute `type` says which."""
    schema = {**schema, "properties": {"type": {"const": name}, **schema["properties"]}}
    schema["required"] = ["type", *schema.get("required", [])]
    return schema


def _requests() -> dict[str, Json]:
    contents = {f"{name}_CONTENT": _typed(name, _of_guard(guard)) for name, guard in guards.CONTENT_GUARDS.items()}
    put = _of_guard(guards.PutGuard, key=ref("ContentKey"), content=ref("Content"), expectedContent=maybe(ref("Content")))
    keyed = _of_guard(guards.KeyOperationGuard, key=ref("ContentKey"))
    behavior = {"enum": [str(one) for one in MergeBehavior]}
    modes = many(ref("MergeKeyBehavior"))
    shared = {"fromRefName": NAME, "keyMergeModes": maybe(modes), "defaultKeyMergeMode": maybe(behavior)}
    return {
        **contents,
        "Content": {"oneOf": [ref(name) for name in contents]},
        "ReferenceRequest": {
            "oneOf": [
                *(_typed(kind, _named_reference()) for kind in ("BRANCH", "TAG")),
                _typed("DETACHED", {"type": "object", "properties": {"hash": SPEC}, "required": ["hash"]}),
            ]
        },
        "ContentKey": _of_guard(guards.KeyGuard, elements={**many({"type": "string", "minLength": 1, "maxLength": 500}), "maxItems": 20}),
        "CommitMetaRequest": _of_guard(guards.CommitMetaGuard, authorTime=maybe(INSTANT)),
        "Operation": {"oneOf": [_typed("PUT", put), _typed("DELETE", keyed), _typed("UNCHANGED", keyed)]},
        "Operations": record({"commitMeta": ref("CommitMetaRequest"), "operations": {**many(ref("Operation")), "minItems": 1}}),
        "MergeKeyBehavior": _of_guard(
            bodies.BehaviorGuard,
            key=ref("ContentKey"),
            mergeBehavior=behavior,
            expectedTargetContent=maybe(ref("Content")),
            resolvedContent=maybe(ref("Content")),
        ),
        "Merge": _without(_of_guard(bodies.MergeGuard, commitMeta=maybe(ref("CommitMetaRequest")), **shared), *bodies.MISSPELT),
        "Transplant": _without(_of_guard(bodies.TransplantGuard, **shared), *bodies.MISSPELT),
        "GetMultipleContentsRequest": _of_guard(bodies.KeysGuard, requestedKeys={**many(ref("ContentKey")), "minItems": 1}),
        "UpdateRepositoryConfigRequest": record({"config": ref("GarbageCollectorConfig")}),
        "GarbageCollectorConfig": _typed(repository_config.GARBAGE_COLLECTOR, _of_guard(repository_config.GarbageCollectorGuard)),
        "NamespaceUpdate": _of_guard(bodies.NamespaceUpdateGuard),
    }


def _named_reference() -> Json:
    return {"type": "object", "properties": {"name": NAME, "hash": maybe(SPEC)}, "required": ["name"]}


def _without(schema: Json, *names: str) -> Json:
    return {**schema, "properties": {name: value for name, value in schema["properties"].items() if name not in names}}


# -- answers ------------------------------------------------------------------------------------------------------------------------------


def _metadata(commit_meta: str) -> Json:
    return record(
        {
            "numCommitsAhead": maybe(NUMBER),
            "numCommitsBehind": maybe(NUMBER),
            "commitMetaOfHEAD": maybe(ref(commit_meta)),
            "commonAncestorHash": maybe(HASH),
            "numTotalCommits": maybe(NUMBER),
        }
    )


def _reference(metadata: str) -> Json:
    named = {"name": NAME, "hash": maybe(HASH)}
    kinds = [record({"type": {"const": kind}} | named, {"metadata": maybe(ref(metadata))}) for kind in ("BRANCH", "TAG")]
    return {"oneOf": [*kinds, record({"type": {"const": "DETACHED"}, "hash": HASH})]}


def _merge_answer(detail: str, more: Json | None = None) -> Json:
    return record(
        {
            "wasApplied": FLAG,
            "wasSuccessful": FLAG,
            "resultantTargetHash": maybe(HASH),
            "commonAncestor": maybe(HASH),
            "targetBranch": TEXT,
            "effectiveTargetHash": maybe(HASH),
            "expectedHash": maybe(HASH),
            "details": many(ref(detail)),
        }
        | (more or {})
    )


def _answers() -> dict[str, Json]:
    key, content = ref("ContentKey"), ref("AnyContent")
    behavior = {"enum": [str(one) for one in MergeBehavior]}
    keyed_content = record({"key": key, "content": content})
    put = {"type": {"const": "PUT"}, "key": key, "content": content}
    delete = record({"type": {"const": "DELETE"}, "key": key})
    state = record({"commitHash": HASH, "commitConsistency": TEXT, "meta": maybe(ref("CommitMeta"))})
    configs = record({}, {"configs": many(ref("GarbageCollectorConfig"))})
    return {
        "AnyContent": {"type": "object", "properties": {"type": TEXT, "id": maybe(TEXT)}, "required": ["type", "id"]},
        "CommitMeta": record(
            {
                "hash": maybe(HASH),
                "committer": maybe(TEXT),
                "authors": many(TEXT),
                "allSignedOffBy": many(TEXT),
                "message": TEXT,
                "commitTime": maybe(INSTANT),
                "authorTime": maybe(INSTANT),
            },
            {"allProperties": texts(many(TEXT)), "parentCommitHashes": many(HASH)},
        ),
        "ReferenceMetadata": _metadata("CommitMeta"),
        "Reference": _reference("ReferenceMetadata"),
        "SingleReferenceResponse": record({"reference": ref("Reference")}),
        "ReferencesResponse": _page("references", ref("Reference")),
        "LogEntry": record(
            {
                "commitMeta": ref("CommitMeta"),
                "parentCommitHash": HASH,
                "operations": maybe(many({"oneOf": [record(put | {"documentation": {"type": "null"}}), delete]})),
            }
        ),
        "LogResponse": _page("logEntries", ref("LogEntry")),
        "Entry": record({"type": TEXT, "name": key, "contentId": TEXT, "content": maybe(content)}),
        "EntriesResponse": _page("entries", ref("Entry"), effectiveReference=ref("Reference")),
        "DiffEntry": record({"key": key, "from": maybe(content), "to": maybe(content)}),
        "DiffResponse": _page("diffs", ref("DiffEntry"), effectiveFromReference=ref("Reference"), effectiveToReference=ref("Reference")),
        "ContentResponse": record({"content": content, "effectiveReference": ref("Reference")}),
        "GetMultipleContentsResponse": record({"contents": many(keyed_content), "effectiveReference": ref("Reference")}),
        "CommitResponse": record({"targetBranch": ref("Reference"), "addedContents": maybe(many(record({"key": key, "contentId": TEXT})))}),
        "Conflict": record({"conflictType": {"enum": [str(one) for one in ConflictType]}, "key": maybe(key), "message": TEXT}),
        "MergeDetail": record({"key": key, "mergeBehavior": behavior}, {"conflict": maybe(ref("Conflict"))}),
        "MergeResponse": _merge_answer("MergeDetail"),
        "ReferenceHistoryResponse": record({"reference": ref("Reference"), "current": state, "previous": many(state), "commitLogConsistency": TEXT}),
        "RepositoryConfigResponse": configs,
        "UpdateRepositoryConfigResponse": record({"previous": maybe(ref("GarbageCollectorConfig"))}),
        "NessieConfiguration": record(
            {
                "defaultBranch": TEXT,
                "minSupportedApiVersion": NUMBER,
                "maxSupportedApiVersion": NUMBER,
                "actualApiVersion": NUMBER,
                "specVersion": TEXT,
                "noAncestorHash": HASH,
            },
            {"repositoryCreationTimestamp": INSTANT, "oldestPossibleCommitTimestamp": INSTANT},
        ),
        "NessieError": _error(),
    }


def _error() -> Json:
    conflicts = record({"type": {"const": "REFERENCE_CONFLICTS"}, "conflicts": many(ref("Conflict"))})
    key = record({"type": {"const": "CONTENT_KEY"}, "contentKey": ref("ContentKey")})
    return record(
        {"status": NUMBER, "reason": TEXT, "message": TEXT, "errorCode": TEXT, "serverStackTrace": {"type": "null"}},
        {"errorDetails": {"oneOf": [conflicts, key]}},
    )


def _answers_v1() -> dict[str, Json]:
    key, content = ref("ContentKey"), ref("AnyContent")
    put = record({"type": {"const": "PUT"}, "key": key, "content": content, "expectedContent": {"type": "null"}})
    delete = record({"type": {"const": "DELETE"}, "key": key})
    meta = {
        "properties": texts(),
        "hash": maybe(HASH),
        "committer": maybe(TEXT),
        "message": TEXT,
        "commitTime": maybe(INSTANT),
        "authorTime": maybe(INSTANT),
        "author": maybe(TEXT),
        "signedOffBy": maybe(TEXT),
    }
    detail = {
        "key": key,
        "mergeBehavior": {"enum": [str(one) for one in MergeBehavior]},
        "conflictType": {"enum": ["NONE", "UNRESOLVABLE"]},
        "sourceCommits": many(TEXT),
        "targetCommits": many(TEXT),
    }
    entry = {"commitMeta": ref("CommitMetaV1"), "parentCommitHash": HASH, "operations": maybe(many({"oneOf": [put, delete]}))}
    return {
        "CommitMetaV1": record(meta),
        "ReferenceMetadataV1": _metadata("CommitMetaV1"),
        "ReferenceV1": _reference("ReferenceMetadataV1"),
        "ReferencesResponseV1": _page("references", ref("ReferenceV1")),
        "LogResponseV1": _page("logEntries", record(entry)),
        "EntriesResponseV1": _page("entries", record({"type": TEXT, "name": key})),
        "DiffResponseV1": _page("diffs", ref("DiffEntry")),
        "GetMultipleContentsResponseV1": record({"contents": many(record({"key": key, "content": content}))}),
        "MergeDetailV1": record(detail),
        "MergeResponseV1": _merge_answer("MergeDetailV1", {"sourceCommits": many(TEXT), "targetCommits": {"type": "null"}}),
        "NamespacesResponse": record({"namespaces": many(content)}),
        "NessieConfigurationV1": record({"defaultBranch": TEXT, "maxSupportedApiVersion": NUMBER}),
    }


def schemas() -> dict[str, Json]:
    """Every schema by its name."""
    return _requests() | _answers() | _answers_v1()
