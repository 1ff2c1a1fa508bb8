"""One level of a catalog: the contents and namespaces directly below a key."""

# No postponed annotations: those of a NamedTuple's fields would be compiled at each start.
from collections.abc import Iterator
from typing import NamedTuple

from nessie_cli.model import ContentKey, Entry, KeyRange, Namespace
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision


class Child(NamedTuple):
    """A key directly below another one.

    `entry` is its content; None for a namespace that the caller may not read. `is_parent` is
    whether there are keys below.
    """

    key: ContentKey
    entry: Entry | None
    is_parent: bool

    @property
    def name(self) -> str:
        """The last element, in quotes if it needs them."""
        return str(ContentKey(self.key.elements[-1:]))

    @property
    def is_namespace(self) -> bool:
        """Whether it is a namespace."""
        return self.entry is None or self.entry.type == Namespace.type


class ContentCount(NamedTuple):
    """The number of contents other than namespaces, or if `is_least`, that there are more."""

    number: int
    is_least: bool = False


def children(
    repository: ReadableRepository, at: str, parent: ContentKey, after: ContentKey | None = None
) -> Iterator[Child]:
    """Yields the children of a key at the commit with a hash, ascending, behind the key `after`.

    The keys below a child are skipped unread. Costs O(log keys) for each child with keys below it,
    and one key for each other one.
    """
    commit = Revision(None, at)
    depth = len(parent.elements) + 1
    minimum = after or parent
    while True:
        child: Child | None = None
        is_below = False
        for entry in repository.entries(commit, KeyRange(minimum=minimum)):
            elements = entry.key.elements
            if not entry.key.starts_with(parent):
                break
            if child is not None:
                is_below = entry.key.starts_with(child.key)
                if is_below:
                    break
                if child.key != after:
                    yield child
            if len(elements) > depth:
                child, is_below = Child(ContentKey(elements[:depth]), None, True), True
                break
            child = Child(entry.key, entry, False) if len(elements) == depth else None
        if child is not None and child.key != after:
            yield child._replace(is_parent=is_below)
        if child is None or not is_below:
            return
        minimum = _behind(child.key)


def _behind(key: ContentKey) -> ContentKey:
    """Returns the first key that is behind all keys below a key: no element has a control."""
    return ContentKey((*key.elements[:-1], f"{key.elements[-1]} "))


def count_contents(
    repository: ReadableRepository, at: str, prefix: ContentKey, most: int
) -> ContentCount:
    """Counts the contents at and below a key, except namespaces, among its first `most` keys."""
    keys = KeyRange(prefix=prefix) if prefix.elements else KeyRange()
    number = 0
    for read, entry in enumerate(repository.entries(Revision(None, at), keys)):
        if read == most:
            return ContentCount(number, is_least=True)
        number += entry.type != Namespace.type
    return ContentCount(number)
