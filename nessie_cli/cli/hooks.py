"""Hooks of a workspace: programs in `.nessie/hooks/` that are asked before a commit or merge is made, and told when it is.

`pre-commit` and `pre-merge` get what would happen as JSON on stdin; one that does not end with 0 refuses it. `post-commit` and `post-merge` get the
same and the result; how they end changes nothing. A transplant brings changes from elsewhere as a merge does, so the hooks of merges run. Nothing
asks or tells for a dry run, or for what a hook does itself. This module is loaded only where the folder of hooks exists.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from nessie_cli.errors import NotAllowed
from nessie_cli.repository.changes import Commit, Merge, Transplant
from nessie_cli.workspace.trust import TRUSTED

if TYPE_CHECKING:
    from nessie_cli.model import Content, ContentKey, Operation
    from nessie_cli.repository.draft import Draft
    from nessie_cli.workspace.folder import Workspace

PRE_COMMIT, POST_COMMIT = "pre-commit", "post-commit"
PRE_MERGE, POST_MERGE = "pre-merge", "post-merge"
LAST_WORDS = 2.0
"""Seconds that an interrupted hook has to end by itself."""

Document = dict[str, Any]


class Hooks:
    """The hooks of one invocation: a `Guard` that asks the programs of a workspace.

    Without `verify` the hooks before a change are not asked. `print_line` writes remarks to stderr. `pause` leaves the
    terminal to the hook while it runs.
    """

    def __init__(
        self,
        workspace: Workspace,
        environment: Mapping[str, str],
        print_line: Callable[[str], None],
        pause: Callable[[], AbstractContextManager[None]],
        *,
        verify: bool,
    ) -> None:
        self._workspace = workspace
        self._environment = environment
        self._print_line = print_line
        self._pause = pause
        self._verify = verify
        self._document: Document = {}
        self._done: list[tuple[str, str, Document]] = []

    def check(self, draft: Draft[Any]) -> None:
        """Ask the hook about a commit, merge or transplant; raises `NotAllowed` if it refuses, or if the workspace is not trusted."""
        change = draft.change
        if isinstance(change, Commit):
            self._need_trust(PRE_COMMIT, POST_COMMIT)
            name, self._document = PRE_COMMIT, commit_document(draft, change)
        elif isinstance(change, Merge | Transplant):
            self._need_trust(PRE_MERGE, POST_MERGE)
            name, self._document = PRE_MERGE, merge_document(draft, change)
        else:
            return
        if self._verify:
            self.ask(name, draft.references[0].name, self._document)

    def _need_trust(self, *names: str) -> None:
        """Raise `NotAllowed` if one of these hooks would run and the workspace is not trusted. A hook is never skipped for that."""
        if self._workspace.trust == TRUSTED:
            return
        found = [name for name in names if self.find(name)]
        if found:
            raise self._workspace.refusal(f"its hook {' and '.join(found)} is not run, and nothing was written")

    def done(self, draft: Draft[Any], answer: Any) -> None:
        """Keep what the hooks afterwards get."""
        from nessie_cli.wire.facts import commit_with_facts, merge_with_facts

        branch = draft.references[0].name
        if isinstance(draft.change, Commit):
            self._done.append((POST_COMMIT, branch, self._document | {"result": commit_with_facts(answer)}))
        elif isinstance(draft.change, Merge | Transplant):
            self._done.append((POST_MERGE, branch, self._document | {"result": merge_with_facts(answer)}))

    def run_after(self) -> None:
        """Run the hooks after what was committed, each once."""
        while self._done:
            self.tell(*self._done.pop(0))

    def find(self, name: str) -> Path | None:
        """The program of a hook; None, with a remark, for one that cannot be executed."""
        path = self._workspace.hooks_path / name
        if not path.is_file():
            return None
        if os.access(path, os.X_OK):
            return path
        shown = path.relative_to(self._workspace.root)
        self._print_line(f"hint: the hook {shown} is ignored because it is not executable; `chmod +x {shown}`")
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
            self._print_line(f"nessie: {path}: the hook cannot be run: {error.strerror}; what was done stays")
            return
        if outcome:
            self._print_line(f"nessie: the hook {name} failed: {_ending(outcome)}; what was done stays")

    def _run(self, path: Path, branch: str, document: Document) -> int:
        from nessie_cli.render.terminal import json_text
        from nessie_cli.workspace.environment import HOOK, REFERENCE

        given = json_text({"hook": path.name, **document}) + "\n"
        environment = {**self._environment, HOOK: path.name, REFERENCE: branch}
        with suppress(OSError):
            sys.stdout.flush()
        with self._pause():
            return self._run_program(path, given, environment)

    def _run_program(self, path: Path, given: str, environment: Mapping[str, str]) -> int:
        import subprocess

        # An interrupt while the hook is being started would leave it behind with nobody to end it. A handler is not handed down to it.
        noted: list[int] = []
        before = signal.signal(signal.SIGINT, lambda number, _frame: noted.append(number))
        try:
            # stdout is the result of the command, so what a hook prints goes to stderr. The hook is the user's own program.
            with subprocess.Popen([path], stdin=subprocess.PIPE, stdout=2, cwd=self._workspace.root, env=environment) as process:  # noqa: S603
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


def commit_document(draft: Draft[Any], change: Commit) -> Document:
    """What a hook gets about a commit: its operations, with each content before and after."""
    from nessie_cli.wire.encode import encode_commit_meta

    head, operations = draft.references[0].before, list(change.operations)
    before = draft.view.contents(f"@{head}", dict.fromkeys(operation.key for operation in operations))
    return {
        "operation": "commit",
        "branch": draft.references[0].name,
        "hash": head,
        "expectedHash": change.expected_hash,
        "commitMeta": encode_commit_meta(change.meta),
        "operations": [_operation(operation, before) for operation in operations],
    }


def _operation(operation: Operation, states: Mapping[ContentKey, Content]) -> Document:
    from nessie_cli.model import Delete, Put
    from nessie_cli.wire.encode import encode_operation, encode_optional_content

    before = states.get(operation.key)
    after = operation.content if isinstance(operation, Put) else None if isinstance(operation, Delete) else before
    return encode_operation(operation) | {"before": encode_optional_content(before), "after": encode_optional_content(after)}


def merge_document(draft: Draft[Any], change: Merge | Transplant) -> Document:
    """What a hook gets about a merge or transplant: its source, and what would happen to each key."""
    from nessie_cli.wire.encode import encode_commit_meta, encode_reference
    from nessie_cli.wire.facts import merge_with_facts

    view, would, options = draft.view, draft.answer(), change.options
    if isinstance(change, Merge):
        source = view.resolve(change.source)
        about: Document = {"operation": "merge", "source": encode_reference(structs.replace(source, hash=draft.sources[0]))}
    else:
        metas = [view.commit_at(f"@{commit}").meta for commit in change.commits]
        about = {"operation": "transplant", "commits": [encode_commit_meta(meta) for meta in metas]}
    return about | {
        "branch": would.target_branch,
        "hash": would.effective_target_hash,
        "expectedHash": options.expected_hash,
        "commonAncestor": would.common_ancestor,
        "commitMeta": encode_commit_meta(options.meta) if options.meta and options.meta.message else None,
        "details": merge_with_facts(would)["details"],
    }


def hooks_of(
    workspace: Workspace,
    store: str,
    *,
    verify: bool,
    print_line: Callable[[str], None],
    pause: Callable[[], AbstractContextManager[None]],
) -> Hooks | None:
    """The hooks of a workspace for a store; None within a hook."""
    from nessie_cli.workspace import environment as env

    if env.variable(env.HOOK):
        return None
    environment = {**env.everything(), env.STORE: store}
    return Hooks(workspace, environment, print_line, pause, verify=verify)
