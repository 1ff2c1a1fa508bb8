"""The states of one key on branches."""

# No postponed annotations: those of a NamedTuple's fields would be compiled at each start.
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from nessie_cli.errors import NotAllowed
from nessie_cli.model import ContentKey, Entry, KeyRange, Reference
from nessie_cli.repository.reader import ReadableRepository
from nessie_cli.revisions import Revision


class KeyState(NamedTuple):
    """A branch, and the entry of the key there; None if the key is absent."""

    branch: Reference
    entry: Entry | None


def states_of_key(
    repository: ReadableRepository, branches: Iterable[Reference], key: ContentKey
) -> Iterator[KeyState]:
    """Yields the state of a key on each branch whose keys the caller may read.

    Costs O(log keys) for each branch.
    """
    for branch in branches:
        try:
            # By its name, a caller sees what he may see on this branch.
            entries = repository.entries(Revision(branch.name), KeyRange(keys=(key,)))
            yield KeyState(branch, next(iter(entries), None))
        except NotAllowed:
            continue
