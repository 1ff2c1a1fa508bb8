"""What there is to do about a finding of `nessie audit`, and findings as JSON."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any

from nessie_cli.audit.findings import Finding, FindingKind
from nessie_cli.wire.encode import encode_key

_FROM_FILE = "`nessie content put {key} --from-metadata {where}` takes every id from the file"
_BACK = "put the file back, or go back to a state whose files are there: `nessie content history {key}`, then `nessie restore {key} --source COMMIT`"
ADVICE: Mapping[FindingKind, str] = {
    FindingKind.METADATA_MISSING: _BACK,
    FindingKind.METADATA_UNREADABLE: _BACK,
    FindingKind.WRONG_TYPE: "`nessie content replace {key} --from-metadata {where}` makes a content of the file's type",
    FindingKind.ID_MISSING: _FROM_FILE,
    FindingKind.ID_DIFFERS: _FROM_FILE,
    FindingKind.MANIFEST_LIST_MISSING: _BACK,
    FindingKind.MANIFEST_LIST_UNREADABLE: _BACK,
    FindingKind.MANIFEST_MISSING: _BACK,
    FindingKind.MANIFEST_DAMAGED: _BACK,
    FindingKind.FILE_MISSING: _BACK,
    FindingKind.UUID_SHARED: "let one key have the table, and give the others tables of their own, or `nessie content delete {key}`",
    FindingKind.UNREACHABLE: "look at the address and the credentials of this file system, and audit again",
}
"""The way out of each kind, with the key and the file of the finding."""


def advice(finding: Finding) -> str:
    """What to do about a finding, with command lines that can be run."""
    return ADVICE[finding.kind].format(key=shlex.quote(str(finding.key)), where=shlex.quote(finding.where))


def encode_finding(finding: Finding) -> dict[str, Any]:
    """A finding as JSON."""
    return {
        "kind": finding.kind.value,
        "key": encode_key(finding.key),
        "contentId": finding.content_id,
        "where": finding.where,
        "message": finding.message,
        "advice": advice(finding),
    }
