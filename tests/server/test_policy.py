"""The policy of a repository with rules uses reference names, even if a caller writes `-`
for the default branch."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from nessie_cli import connect
from nessie_cli.errors import MergeConflict, NotAllowed
from nessie_cli.model import CommitMeta, MergeBehavior, ReferenceType
from nessie_cli.repository.base import Repository
from nessie_cli.repository.changes import (
    AssignReference,
    Change,
    Commit,
    DeleteReference,
    Merge,
    MergeOptions,
    RenameReference,
    Transplant,
)
from nessie_cli.server.auth.authorized import AuthorizedRepository
from nessie_cli.server.auth.identity import Caller
from nessie_cli.server.auth.policy import Policy
from nessie_cli.server.auth.reached import ReachedHistory
from nessie_cli.server.auth.rights import Rights
from nessie_cli.server.auth.rules import Question, Rules, read_rules
from tests.repository.vocabulary import Catalog, delete, key, put, table

ALL_BUT_COMMITS_TO_MAIN = b"r = \"!(ref == 'main' && op == 'COMMIT_CHANGE_AGAINST_REFERENCE')\""
ONLY_DASH = b"r = \"ref == '-' || ref == 'dev'\""
EVERYTHING = b"r = 'true'"


class RecordingRules(Rules):
    """Rules that record the questions they get."""

    def __init__(self, data: bytes) -> None:
        self.asked: list[Question] = []
        rules = read_rules(data)

        def allow(caller: Caller, api: int, question: Question) -> bool:
            self.asked.append(question)
            return rules.allow(caller, api, question)

        super().__init__({})
        self.allow = allow  # type: ignore[assignment]


@pytest.fixture
def repository() -> Iterator[Repository]:
    with connect("memory:") as opened:
        catalog = Catalog(opened)
        catalog.write("main", {"a": 1})
        catalog.branch("dev")
        catalog.write("dev", {"b": 2})
        yield opened


def decide(repository: Repository, change: Change, rules: Rules) -> None:
    """Decides as the server does: on the change, then on its draft."""
    rights = Rights(Caller("ada"), rules, 2)
    policy = Policy(rights, AuthorizedRepository(repository, rights), "main")
    policy.before(change, ReachedHistory())
    draft = repository.draft(change)
    policy.on(draft, ReachedHistory())
    assert draft.references[0].name == "main"


def commit(branch: str) -> Change:
    return Commit(branch, [put("c", table(3))], CommitMeta("c"))


def test_a_commit_to_dash_is_checked_as_one_to_main(
    repository: Repository,
) -> None:
    asked = {}
    for name in ("-", "main"):
        rules = RecordingRules(EVERYTHING)
        decide(repository, commit(name), rules)
        asked[name] = rules.asked
    assert asked["-"] == asked["main"]
    assert asked["-"] == [
        Question("VIEW_REFERENCE", "main"),
        Question("COMMIT_CHANGE_AGAINST_REFERENCE", "main"),
        Question("UPDATE_ENTITY", "main", "c", "ICEBERG_TABLE"),
        Question("CREATE_ENTITY", "main", "c", "ICEBERG_TABLE"),
    ]


def test_rules_about_dash_have_no_effect(
    repository: Repository,
) -> None:
    for name in ("-", "main"):
        for rules in (ALL_BUT_COMMITS_TO_MAIN, ONLY_DASH):
            with pytest.raises(NotAllowed, match="on reference 'main'"):
                decide(repository, commit(name), read_rules(rules))
        decide(repository, commit(name), read_rules(EVERYTHING))
    to_dev = Commit("dev", [put("c", table(3))], CommitMeta("c"))
    rights = Rights(Caller("ada"), read_rules(ALL_BUT_COMMITS_TO_MAIN), 2)
    policy = Policy(rights, AuthorizedRepository(repository, rights), "main")
    policy.before(to_dev, ReachedHistory())


@pytest.mark.parametrize("verb", ["merge", "transplant", "assign", "rename", "delete"])
def test_every_other_change_to_dash_is_checked_as_one_to_main(
    repository: Repository, verb: str
) -> None:
    head, dev = (repository.reference(name).hash for name in ("main", "dev"))
    drop = MergeOptions(default_behavior=MergeBehavior.FORCE)

    def change(name: str) -> Change:
        return {
            "merge": Merge(name, "dev", drop),
            "transplant": Transplant(name, [dev], drop),
            "assign": AssignReference(name, dev, head),
            "rename": RenameReference(name, "new", head),
            "delete": DeleteReference(name, head),
        }[verb]

    asked = []
    for name in ("-", "main"):
        rules = RecordingRules(EVERYTHING)
        rights = Rights(Caller("ada"), rules, 2)
        policy = Policy(rights, AuthorizedRepository(repository, rights), "main")
        policy.before(change(name), ReachedHistory())
        asked.append(rules.asked)
    assert asked[0] == asked[1]
    assert "main" in {question.ref for question in asked[0]}
    assert "-" not in {question.ref for question in asked[0]}


def test_protection_of_main_refuses_a_commit_to_dash(repository: Repository) -> None:
    repository.put_setting("protect.main", "merge-only")
    before = repository.reference("main")
    for name in ("-", "main"):
        with pytest.raises(NotAllowed, match=r"protect\.main"):
            repository.submit(commit(name))
    assert repository.reference("main") == before
    assert repository.merge("-", "dev").applied
    assert [one.name for one in repository.references(ReferenceType.BRANCH)] == ["dev", "main"]


@pytest.mark.parametrize("per_key", [False, True])
def test_a_merge_hides_other_keys_of_a_conflict(*, per_key: bool) -> None:
    with connect("memory:") as repository:
        catalog = Catalog(repository)
        created = catalog.write("main", {"old": 1})
        catalog.branch("dev")
        renamed = catalog.content("dev", "old")
        catalog.commit("dev", delete("old"), put("secret", renamed))
        change = Transplant("dev", [created], MergeOptions(per_key=per_key))
        with pytest.raises(MergeConflict) as refused:
            repository.draft(change).answer()
        assert "secret" in str(refused.value.conflicts)
        rights = Rights(Caller("ada"), read_rules(b"r = \"path != 'secret'\""), 2)
        policy = Policy(rights, AuthorizedRepository(repository, rights), "main")
        shown = policy.shown_conflict(change, refused.value)
        assert "secret" not in str([c for c in shown.conflicts if c.key != key("secret")])
        assert "secret" not in str(shown.result)


def test_a_merge_hides_the_key_of_a_content_with_the_same_metadata_file() -> None:
    with connect("memory:") as repository:
        catalog = Catalog(repository)
        catalog.write("main", {"old": 2})
        catalog.branch("dev")
        catalog.write("main", {"secret": 1})
        catalog.write("dev", {"a": 1})
        change = Merge("main", "dev", MergeOptions())
        with pytest.raises(MergeConflict) as refused:
            repository.draft(change).answer()
        assert "secret" in str(refused.value.conflicts)
        rights = Rights(Caller("ada"), read_rules(b"r = \"path != 'secret'\""), 2)
        policy = Policy(rights, AuthorizedRepository(repository, rights), "main")
        assert "secret" not in str(policy.shown_conflict(change, refused.value).conflicts)


def test_a_merge_hides_the_places_of_its_results() -> None:
    with connect("memory:") as repository:
        catalog = Catalog(repository)
        catalog.write("main", {"old": 1})
        catalog.branch("dev")
        catalog.write("dev", {"old": 2})
        catalog.rename("main", "old", "new")
        change = Merge("main", "dev", MergeOptions(dry_run=True))
        answer = repository.draft(change).answer()
        assert [d.source_at and d.source_at.key for d in answer.details] == [key("old")]
        rights = Rights(Caller("ada"), read_rules(b"r = \"path != 'old'\""), 2)
        policy = Policy(rights, AuthorizedRepository(repository, rights), "main")
        (detail,) = policy.shown(change, answer).details
        assert (detail.key, detail.source_at, detail.result_at) == (key("new"), None, None)


@pytest.mark.parametrize("name", ["dev", "nosuch"])
@pytest.mark.parametrize("hash_", ["ab" * 32, "ab" * 5, "full", "short"])
def test_the_name_of_a_revision_is_judged_before_its_hash(
    repository: Repository, name: str, hash_: str
) -> None:
    """The page tokens of Iceberg REST lead to such revisions."""
    head = repository.reference("dev").hash
    given = {"full": head, "short": head[:10]}.get(hash_, hash_)
    reading = AuthorizedRepository(
        repository, Rights(Caller("ada"), read_rules(b"r = \"ref == 'main'\""), 2)
    )
    with pytest.raises(NotAllowed, match=f"'VIEW_REFERENCE' is not allowed .* '{name}'"):
        reading.resolve(f"{name}@{given}")
