"""One invocation: its options, and the workspace, repository, revision, time and output."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING

from nessie_cli.cli.app.global_options import GlobalOptions
from nessie_cli.errors import InvalidInput

if TYPE_CHECKING:
    import typer

    from nessie_cli.cli.app.output import Output
    from nessie_cli.cli.app.progress import Work
    from nessie_cli.cli.app.store_choice import StoreChoice
    from nessie_cli.cli.hooks.guard import Hooks
    from nessie_cli.render.busy import Busy
    from nessie_cli.repository.base import Repository
    from nessie_cli.revisions import Revision, RevisionRange
    from nessie_cli.workspace.batch import BatchFile
    from nessie_cli.workspace.folder import Workspace


class Invocation:
    """The context of one command line. Everything is opened or read on first use."""

    def __init__(self, argv: Sequence[str]) -> None:
        self.argv = tuple(argv)
        self.options = GlobalOptions()
        self._repository: Repository | None = None
        self._hooks: Hooks | None = None

    @staticmethod
    def of(ctx: typer.Context) -> Invocation:
        """Returns the invocation of a parser context."""
        call = ctx.obj
        assert isinstance(call, Invocation)
        return call

    @cached_property
    def now(self) -> datetime:
        """The time of this invocation. It never changes, so that all output agrees."""
        return datetime.now(UTC)

    # -- where to work -----------------------------------------------------------------------------

    @cached_property
    def store(self) -> StoreChoice:
        """The store, the workspace and the profile of this invocation."""
        from nessie_cli.cli.app.store_choice import StoreChoice

        return StoreChoice(self.options, self.output)

    @property
    def workspace(self) -> Workspace | None:
        """The workspace in use, or None."""
        return self.store.workspace

    def repository(self) -> Repository:
        """The repository. It is opened once and closed at the end of the invocation."""
        if self._repository is None:
            from nessie_cli.repository.opening import connect

            url = self.store.url()
            with self.at_work("opening the store"):
                report = self._busy.report if self._busy else None
                repository = connect(
                    url,
                    who=self.who,
                    access=self.store.access(url),
                    progress=report,
                )
            self._repository = self._watched(self._hooked(repository))
        return self._repository

    def _watched(self, repository: Repository) -> Repository:
        if self._busy is None:
            return repository
        from nessie_cli.cli.app.busy import watched

        return watched(repository, self._busy)

    @cached_property
    def _busy(self) -> Busy | None:
        """The progress display on the terminal.

        None if stderr is not a terminal, and with `--quiet`.
        """
        if self.options.quiet or not sys.stderr.isatty():
            return None
        from nessie_cli.render.busy import Busy

        return Busy(sys.stderr)

    def at_work(self, activity: str) -> Work:
        """Shows the progress of a block that takes over a second, and nothing with `--quiet`.

        On a terminal it is a bar, otherwise an occasional line if the block reports its progress.
        The context manager can be entered repeatedly.
        """
        if self._busy is not None:
            return self._busy.at_work(activity)
        from nessie_cli.cli.app.progress import WorkInLines

        return WorkInLines(activity, None if self.options.quiet else self.output.err.print_line)

    def batch_file(self) -> BatchFile:
        """The batch file of the workspace. Raises `StoreNotFound` if there is no workspace."""
        from nessie_cli.workspace.batch import BatchFile

        return BatchFile(
            self.store.need_workspace(),
            lambda: self.at_work("waiting for the lock of this workspace"),
        )

    def _hooked(self, repository: Repository) -> Repository:
        workspace = self.store.found_workspace
        if workspace is None or not os.path.isdir(workspace.hooks_path):  # noqa: PTH112 (pathlib raises for a folder that may not be read)
            return repository
        from nessie_cli.cli.hooks.guard import hooks_of

        pause = self._busy.paused if self._busy is not None else nullcontext
        self._hooks = hooks_of(
            workspace,
            repository.url,
            verify=not self.options.no_verify,
            print_line=self.output.err.print_text,
            pause=pause,
        )
        repository.guard = self._hooks
        return repository

    @property
    def is_open(self) -> bool:
        """Whether the repository has been opened."""
        return self._repository is not None

    def close(self) -> None:
        """Closes the repository."""
        try:
            if self._hooks is not None:
                # The workspace lock is no longer held.
                self._hooks.run_after()
        finally:
            if self._repository is not None:
                self._repository.close()
            if self._busy is not None:
                self._busy.stop()

    # -- who ---------------------------------------------------------------------------------------

    def author(self) -> str | None:
        """The default author of commits: `NESSIE_AUTHOR`, or the setting of workspace or user."""
        from nessie_cli.workspace import environment as env

        named = env.variable(env.AUTHOR) or (
            self.workspace.setting("author") if self.workspace else None
        )
        if named:
            return named
        from nessie_cli.workspace.user import default_author

        return default_author()

    def setting(self, name: str) -> str | None:
        """Returns a setting of the workspace, or else of the user, such as `merge.tables`."""
        from nessie_cli.workspace.user import user_settings

        parts = name.split(".")
        value = self.workspace.setting(*parts) if self.workspace else None
        return value or user_settings().text(*parts)

    @property
    def combines_tables(self) -> bool:
        """Whether commands combine tables that both sides changed: the setting `merge.tables`."""
        return self.setting("merge.tables") != "conflict"

    def who(self) -> str:
        """The name recorded in the reflog: the author of commits, or the user of the system."""
        from nessie_cli.workspace import environment as env

        return self.author() or env.system_user()

    # -- which revision ----------------------------------------------------------------------------

    @cached_property
    def head(self) -> Revision:
        """The revision that `HEAD` means."""
        from nessie_cli import revisions

        return revisions.parse(self._named_head[1], self.now)

    @property
    def head_origin(self) -> str:
        """The source of the current reference, such as an option, a variable or the workspace."""
        return self._named_head[0]

    @cached_property
    def _named_head(self) -> tuple[str, str]:
        """The source of the current reference, and its name."""
        return next((origin, name) for origin, name in self._heads() if name)

    def _heads(self) -> Iterator[tuple[str, str | None]]:
        """Yields possible sources of the current reference, and their names.

        The first name applies.
        """
        from nessie_cli.workspace import environment as env

        store = self.store
        yield "--ref", self.options.ref
        yield env.REFERENCE, env.variable(env.REFERENCE)
        if store.profile_name and store.profile:
            yield f"the profile {store.profile.name}", store.profile.ref
        if self.workspace:
            yield f"the workspace {self.workspace.root}", self.workspace.current_reference()
        yield env.DEFAULT_BRANCH, env.variable(env.DEFAULT_BRANCH)
        if store.nearer_store is None and store.profile:
            yield f"the default profile {store.profile.name}", store.profile.ref
        yield "the store, as its default branch", self.repository().config().default_branch

    def reference_name(self) -> str:
        """The name of the current reference.

        Raises `InvalidInput` if HEAD is a commit without a name.
        """
        spec = self.head
        if spec.name is None or spec.hash or spec.steps:
            raise InvalidInput(
                f"{spec} is a commit, but this command needs a branch or tag",
                hint="name one with --ref",
            )
        return spec.name

    def revision(self, text: str | None) -> Revision:
        """Parses a revision. None, `HEAD`, `@` and a leading `~`, `^` or `*` mean HEAD.

        Raises `CommitNotFound` for a revision beyond the beginning of the history.
        """
        from nessie_cli import revisions

        text = text or revisions.HEAD
        if text == "@" or text.startswith(("@~", "@^", "@*")):
            text = text[1:]
        if not text or text[0] in "~^*":
            text = revisions.HEAD + text
        spec = self._from_head(revisions.parse(text, self.now))
        if spec.steps:
            from nessie_cli.cli.app.revisions import check_reach

            check_reach(self.repository(), spec)
        return spec

    def revision_range(self, text: str | None) -> RevisionRange | Revision:
        """Parses a revision or a range. Each end is parsed as by `revision`."""
        from nessie_cli import revisions

        return revisions.parse_range(text or revisions.HEAD, self.revision)

    def _from_head(self, spec: Revision) -> Revision:
        from nessie_cli import revisions

        if spec.name != revisions.HEAD:
            return spec
        head = self.head
        return revisions.Revision(head.name, spec.hash or head.hash, (*head.steps, *spec.steps))

    # -- output ------------------------------------------------------------------------------------

    @cached_property
    def output(self) -> Output:
        """The output of this invocation."""
        from nessie_cli.cli.app.output import Output

        return Output(self.argv, self.options, self.now, self._busy)

    @property
    def wants_json_errors(self) -> bool:
        """Whether errors are printed as JSON."""
        return self.output.is_json_for_errors
