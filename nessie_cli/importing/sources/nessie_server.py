"""Another Nessie server as the source of an import: the contents at a branch, tag or commit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from nessie_cli import reaching
from nessie_cli.errors import CommitNotFound, InvalidInput, NotAllowed, NotFound
from nessie_cli.importing.source import (
    Listing,
    Name,
    SourceContent,
    SourceKind,
    SourceNamespace,
    SourceProblem,
)
from nessie_cli.importing.sources.names import outermost, parents
from nessie_cli.model import (
    NO_ANCESTOR,
    ContentKey,
    Entry,
    IcebergTable,
    IcebergView,
    KeyRange,
    Namespace,
    type_label,
)
from nessie_cli.model.progress import Progress
from nessie_cli.repository.access import checked_url
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.repository.urls import is_server
from nessie_cli.revisions import Revision

_ACCESS = "access."
_OLD_API = re.compile(r"/api/v1/?$")
_PACE = 100


def open_nessie(
    url: str,
    properties: Mapping[str, str],
    revision: str | None,
    target: ReadableRepository | None,
) -> NessieServer:
    """Opens the repository at a URL as a source, at a revision (default: the default branch).

    Raises the errors of `connect` and `access_to`, `NotFound` if there is no such revision, and
    `InvalidInput` if the target has the commit already.
    """
    url = _OLD_API.sub("/api/v2", url)
    if target is not None and is_server(url) and checked_url(url) == target.url:
        raise InvalidInput(
            f"{target.url} is this repository itself",
            hint="`nessie merge` brings the contents of another branch",
        )
    # A variable such as NESSIE_AUTH_TOKEN belongs to the target, if that is a server, too.
    variables = target is None or not target.is_remote
    try:
        return _opened(url, properties, revision, target, variables=variables)
    except NotAllowed as error:
        if variables:
            raise
        raise NotAllowed(
            error.message.partition(";")[0],
            hint=f"set --property {_ACCESS}token-file=FILE, because NESSIE_AUTH_TOKEN and the other"
            " variables are those of the target",
        ) from None


def _opened(
    url: str,
    properties: Mapping[str, str],
    revision: str | None,
    target: ReadableRepository | None,
    *,
    variables: bool,
) -> NessieServer:
    repository = reaching.opened(
        url,
        lambda name: properties.get(f"{_ACCESS}{name}"),
        lambda name: f"{_ACCESS}{name}",
        variables=variables,
    )
    try:
        return NessieServer(repository, properties, revision, target)
    except BaseException:
        repository.close()
        raise


class NessieServer:
    """The contents of a repository at one commit."""

    def __init__(
        self,
        repository: ReadableRepository,
        properties: Mapping[str, str],
        revision: str | None = None,
        target: ReadableRepository | None = None,
    ) -> None:
        self._repository = repository
        self.properties: Mapping[str, str] = {
            name: value for name, value in properties.items() if not name.startswith(_ACCESS)
        }
        try:
            reference = repository.resolve(revision or "-")
        except NotFound as error:
            # The hints of the command line are about the target.
            raise NotFound(
                f"{repository.url}: {error.message}",
                error.name,
                hint=f"`nessie --store {repository.url} branch` and `tag` list its references",
            ) from None
        self.hash = reference.hash
        self.label = f"{repository.url} at {revision or reference.name}"
        if target is not None:
            _refuse_itself(self.label, self.hash, target)

    def listing(self, namespaces: Sequence[Name], progress: Progress | None = None) -> Listing:
        """Reads the contents at the commit, a page in each request. See `Source`."""
        lists = _Lists()
        starts = [ContentKey(name) for name in outermost(namespaces)]
        ranges: Sequence[ContentKey | None] = starts or [None]
        entries = ((entry, start) for start in ranges for entry in self._entries(start))
        for number, (entry, start) in enumerate(entries):
            if progress is not None and not number % _PACE:
                progress(number, None)
            lists.add(entry, start)
        lists.add_parents(self._namespaces_above(starts))
        return lists.listing(starts, self.label)

    def _entries(self, start: ContentKey | None) -> Iterable[Entry]:
        at = Revision(None, self.hash)
        return self._repository.entries(at, KeyRange(prefix=start), content=True)

    def _namespaces_above(self, starts: Iterable[ContentKey]) -> Iterable[SourceNamespace]:
        keys = [ContentKey(name) for name in parents(start.elements for start in starts)]
        contents = self._repository.contents(Revision(None, self.hash), keys) if keys else {}
        for key in keys:
            content = contents.get(key)
            if isinstance(content, Namespace):
                yield SourceNamespace(key.elements, content.properties)

    def close(self) -> None:
        """Closes the connection."""
        self._repository.close()


class _Lists:
    """The parts of a listing, while entries are read."""

    def __init__(self) -> None:
        self.namespaces: dict[Name, SourceNamespace] = {}
        self.contents: list[SourceContent] = []
        self.problems: list[SourceProblem] = []
        self.left_out: list[SourceProblem] = []
        self.existing: set[ContentKey] = set()

    def add(self, entry: Entry, start: ContentKey | None) -> None:
        """Adds an entry at or below a namespace."""
        name, content = entry.key.elements, entry.content
        if isinstance(content, Namespace):
            self.namespaces[name] = SourceNamespace(name, content.properties)
        elif entry.key == start:
            self.problems.append(
                SourceProblem(
                    f"is of type {type_label(entry.type)}, not a namespace; --include names one"
                    " table or view",
                    name,
                )
            )
        elif isinstance(content, IcebergTable | IcebergView):
            kind = SourceKind.TABLE if isinstance(content, IcebergTable) else SourceKind.VIEW
            self.contents.append(
                SourceContent(name, kind, content.metadata_location, content=content)
            )
        else:
            self.left_out.append(
                SourceProblem(
                    f"type {type_label(entry.type)}: only Iceberg tables and views are imported",
                    name,
                )
            )
        if start is not None:
            self.existing.add(start)

    def add_parents(self, namespaces: Iterable[SourceNamespace]) -> None:
        """Adds the namespaces above those that were asked for."""
        for namespace in namespaces:
            self.namespaces[namespace.name] = namespace

    def listing(self, starts: Iterable[ContentKey], label: str) -> Listing:
        """Returns the listing, with a problem for each namespace that does not exist."""
        missing = [
            SourceProblem("no such namespace", start.elements)
            for start in starts
            if start not in self.existing
        ]
        problems = [*missing, *self.problems]
        if not self.contents and not problems:
            problems = [SourceProblem("has no Iceberg tables or views", location=label)]
        return Listing(
            sorted(self.namespaces.values(), key=lambda namespace: namespace.name),
            self.contents,
            problems,
            self.left_out,
        )


def _refuse_itself(label: str, commit: str, target: ReadableRepository) -> None:
    """Raises `InvalidInput` if the repository that is imported into has this commit."""
    if commit == NO_ANCESTOR:
        return
    try:
        target.commit_at(Revision(None, commit), operations=False)
    except CommitNotFound:
        return
    raise InvalidInput(
        f"{label} is a commit of this repository, or of a copy of it",
        hint=f"`nessie merge {commit[:12]}` brings its contents",
    )
