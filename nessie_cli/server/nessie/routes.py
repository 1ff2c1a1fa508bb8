"""The endpoints of Nessie's REST API, v2 and v1, from which OpenAPI is generated."""

from __future__ import annotations

from nessie_cli.server.auth.rules import LIST_COMMIT_LOG, READ_ENTRIES
from nessie_cli.server.nessie.v1 import namespaces as v1_namespaces
from nessie_cli.server.nessie.v1 import reading as v1_reading
from nessie_cli.server.nessie.v1 import references as v1_references
from nessie_cli.server.nessie.v1 import writing as v1_writing
from nessie_cli.server.nessie.v2 import config as v2_config
from nessie_cli.server.nessie.v2 import reading as v2_reading
from nessie_cli.server.nessie.v2 import references as v2_references
from nessie_cli.server.nessie.v2 import writing as v2_writing
from nessie_cli.server.pipeline.call import Answer, Call
from nessie_cli.server.pipeline.table import MERGES, WRITES, Doc, Endpoint, Param
from nessie_cli.wire import rest
from nessie_cli.wire.large_json import MOST_VALUES

_FETCH = Param("fetch", "fetch", "MINIMAL, or ALL for everything that is known")
_FILTER = Param("filter", "string", "return only records for which this CEL expression is true")
_MOST = Param("max-records", "integer", "the maximum number of records in a page")
_TOKEN = Param("page-token", "string", "the token from the previous page")
_KEYS = (
    Param("key", "key", "only this key; may be repeated", many=True),
    Param("min-key", "key", "only this key and greater ones"),
    Param("max-key", "key", "only this key and smaller ones"),
    Param("prefix-key", "key", "only this key and those below it"),
)
_CONTENT_FLAGS = (
    Param("with-doc", "boolean", "ignored: contents have no documentation"),
    Param("for-write", "boolean", "ignored"),
)
_TYPE = Param("type", "string", "branch or tag")
_V1_MOST = Param("maxRecords", "integer", _MOST.meaning)
_V1_TOKEN = Param("pageToken", "string", _TOKEN.meaning)
_EXPECTED = Param(
    "expectedHash", "hash", "the hash of the reference when the client read it", required=True
)
_ON_REF = Param(
    "hashOnRef",
    "string",
    "the commit to read at, with relative parts such as ~1; default: HEAD",
)


def _v1_config(call: Call) -> Answer:
    """Returns the configuration for old clients."""
    return Answer(rest.NessieConfigurationV1(call.repository.config().default_branch, 2))


