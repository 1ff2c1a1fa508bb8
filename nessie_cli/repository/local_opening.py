"""Opens and creates repositories by the URL of their store."""

from __future__ import annotations

from nessie_cli.errors import InvalidInput
from nessie_cli.kernel.edit import PARAMETERS
from nessie_cli.kernel.forms import NO_COMMIT
from nessie_cli.model import ReferenceType
from nessie_cli.repository.local import CREATED, DEFAULT_BRANCH, TREE, LocalRepository
from nessie_cli.repository.snapshot import Context
from nessie_cli.store.opening import create_store, open_store
from nessie_cli.store.records import Move, RequestRecord, Write


def open_local(url: str, context: Context) -> LocalRepository:
    """Returns the repository at a URL."""
    return LocalRepository(open_store(url), context)


def create_local(url: str, default_branch: str | None, context: Context) -> LocalRepository:
    """Returns the repository at a URL, and creates it if there is none.

    Raises `InvalidInput` if there is one with another default branch.
    """
    store = create_store(url)
    if DEFAULT_BRANCH not in store.settings().values:
        name, time = default_branch or "main", context.clock()
        request = RequestRecord(context.random(8).hex(), "", b"", b"", time)
        first = Move(
            name, ReferenceType.BRANCH, None, NO_COMMIT, time, context.who, "create", "", request.id
        )
        facts = {TREE: PARAMETERS, DEFAULT_BRANCH: name, CREATED: str(context.clock())}
        # If two processes create a store, the second finds the branch and its write changes
        # nothing.
        store.commit([Write(request, moves=[first], settings=facts)])
    repository = LocalRepository(store, context)
    if default_branch not in (None, repository.default_branch):
        existing = repository.default_branch
        repository.close()
        raise InvalidInput(
            f"the repository exists and its default branch is '{existing}', not '{default_branch}'"
        )
    return repository
