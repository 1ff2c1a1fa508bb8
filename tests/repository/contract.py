"""The contract of `Repository`, for every implementation over any store or server.

An implementation inherits `RepositoryContract` and provides a fixture `repository`: a new one
with the default branch `main` at the empty history.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from nessie_cli.repository.base import Repository
from tests.repository.contract_commits import Commits
from tests.repository.contract_conflicts import Conflicts, Namespaces
from tests.repository.contract_contents import (
    Contents,
    ContentTransplants,
    KeysOfContents,
    RandomContents,
    ShownStates,
)
from tests.repository.contract_expectations import Expectations
from tests.repository.contract_inverse import Inverses
from tests.repository.contract_key_log import KeyLog
from tests.repository.contract_merge import Merges
from tests.repository.contract_merge_base import MergeBases
from tests.repository.contract_namespace_validation import NamespaceValidation
from tests.repository.contract_reading import History, Reading
from tests.repository.contract_references import References
from tests.repository.contract_revisions import Revisions
from tests.repository.contract_transplant import Transplants
from tests.repository.contract_transplant_conflicts import TransplantConflicts
from tests.repository.vocabulary import Catalog


class RepositoryContract(
    Inverses,
    References,
    Revisions,
    Commits,
    Conflicts,
    Namespaces,
    History,
    Reading,
    KeyLog,
    MergeBases,
    Merges,
    Contents,
    ContentTransplants,
    RandomContents,
    KeysOfContents,
    ShownStates,
    Transplants,
    Expectations,
    TransplantConflicts,
    NamespaceValidation,
):
    """The whole contract."""

    @pytest.fixture(autouse=True)
    def check_store(self, repository: Repository) -> Iterator[None]:
        """Checks that no test has damaged the store."""
        yield
        assert list(repository.check()) == []
        # Raises an error for damage; the store of a server cannot be verified through the API.
        repository.verify({found.hash for found in repository.references()})

    @pytest.fixture
    def catalog(self, repository: Repository) -> Catalog:
        return Catalog(repository)


NAMES = Counter(
    name for part in RepositoryContract.__bases__ for name in vars(part) if name.startswith("test")
)
assert max(NAMES.values()) == 1, (
    f"one part of the contract hides tests of another: {[n for n in NAMES if NAMES[n] > 1]}"
)