V2 = (
    Endpoint(
        "GET",
        "config",
        v2_config.get_config,
        cacheable=True,
        doc=Doc("Configuration of the server", "NessieConfiguration"),
    ),
    Endpoint(
        "GET",
        "config/repository",
        v2_config.get_repository_config,
        cacheable=True,
        doc=Doc(
            "Stored configuration of the repository",
            "RepositoryConfigResponse",
            (
                Param(
                    "type", "string", "a type of configuration object; may be repeated", many=True
                ),
            ),
        ),
    ),
    Endpoint(
        "POST",
        "config/repository",
        v2_config.post_repository_config,
        WRITES,
        body="UpdateRepositoryConfigRequest",
        doc=Doc("Store a configuration object", "UpdateRepositoryConfigResponse"),
    ),
    Endpoint(
        "GET",
        "trees",
        v2_references.list_references,
        cacheable=True,
        doc=Doc("References", "ReferencesResponse", (_FETCH, _FILTER, _MOST, _TOKEN)),
    ),
    Endpoint(
        "POST",
        "trees",
        v2_references.create_reference,
        WRITES,
        body="ReferenceRequest",
        doc=Doc(
            "Create a branch or tag",
            "SingleReferenceResponse",
            (
                Param("name", "string", "its name", required=True),
                Param("type", "string", "branch or tag", required=True),
            ),
        ),
    ),
    Endpoint(
        "GET",
        "trees/{ref}",
        v2_references.get_reference,
        cacheable=True,
        doc=Doc("One reference", "SingleReferenceResponse", (_FETCH,)),
    ),
    Endpoint(
        "PUT",
        "trees/{ref}",
        v2_references.assign_reference,
        WRITES,
        body="ReferenceRequest",
        doc=Doc("Assign a reference", "SingleReferenceResponse", (_TYPE,)),
    ),
    Endpoint(
        "DELETE",
        "trees/{ref}",
        v2_references.delete_reference,
        WRITES,
        doc=Doc("Delete a reference", "SingleReferenceResponse", (_TYPE,)),
    ),
    Endpoint(
        "GET",
        "trees/{ref}/recent-changes",
        v2_reading.get_recent_changes,
        doc=Doc(
            "Recent positions of a reference",
            "ReferenceHistoryResponse",
            (Param("scan-commits", "integer", "the number of commits to search"),),
        ),
    ),
    Endpoint(
        "GET",
        "trees/{ref}/entries",
        v2_reading.get_entries,
        cacheable=True,
        reads=("ref",),
        doc=Doc(
            "Keys at a commit",
            "EntriesResponse",
            (
                *_KEYS,
                _FILTER,
                Param("content", "boolean", "also return the contents"),
                _MOST,
                _TOKEN,
            ),
        ),
        right=READ_ENTRIES,
    ),
    Endpoint(
        "GET",
        "trees/{ref}/history",
        v2_reading.get_history,
        cacheable=True,
        reads=("ref",),
        doc=Doc(
            "Commits, newest first",
            "LogResponse",
            (
                Param("limit-hash", "string", "the oldest commit, included"),
                _FILTER,
                _FETCH,
                _MOST,
                _TOKEN,
            ),
        ),
        right=LIST_COMMIT_LOG,
    ),
    Endpoint(
        "GET",
        "trees/{from}/diff/{to}",
        v2_reading.get_diff,
        cacheable=True,
        reads=("from", "to"),
        doc=Doc(
            "Differences between two commits", "DiffResponse", (*_KEYS, _FILTER, _MOST, _TOKEN)
        ),
        right=READ_ENTRIES,
    ),
    Endpoint(
        "GET",
        "trees/{ref}/contents/{key}",
        v2_reading.get_content,
        cacheable=True,
        reads=("ref",),
        is_short=True,
        doc=Doc("One content", "ContentResponse", _CONTENT_FLAGS),
    ),
    Endpoint(
        "GET",
        "trees/{ref}/contents",
        v2_reading.get_contents,
        cacheable=True,
        reads=("ref",),
        doc=Doc("Several contents", "GetMultipleContentsResponse", (_KEYS[0], *_CONTENT_FLAGS)),
    ),
    Endpoint(
        "POST",
        "trees/{ref}/contents",
        v2_reading.post_contents,
        body="GetMultipleContentsRequest",
        doc=Doc("Several contents", "GetMultipleContentsResponse", _CONTENT_FLAGS),
    ),
    Endpoint(
        "POST",
        "trees/{ref}/history/commit",
        v2_writing.post_commit,
        WRITES,
        body="Operations",
        most_values=MOST_VALUES,
        doc=Doc("Commit operations", "CommitResponse"),
    ),
    Endpoint(
        "POST",
        "trees/{ref}/history/merge",
        v2_writing.post_merge,
        MERGES,
        body="Merge",
        doc=Doc("Merge into a branch", "MergeResponse"),
    ),
    Endpoint(
        "POST",
        "trees/{ref}/history/transplant",
        v2_writing.post_transplant,
        MERGES,
        body="Transplant",
        doc=Doc("Transplant commits onto a branch", "MergeResponse"),
    ),
)
"""Below `/api/v2`."""

