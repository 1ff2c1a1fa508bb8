"""Hooks of a workspace: programs in `.nessie/hooks/` that are asked before a commit or merge is made, and told when it is.

`pre-commit` and `pre-merge` get what would happen as JSON on stdin; one that does not end with 0 refuses it. `post-commit` and `post-merge` get the
same and the result; how they end changes nothing. A transplant brings changes from elsewhere as a merge does, so the hooks of merges run. Nothing
asks or tells for a dry run, or for what a hook does itself. This module is loaded only where the folder of hooks exists.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from msgspec import structs

from nessie_cli.commitspec import CommitSpec
from nessie_cli.errors import NotAllowed
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import MergeOptions, Revision

if TYPE_CHECKING:
    from nessie_cli.model import CommitMeta, CommitResult, Content, ContentKey, MergeResult, Operation
    from nessie_cli.workspace.folder import Workspace

PRE_COMMIT, POST_COMMIT = "pre-commit", "post-commit"
PRE_MERGE, POST_MERGE = "pre-merge", "post-merge"
LAST_WORDS = 2.0
"""Seconds that an interrupted hook has to end by itself."""

Document = dict[str, Any]


class Hooks(NamedTuple):
    """The hooks of one invocation: of which workspace, in which environment, whether the ones before are asked, and where remarks go.

    `rest` lets go of the terminal, which is the hook's while it runs.
    """

    workspace: Workspace
    environment: Mapping[str, str]
    verify: bool
    print_line: Callable[[str], None]
    rest: Callable[[], None]

    def find(self, name: str) -> Path | None:
        """The program of a hook; None, with a remark, for one that cannot be executed."""
        path = self.workspace.hooks_path / name
        if not path.is_file():
            return None
        if os.access(path, os.X_OK):
            return path
        shown = path.relative_to(self.workspace.root)
        self.print_line(f"hint: the hook {shown} is ignored because it is not executable; `chmod +x {shown}`")
        return None

    def ask(self, name: str, branch: str, document: Document) -> None:
        """Run a hook that may refuse; raises `NotAllowed` when it does."""
        path = self.find(name)
        if path is None:
            return
        try:
            outcome = self._run(path, branch, document)
        except OSError as error:
            raise NotAllowed(f"{path}: the hook cannot be run: {error.strerror}; a script begins with a line such as #!/bin/sh") from None
        if outcome:
            raise NotAllowed(f"the hook {name} refuses: {_ending(outcome)}; nothing was written, and --no-verify goes past it")

    def tell(self, name: str, branch: str, document: Document) -> None:
        """Run a hook that has no say."""
        path = self.find(name)
        if path is None:
            return
        try:
            outcome = self._run(path, branch, document)
        except OSError as error:
            self.print_line(f"nessie: {path}: the hook cannot be run: {error.strerror}; what was done stays")
            return
        if outcome:
            self.print_line(f"nessie: the hook {name} failed: {_ending(outcome)}; what was done stays")

    def _run(self, path: Path, branch: str, document: Document) -> int:
        import subprocess

        from nessie_cli.render.terminal import json_text
        from nessie_cli.workspace.environment import HOOK, REFERENCE

        given = json_text({"hook": path.name, **document}) + "\n"
        environment = {**self.environment, HOOK: path.name, REFERENCE: branch}
        with suppress(OSError):
            sys.stdout.flush()
        self.rest()
        # An interrupt while the hook is being started would leave it behind with nobody to end it. A handler is not handed down to it.
        noted: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, _frame: noted.append(number))
        try:
            # stdout is the result of the command, so what a hook prints goes to stderr. The hook is the user's own program.
            with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=2, cwd=self.workspace.root, env=environment) as process:  # noqa: S603
                try:
                    signal.signal(signal.SIGINT, before)
                    if noted:
                        signal.raise_signal(signal.SIGINT)
                    process.communicate(given.encode())
                except BaseException:
                    _end(process)
                    raise
            return process.returncode
        finally:
            signal.signal(signal.SIGINT, before)


def _end(process: Any) -> None:
    """End a hook that is not waited for any longer; the terminal has told it already where the interruption came from there."""
    import subprocess

    process.terminate()
    try:
        process.wait(LAST_WORDS)
    except subprocess.TimeoutExpired:
        process.kill()


def _ending(code: int) -> str:
    return f"exit code {code}" if code > 0 else f"ended by {signal.Signals(-code).name}"


class HookedRepository:
    """A repository that asks and tells the hooks of a workspace about commits, merges and transplants. All else is the repository's own."""

    def __init__(self, repository: Repository, hooks: Hooks) -> None:
        self._repository = repository
        self._hooks = hooks
        self._done: list[tuple[str, str, Document]] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._repository, name)

    def commit(
        self,
        branch: str,
        operations: Iterable[Operation],
        meta: CommitMeta,
        *,
        expected_hash: str | None = None,
        request_id: str | None = None,
        dry_run: bool = False,
    ) -> CommitResult:
        """As the repository's; what cannot be committed at all is found before a hook is asked."""
        from nessie_cli.wire.facts import commit_with_facts

        def act(*, dry_run: bool) -> CommitResult:
            return self._repository.commit(branch, operations, meta, expected_hash=expected_hash, request_id=request_id, dry_run=dry_run)

        if dry_run or (request_id and self._repository.find_request(request_id, branch=branch)):
            return act(dry_run=dry_run)
        operations = list(operations)
        act(dry_run=True)
        document = self._commit_document(branch, operations, meta, expected_hash)
        if self._hooks.verify:
            self._hooks.ask(PRE_COMMIT, branch, document)
        result = act(dry_run=False)
        self._done.append((POST_COMMIT, branch, document | {"result": commit_with_facts(result)}))
        return result

    def merge(self, branch: str, source: Revision, options: MergeOptions) -> MergeResult:
        """As the repository's. The source stays what the hook has seen, also where it moves on meanwhile."""
        from nessie_cli.wire.encode import encode_reference

        found = self._repository.resolve(source)
        seen = CommitSpec(found.name or None, found.hash)
        return self._combine(
            branch,
            options,
            lambda options: self._repository.merge(branch, seen, options),
            lambda: {"operation": "merge", "source": encode_reference(found)},
        )

    def transplant(self, branch: str, commits: Sequence[str], options: MergeOptions) -> MergeResult:
        """As the repository's."""
        from nessie_cli.wire.encode import encode_commit_meta

        return self._combine(
            branch,
            options,
            lambda options: self._repository.transplant(branch, commits, options),
            lambda: {"operation": "transplant", "commits": [encode_commit_meta(self._repository.commit_at(commit).meta) for commit in commits]},
        )

    def _combine(self, branch: str, options: MergeOptions, act: Callable[[MergeOptions], MergeResult], about: Callable[[], Document]) -> MergeResult:
        from nessie_cli.wire.facts import merge_with_facts

        if options.dry_run:
            return act(options)
        would = act(structs.replace(options, dry_run=True))
        if not would.details:
            return act(options)
        document = about() | _merge_document(would, options)
        if self._hooks.verify:
            self._hooks.ask(PRE_MERGE, branch, document)
        result = act(options)
        if result.applied:
            self._done.append((POST_MERGE, branch, document | {"result": merge_with_facts(result)}))
        return result

    def _commit_document(self, branch: str, operations: Sequence[Operation], meta: CommitMeta, expected_hash: str | None) -> Document:
        from nessie_cli.wire.encode import encode_commit_meta

        head = self._repository.reference(branch).hash
        before = self._repository.contents(head, dict.fromkeys(operation.key for operation in operations))
        return {
            "operation": "commit",
            "branch": branch,
            "hash": head,
            "expectedHash": expected_hash,
            "commitMeta": encode_commit_meta(meta),
            "operations": [_operation(operation, before) for operation in operations],
        }

    def close(self) -> None:
        """Tell the hooks what was done, now that the workspace is not locked any longer, and let go of the repository."""
        try:
            for name, branch, document in self._done:
                self._hooks.tell(name, branch, document)
        finally:
            self._repository.close()


