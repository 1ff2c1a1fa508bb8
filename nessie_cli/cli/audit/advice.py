"""How to repair each kind of finding of `nessie audit`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from nessie_cli.audit.findings import AuditFinding, FindingKind
from nessie_cli.cli.app.global_options import GlobalOptions, with_carried

_FROM_FILE = "`nessie content put {key} --from-metadata {where}` reads all ids from the file"
_BACK = (
    "restore the file, or restore an earlier content whose files exist: `nessie content history"
    " {key}`, then `nessie restore {key} --at COMMIT`"
)
_OF_OTHER_TYPE = (
    "`nessie content replace {key} --from-metadata {where}` creates a content of the file's type"
)
_SHARED = (
    "keep the table at one key, and create separate tables for the others, or `nessie content"
    " delete {key}`"
)
_UNREACHABLE = "check the address and the credentials of this file system, and run the audit again"
ADVICE: Mapping[FindingKind, str] = {
    FindingKind.METADATA_MISSING: _BACK,
    FindingKind.METADATA_UNREADABLE: _BACK,
    FindingKind.WRONG_TYPE: _OF_OTHER_TYPE,
    FindingKind.ID_MISSING: _FROM_FILE,
    FindingKind.ID_DIFFERS: _FROM_FILE,
    FindingKind.MANIFEST_LIST_MISSING: _BACK,
    FindingKind.MANIFEST_LIST_UNREADABLE: _BACK,
    FindingKind.MANIFEST_MISSING: _BACK,
    FindingKind.MANIFEST_DAMAGED: _BACK,
    FindingKind.FILE_MISSING: _BACK,
    FindingKind.UUID_SHARED: _SHARED,
    FindingKind.UNREACHABLE: _UNREACHABLE,
}
"""The advice for each kind; `{key}` and `{where}` stand for those of the finding."""


def advice(finding: AuditFinding, options: GlobalOptions) -> str:
    """Returns how to repair a finding, with command lines that can be run."""
    key, where = shlex.quote(str(finding.key)), shlex.quote(finding.where)
    return with_carried(ADVICE[finding.kind].format(key=key, where=where), options)
