"""The hooks of an invocation, as the guard of its repository.

`pre-commit` and `pre-merge` read the change as JSON from stdin, and refuse it by a nonzero exit
code. `post-commit` and `post-merge` read the change and its result; their failure has no effect on
it. The hooks of merges also run for transplants. No hook runs for a dry run, or for changes that a
hook makes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from nessie_cli.cli.hooks.documents import Document, commit_document, merge_document
from nessie_cli.cli.hooks.programs import HookFailed, Programs
from nessie_cli.errors import HookRefused
from nessie_cli.repository.changes import Commit, Merge, Transplant
from nessie_cli.wire.documents import DetailedMerge
from nessie_cli.wire.references import CommitOutcome
from nessie_cli.workspace import environment as env
from nessie_cli.workspace.trust import TRUSTED

if TYPE_CHECKING:
    from nessie_cli.repository.draft import Draft
    from nessie_cli.workspace.folder import Workspace

PRE_COMMIT, POST_COMMIT = "pre-commit", "post-commit"
PRE_MERGE, POST_MERGE = "pre-merge", "post-merge"


class Hooks:
    """Runs the hooks of a workspace.

    Implements `Guard`. Without `verify`, hooks cannot refuse a change.
    """

    def __init__(self, programs: Programs, *, verify: bool) -> None:
        self._programs = programs
        self._verify = verify
        self._document: Document = {}
        self._finished: list[tuple[str, str, Document]] = []

    def check(self, draft: Draft[Any]) -> None:
        """Runs the hook before a change.

        Raises `HookRefused` if it refuses, or if there is a hook but the workspace is not trusted.
        """
        change = draft.change
        if isinstance(change, Commit):
            self._need_trust(PRE_COMMIT, POST_COMMIT)
            name, self._document = PRE_COMMIT, commit_document(draft, change)
        elif isinstance(change, Merge | Transplant):
            self._need_trust(PRE_MERGE, POST_MERGE)
            name, self._document = PRE_MERGE, merge_document(draft, change)
        else:
            return
        if not self._verify:
            return
        try:
            self._programs.run(name, draft.references[0].name, self._document)
        except HookFailed as failure:
            if not failure.has_run:
                raise HookRefused(str(failure)) from None
            raise HookRefused(
                f"the hook {name} refuses: {failure}; nothing was written",
                hint="--no-verify skips the hook",
            ) from None

    def done(self, draft: Draft[Any], answer: Any) -> None:
        """Records a change for the hook that runs after it."""
        result: CommitOutcome | DetailedMerge
        if isinstance(draft.change, Commit):
            hook, result = POST_COMMIT, CommitOutcome.of(answer)
        elif isinstance(draft.change, Merge | Transplant):
            hook, result = POST_MERGE, DetailedMerge.of(answer)
        else:
            return
        branch = draft.references[0].name
        self._finished.append((hook, branch, self._document | {"result": result}))

    def run_after(self) -> None:
        """Runs the hooks after the changes, once each."""
        while self._finished:
            name, branch, document = self._finished.pop(0)
            try:
                self._programs.run(name, branch, document)
            except HookFailed as failure:
                reason = f"the hook {name} failed: {failure}" if failure.has_run else str(failure)
                self._programs.print_line(f"nessie: {reason}; the change is kept")

    def _need_trust(self, *names: str) -> None:
        """Raises `HookRefused` if one of these hooks exists and the workspace is not trusted."""
        workspace = self._programs.workspace
        if workspace.trust == TRUSTED:
            return
        present = [name for name in names if self._programs.find(name)]
        if present:
            hooks = f"hook{'s'[: len(present) - 1]} {' and '.join(present)}"
            verb = "is" if len(present) == 1 else "are"
            raise workspace.refusal(f"its {hooks} {verb} not run, and nothing was written")


def hooks_of(
    workspace: Workspace,
    store: str,
    *,
    verify: bool,
    print_line: Callable[[str], None],
    pause: Callable[[], AbstractContextManager[None]],
) -> Hooks | None:
    """Returns the hooks of a workspace for a store, or None if this process runs within a hook."""
    if env.variable(env.HOOK):
        return None
    environment = {**env.everything(), env.STORE: store}
    return Hooks(Programs(workspace, environment, print_line, pause), verify=verify)