def _operation(operation: Operation, states: Mapping[ContentKey, Content]) -> Document:
    from nessie_cli.model import Delete, Put
    from nessie_cli.wire.encode import encode_operation, encode_optional_content

    before = states.get(operation.key)
    after = operation.content if isinstance(operation, Put) else None if isinstance(operation, Delete) else before
    return encode_operation(operation) | {"before": encode_optional_content(before), "after": encode_optional_content(after)}


def _merge_document(would: MergeResult, options: MergeOptions) -> Document:
    from nessie_cli.wire.encode import encode_commit_meta
    from nessie_cli.wire.facts import merge_with_facts

    details = merge_with_facts(would)["details"]
    return {
        "branch": would.target_branch,
        "hash": would.effective_target_hash,
        "expectedHash": options.expected_hash,
        "commonAncestor": would.common_ancestor,
        "commitMeta": encode_commit_meta(options.meta) if options.meta and options.meta.message else None,
        "details": details,
    }


def with_hooks(repository: Repository, workspace: Workspace, *, verify: bool, tell: Callable[[str], None], rest: Callable[[], None]) -> Repository:
    """A repository that runs the hooks of a workspace; the repository itself within a hook."""
    from nessie_cli.workspace import environment as env

    if env.variable(env.HOOK):
        return repository
    environment = {**env.everything(), env.STORE: repository.url}
    return cast("Repository", HookedRepository(repository, Hooks(workspace, environment, verify, tell, rest)))