V1 = (
    Endpoint(
        "GET",
        "config",
        _v1_config,
        cacheable=True,
        doc=Doc("Configuration of the server", "NessieConfigurationV1"),
    ),
    Endpoint(
        "GET",
        "trees",
        v1_references.list_references,
        cacheable=True,
        doc=Doc("References", "ReferencesResponseV1", (_V1_MOST, _V1_TOKEN, _FETCH, _FILTER)),
    ),
    Endpoint(
        "GET",
        "trees/tree",
        v1_references.get_default_branch,
        cacheable=True,
        doc=Doc("The default branch", "ReferenceV1"),
    ),
    Endpoint(
        "POST",
        "trees/tree",
        v1_references.create_reference,
        WRITES,
        body="ReferenceRequest",
        doc=Doc(
            "Create a branch or tag",
            "ReferenceV1",
            (Param("sourceRefName", "string", "the reference that the commit is on"),),
        ),
    ),
    Endpoint(
        "GET",
        "trees/tree/{ref}",
        v1_references.get_reference,
        cacheable=True,
        doc=Doc("One reference", "ReferenceV1", (_FETCH,)),
    ),
    Endpoint(
        "GET",
        "trees/tree/{ref}/entries",
        v1_reading.get_entries,
        cacheable=True,
        doc=Doc(
            "Keys at a commit",
            "EntriesResponseV1",
            (
                _V1_MOST,
                _V1_TOKEN,
                _ON_REF,
                Param("namespaceDepth", "integer", "shorten keys to this number of elements"),
                _FILTER,
            ),
        ),
        right=READ_ENTRIES,
    ),
    Endpoint(
        "GET",
        "trees/tree/{ref}/log",
        v1_reading.get_log,
        cacheable=True,
        doc=Doc(
            "Commits, newest first",
            "LogResponseV1",
            (
                _V1_MOST,
                _V1_TOKEN,
                Param("startHash", "hash", "the oldest commit, included"),
                Param("endHash", "string", "the newest commit"),
                _FILTER,
                _FETCH,
            ),
        ),
        right=LIST_COMMIT_LOG,
    ),
    Endpoint(
        "PUT",
        "trees/{kind}/{ref}",
        v1_references.assign_reference,
        WRITES,
        body="ReferenceRequest",
        doc=Doc("Assign a reference", "", (_EXPECTED,), status=204),
    ),
    Endpoint(
        "DELETE",
        "trees/{kind}/{ref}",
        v1_references.delete_reference,
        WRITES,
        doc=Doc("Delete a reference", "", (_EXPECTED,), status=204),
    ),
    Endpoint(
        "POST",
        "trees/branch/{ref}/commit",
        v1_writing.post_commit,
        WRITES,
        body="Operations",
        most_values=MOST_VALUES,
        doc=Doc("Commit operations", "ReferenceV1", (_EXPECTED,)),
    ),
    Endpoint(
        "POST",
        "trees/branch/{ref}/merge",
        v1_writing.post_merge,
        MERGES,
        body="Merge",
        doc=Doc("Merge into a branch", "MergeResponseV1", (_EXPECTED,)),
    ),
    Endpoint(
        "POST",
        "trees/branch/{ref}/transplant",
        v1_writing.post_transplant,
        MERGES,
        body="Transplant",
        doc=Doc(
            "Transplant commits onto a branch",
            "MergeResponseV1",
            (
                _EXPECTED,
                Param("message", "string", "the message, if a single commit is transplanted"),
            ),
        ),
    ),
    Endpoint(
        "GET",
        "contents/{key}",
        v1_reading.get_content,
        cacheable=True,
        doc=Doc(
            "One content",
            "Content",
            (Param("ref", "string", "the reference; default: the default branch"), _ON_REF),
        ),
    ),
    Endpoint(
        "POST",
        "contents",
        v1_reading.post_contents,
        body="GetMultipleContentsRequest",
        doc=Doc(
            "Several contents",
            "GetMultipleContentsResponseV1",
            (Param("ref", "string", "the reference; default: the default branch"), _ON_REF),
        ),
    ),
    Endpoint(
        "GET",
        "diffs/{range}",
        v1_reading.get_diff,
        cacheable=True,
        doc=Doc("Differences between two commits", "DiffResponseV1"),
        right=READ_ENTRIES,
    ),
    Endpoint(
        "PUT",
        "namespaces/namespace/{ref}/{name}",
        v1_namespaces.put_namespace,
        WRITES,
        body="Content",
        doc=Doc("Create a namespace", "Content"),
    ),
    Endpoint(
        "GET",
        "namespaces/namespace/{ref}/{name}",
        v1_namespaces.get_namespace,
        cacheable=True,
        doc=Doc("One namespace", "Content", (_ON_REF,)),
    ),
    Endpoint(
        "DELETE",
        "namespaces/namespace/{ref}/{name}",
        v1_namespaces.delete_namespace,
        WRITES,
        doc=Doc("Delete a namespace", status=204),
    ),
    Endpoint(
        "POST",
        "namespaces/namespace/{ref}/{name}",
        v1_namespaces.post_namespace,
        WRITES,
        body="NamespaceUpdate",
        doc=Doc("Change the properties of a namespace", status=204),
    ),
    Endpoint(
        "GET",
        "namespaces/{ref}",
        v1_namespaces.get_namespaces,
        cacheable=True,
        doc=Doc(
            "Namespaces",
            "NamespacesResponse",
            (Param("name", "key", "this namespace and those below it"), _ON_REF),
        ),
    ),
)
"""Below `/api/v1`."""

ROUTES = (
    *(endpoint._replace(path=f"/api/v2/{endpoint.path}") for endpoint in V2),
    *(endpoint._replace(path=f"/api/v1/{endpoint.path}") for endpoint in V1),
)
