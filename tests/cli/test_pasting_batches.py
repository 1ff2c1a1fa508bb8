"""Conflicts of staged batches: no printed line and no decision loses a content unsaid.

A staged change is that of a content: a decision keeps its key and its value, or refuses.
"""

import os
import random
import shlex
from collections.abc import Callable, Iterable, Iterator
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from nessie_cli.model import Put, ReferenceType, RestoredFrom
from nessie_cli.workspace.content_edits import ContentEdit, content_edits
from tests.command.in_process import InProcess
from tests.repository.test_inverse import state_of
from tests.server.serving import serving

from .conftest import Answering, Catalog, key, table

COUNT = int(os.environ.get("NESSIE_TEST_BATCHES", "20"))
"""The random batches of each kind."""
BASE = {"a": 1, "d": 2}
KEYS = ("a", "b", "c", "d")
RESTORED_FILES = ("s3://lake/base-a.json", "s3://restored")
"""The files of a restored table: that of its origin, and one that was staged afterwards."""


@pytest.fixture
def lake(nessie: InProcess, catalog: Catalog) -> Catalog:
    """Two tables, `a` and `d`, at the root."""
    catalog.commit("main", "base", *(Put(key(k), table(f"base-{k}", n)) for k, n in BASE.items()))
    return catalog


@pytest.fixture(params=["embedded", "server"])
def anywhere(request, lake: Catalog, tmp_path: Path) -> Iterator[Catalog]:
    """The same through the embedded store, and through a server."""
    if request.param == "embedded":
        yield lake
        return
    with serving(lake.repository) as url:
        (tmp_path / ".nessie" / "config.toml").write_text(f'store = "{url}/api/v2"\n')
        yield lake


# -- what is staged --------------------------------------------------------------------------------


def put(nessie: InProcess) -> None:
    nessie("content", "put", "a", "--metadata-location", "s3://mine", "--snapshot-id", "9")


def create(nessie: InProcess, name: str = "b") -> None:
    words = ("--type", "iceberg-table", "--metadata-location", f"s3://new-{name}")
    assert nessie("content", "put", name, *words).code == 0


def delete(nessie: InProcess) -> None:
    nessie("content", "delete", "a")


def rename(nessie: InProcess, old: str = "a", new: str = "b") -> None:
    nessie("content", "rename", old, new)


def rename_and_put(nessie: InProcess) -> None:
    rename(nessie)
    nessie("content", "put", "b", "--metadata-location", "s3://mine", "--snapshot-id", "9")


def replace(nessie: InProcess) -> None:
    nessie("content", "replace", "a", "--type", "iceberg-table", "--metadata-location", "s3://new")


def swap(nessie: InProcess) -> None:
    for pair in (("a", "t"), ("d", "a"), ("t", "d")):
        rename(nessie, *pair)


def rename_and_create(nessie: InProcess) -> None:
    rename(nessie)
    create(nessie, "a")


def check(nessie: InProcess) -> None:
    nessie("content", "unmodified", "a")


STAGED = [put, create, delete, rename, rename_and_put, replace, swap, rename_and_create, check]


# -- what the other writer does --------------------------------------------------------------------


def changed(catalog: Catalog) -> None:
    catalog.update("main", "a", 30)


def deleted(catalog: Catalog) -> None:
    catalog.drop("main", "a")


def renamed_away(catalog: Catalog) -> None:
    catalog.rename("main", "a", "c")


def renamed_and_changed(catalog: Catalog) -> None:
    catalog.rename("main", "a", "c")
    catalog.update("main", "c", 30)


def renamed_onto(catalog: Catalog) -> None:
    catalog.rename("main", "d", "b")


def recreated(catalog: Catalog) -> None:
    catalog.drop("main", "a")
    catalog.create("main", "a", 30)


def created(catalog: Catalog) -> None:
    catalog.create("main", "b", 30)


def renamed_away_and_created(catalog: Catalog) -> None:
    catalog.rename("main", "a", "c")
    catalog.create("main", "a", 30)


def renamed_to_the_key(catalog: Catalog) -> None:
    catalog.rename("main", "a", "b")


def displaced(catalog: Catalog) -> None:
    catalog.drop("main", "a")
    catalog.rename("main", "d", "a")


OTHERS = [
    changed,
    deleted,
    renamed_away,
    renamed_and_changed,
    renamed_onto,
    recreated,
    created,
    renamed_away_and_created,
    renamed_to_the_key,
    displaced,
]


# -- the laws --------------------------------------------------------------------------------------


class Attempt:
    """Runs lines on one state of the branch and of the batch, and checks what they change."""

    def __init__(self, nessie: InProcess, catalog: Catalog, folder: Path) -> None:
        self.nessie, self.catalog = nessie, catalog
        self.file = folder / ".nessie" / "batch.json"
        self.batch, self.head = self.file.read_bytes(), catalog.head("main")
        self.before = state_of(catalog.repository)
        self.edits = self.staged()

    def staged(self) -> list[ContentEdit]:
        from nessie_cli.workspace.batch import decode_batch

        if not self.file.exists():
            return []
        return content_edits(decode_batch(self.file.read_text(), "batch").staged)

    def again(self) -> None:
        """Takes the attempt back."""
        self.file.write_bytes(self.batch)
        head = self.catalog.head("main")
        if head != self.head:
            self.catalog.repository.assign_reference("main", self.head, expected_hash=head)

    def conflicts(self) -> list[dict]:
        ran = self.nessie("commit", "-m", "mine", "--json")
        if ran.code == 0:
            return []
        assert ran.code == 3, ran
        return ran.error["errorDetails"]["conflicts"]

    def paste(self, line: str, effect: str, conflict: dict) -> None:
        """A line works, says what it deletes, and drops no other staged change unsaid."""
        words = shlex.split(line)[1:]
        ran = self.nessie(*words)
        assert ran.code == 0, (line, ran)
        about = ".".join(conflict["key"]["elements"])
        named = {name for name in KEYS if f"deletes the present {name}" in effect}
        after = self.staged()
        if words[0] == "reset":
            gone = [edit for edit in self.edits if edit not in after]
            assert len(after) == len(self.edits) - len(gone), line
            assert len({edit.old or edit.new for edit in gone}) <= 1 or "unstages" in effect, line
        else:
            assert values(after) == values(self.edits), line
            done = {(content.id, name) for name, content in self.before.items()}
            targets = {(edit.before.id, edit.new) for edit in self.edits if edit.is_rename}
            assert {new for _, new in targets - done} <= {edit.new for edit in after}, line
        status = self.nessie("status", "--json").json["conflicts"]
        assert about not in [".".join(c["key"]["elements"]) for c in status], line
        if not status and after:
            assert self.nessie("commit", "-m", "now").code == 0
            self.compare(named, line)
            if words[0] != "reset":
                self.are_kept(line)
                self.are_written(effect, line)

    def paste_together(self, conflicts: list[dict]) -> None:
        """The line for all conflicts keeps every staged change, and says what it deletes."""
        _, _, report = self.nessie("commit", "-m", "mine").err.partition("\nall conflicts\n")
        lines = report.splitlines()
        for line, effect in pairwise([*lines, ""]):
            if "nessie resolve --proposed" in line:
                for conflict in conflicts:
                    self.paste(line[line.index("nessie") :], effect, conflict)
                    self.again()

    def decide(self, words: list[str]) -> set[str] | None:
        """A decision changes only what it prints, or it fails and changes nothing.

        Returns the keys of the contents that it deletes, or None if it fails.
        """
        ran = self.nessie("resolve", *words)
        if ran.code != 0:
            assert ran.code in (2, 3), ran
            assert (self.file.read_bytes(), self.catalog.head("main")) == (self.batch, self.head)
            return None
        verbs = [line.split() for line in ran.lines]
        named = {verb[1] for verb in verbs if verb[0] in ("delete", "replace")}
        if self.file.exists():
            assert self.nessie("commit", "-m", "now").code == 0, words
        self.compare(named, " ".join(words))
        if "--current" not in words:
            self.are_kept(" ".join(words))
        ids = {content.id for content in state_of(self.catalog.repository).values()}
        return {str(name) for name, content in self.before.items() if content.id not in ids}

    def decide_each(self, names: list[str], combinations: Iterable[Iterable[str]]) -> None:
        """Decisions for different sides delete only contents that those for all changes delete."""
        deleted = self.decide(decisions(names, ["--proposed"] * len(names)))
        self.again()
        for sides in combinations:
            words = decisions(names, sides)
            also_deleted = self.decide(words)
            self.again()
            if deleted is not None and also_deleted is not None:
                assert also_deleted <= deleted, words

    def are_kept(self, line: str) -> None:
        """Each staged change is on the branch: the value, and the key of a rename."""
        repository = self.catalog.repository
        before = {content.id: name for name, content in self.before.items()}
        after = {content.id: name for name, content in state_of(repository).items()}
        files = {getattr(c, "metadata_location", "") for c in state_of(repository).values()}
        assert set(values(self.edits)) <= files, line
        for edit in self.edits:
            if edit.old is None and edit.after is not None and edit.after.id:
                assert after[edit.after.id] == edit.new, (line, "restored")
            if edit.before is not None and edit.before.id in after:
                # A content that another writer deleted comes back at its key.
                stays = before.get(edit.before.id, edit.old)
                key = edit.new if edit.is_rename else stays
                assert after[edit.before.id] == key, line

    def are_written(self, effect: str, line: str) -> None:
        """A restored content that came back is overwritten only by a line that says so."""
        before = {content.id: (name, content) for name, content in self.before.items()}
        after = {content.id: content for content in state_of(self.catalog.repository).values()}
        for id_ in restored(self.edits) & before.keys() & after.keys():
            name, content = before[id_]
            is_named = f"overwrites the value of {name}" in effect
            assert is_named == (after[id_] != content), line

    def compare(self, named: set[str], line: str) -> None:
        """Nothing is lost that was neither staged nor named, and nothing is there twice."""
        after = state_of(self.catalog.repository)
        ids = {content.id: (str(k), content) for k, content in after.items()}
        assert len(ids) == len(after), (line, "two keys with one id")
        files = [c.metadata_location for c in after.values() if hasattr(c, "metadata_location")]
        assert len(set(files)) == len(files), (line, "two tables with one metadata file")
        staged = {edit.before.id for edit in self.edits if edit.before} | restored(self.edits)
        deleted = {edit.before.id for edit in self.edits if edit.before and not edit.after}
        for name, content in self.before.items():
            if content.id not in ids:
                assert content.id in deleted or str(name) in named, (line, f"{name} is lost")
            elif content.id not in staged:
                assert ids[content.id] == (str(name), content), (line, f"{name} is changed")


def decisions(names: Iterable[str], sides: Iterable[str]) -> list[str]:
    """The options that decide about keys."""
    return [word for pair in zip(sides, names, strict=True) for word in pair]


def values(edits: list[ContentEdit]) -> list[str]:
    """The metadata files that the edits give to contents, without those of restored ones."""
    return sorted(
        edit.after.metadata_location
        for edit in edits
        if edit.after is not None
        and edit.after.metadata_location not in RESTORED_FILES
        and (edit.old is None or edit.changes_value)
    )


def restored(edits: list[ContentEdit]) -> set[str]:
    """The ids of deleted contents that the edits bring back."""
    return {edit.after.id for edit in edits if edit.old is None and edit.after and edit.after.id}


def test_linked_conflicts_can_be_decided_together(
    nessie: InProcess, lake: Catalog, tmp_path: Path
) -> None:
    """Each table gets the key that the other writer gave to the other one."""
    rename(nessie, "a", "b")
    rename(nessie, "d", "c")
    lake.rename("main", "a", "c")
    lake.rename("main", "d", "b")
    head = lake.head("main")[:12]
    line = (
        f"nessie resolve --proposed a --proposed b --proposed d --proposed c --expected-hash {head}"
    )
    refused = nessie("commit", "-m", "mine")
    refused.expect(3, f"  or                 {line}\n{' ' * 21}(a is c now; d is b now)\n")
    attempt = Attempt(nessie, lake, tmp_path)
    attempt.paste_together(attempt.conflicts())


def everywhere(*values: Iterable[Callable[..., None]]) -> list[tuple[Any, ...]]:
    """Each combination embedded, and every fourth one through a server as well.

    The lines are made by the same code, so a server shows whether it gets the same values.
    """
    combinations = list(product(*values))
    return [
        *(("embedded", *each) for each in combinations),
        *(("server", *each) for each in combinations[::4]),
    ]


@pytest.mark.parametrize(
    ("anywhere", "stage", "other"), everywhere(STAGED, OTHERS), indirect=["anywhere"]
)
def test_every_printed_line_does_what_it_says(
    nessie: InProcess,
    anywhere: Catalog,
    tmp_path: Path,
    stage: Callable[[InProcess], None],
    other: Callable[[Catalog], None],
) -> None:
    stage(nessie)
    other(anywhere)
    check_every_line(Attempt(nessie, anywhere, tmp_path))


def check_every_line(attempt: Attempt) -> None:
    """Pastes each printed line, and takes both sides of all conflicts."""
    conflicts = attempt.conflicts()
    if conflicts:
        attempt.batch = attempt.file.read_bytes()
    for conflict in conflicts:
        for line, effect in zip(conflict["resolutions"], conflict["effects"], strict=True):
            attempt.paste(line, effect, conflict)
            attempt.again()
    attempt.paste_together(conflicts)
    names = [".".join(conflict["key"]["elements"]) for conflict in conflicts]
    for side in ("--proposed", "--current"):
        if names:
            attempt.decide([word for name in names for word in (side, name)])
            attempt.again()


# -- restored contents -----------------------------------------------------------------------------


@pytest.fixture
def restorable(anywhere: Catalog) -> Catalog:
    """The table `a` was deleted; the tag `earlier` has it."""
    anywhere.repository.create_reference(ReferenceType.TAG, "earlier", anywhere.head("main"))
    anywhere.drop("main", "a")
    return anywhere


def restore(nessie: InProcess) -> None:
    assert nessie("restore", "a", "--at", "earlier").code == 0


def restore_and_rename(nessie: InProcess) -> None:
    restore(nessie)
    rename(nessie)


def restore_and_put(nessie: InProcess) -> None:
    restore(nessie)
    nessie("content", "put", "a", "--metadata-location", "s3://restored", "--snapshot-id", "9")


def restore_onto_a_renamed_one(nessie: InProcess) -> None:
    restore(nessie)
    rename(nessie, "d", "b")
    rename(nessie, "a", "d")


def came_back(catalog: Catalog, name: str = "a") -> None:
    origin = RestoredFrom(catalog.head("earlier"), key("a"))
    content = catalog.repository.content("earlier", key("a"))
    catalog.commit("main", "back", Put(key(name), content, restored_from=origin))


def came_back_changed(catalog: Catalog) -> None:
    came_back(catalog)
    changed(catalog)


def came_back_elsewhere(catalog: Catalog) -> None:
    came_back(catalog, "c")


def came_back_and_was_displaced(catalog: Catalog) -> None:
    came_back(catalog)
    renamed_and_changed(catalog)
    catalog.create("main", "a", 60)


def came_back_and_both_keys_were_taken(catalog: Catalog) -> None:
    came_back_and_was_displaced(catalog)
    created(catalog)


def came_back_onto_the_new_key(catalog: Catalog) -> None:
    came_back(catalog, "b")
    catalog.update("main", "b", 30)


def new_table_at_the_key(catalog: Catalog) -> None:
    catalog.create("main", "a", 60)


def same_file_at_the_key(catalog: Catalog) -> None:
    catalog.commit("main", "same", Put(key("a"), table("base-a", 1)))


def swapped_with_another(catalog: Catalog) -> None:
    catalog.rename("main", "d", "c")
    came_back(catalog, "d")
    catalog.update("main", "d", 30)


RETURNS = [
    came_back,
    came_back_changed,
    came_back_elsewhere,
    came_back_and_was_displaced,
    came_back_and_both_keys_were_taken,
    came_back_onto_the_new_key,
    new_table_at_the_key,
    same_file_at_the_key,
    created,
    swapped_with_another,
]


RESTORES = [restore, restore_and_rename, restore_and_put, restore_onto_a_renamed_one]


@pytest.mark.parametrize(
    ("anywhere", "stage", "other"), everywhere(RESTORES, RETURNS), indirect=["anywhere"]
)
def test_every_line_about_a_restored_table_keeps_its_id(
    nessie: InProcess,
    restorable: Catalog,
    tmp_path: Path,
    stage: Callable[[InProcess], None],
    other: Callable[[Catalog], None],
) -> None:
    before = restorable.repository.content("earlier", key("a"))
    stage(nessie)
    other(restorable)
    attempt = Attempt(nessie, restorable, tmp_path)
    assert restored(attempt.edits) == {before.id}
    check_every_line(attempt)
    places = [str(name) for name, content in attempt.before.items() if content.id == before.id]
    keys = [str(edit.new) for edit in attempt.edits if edit.old is None]
    if stage is not restore_onto_a_renamed_one and places and places != keys:
        (conflict,) = attempt.conflicts()
        assert f"its content id is that of key '{places[0]}'" in conflict["message"]


@pytest.mark.parametrize("is_renamed", [False, True])
@pytest.mark.parametrize("present", [1, 30])
def test_a_line_about_a_restored_table_keeps_the_value_that_the_report_shows(
    nessie: InProcess, restorable: Catalog, present: int, is_renamed: bool
) -> None:
    restore(nessie)
    came_back(restorable)
    if present != 1:
        restorable.update("main", "a", present)
    if is_renamed:
        restorable.rename("main", "a", "c")
    (conflict,) = nessie("commit", "-m", "mine", "--json").error["errorDetails"]["conflicts"]
    assert conflict["proposed"]["snapshotId"] == 1
    named = f"overwrites the value of {'c' if is_renamed else 'a'}"
    assert (named in conflict["effects"][0]) == (present != 1), conflict
    assert nessie(*shlex.split(conflict["resolutions"][0])[1:]).code == 0
    # A table that is back unchanged at its key leaves nothing to commit.
    assert nessie("commit", "-m", "mine").code == (0 if is_renamed or present != 1 else 1)
    assert restorable.snapshot("main", "a") == 1
    assert restorable.snapshot("main", "c") is None


# -- decisions for different sides -----------------------------------------------------------------


def both_came_back(catalog: Catalog) -> None:
    for name in ("a", "d"):
        origin = RestoredFrom(catalog.head("earlier"), key(name))
        content = catalog.repository.content("earlier", key(name))
        catalog.commit("main", "back", Put(key(name), content, restored_from=origin))


def both_came_back_and_were_swapped(catalog: Catalog) -> None:
    both_came_back(catalog)
    for pair in (("a", "t"), ("d", "a"), ("t", "d")):
        catalog.rename("main", *pair)


def both_came_back_and_were_moved_on(catalog: Catalog) -> None:
    both_came_back(catalog)
    catalog.rename("main", "a", "c")
    catalog.rename("main", "d", "a")
    catalog.create("main", "d", 60)


def one_came_back_at_the_key_of_the_other(catalog: Catalog) -> None:
    came_back(catalog, "d")
    catalog.create("main", "a", 60)


def renamed_crosswise(catalog: Catalog) -> None:
    catalog.rename("main", "a", "c")
    catalog.rename("main", "d", "b")


def two_restored(nessie: InProcess, catalog: Catalog) -> None:
    catalog.repository.create_reference(ReferenceType.TAG, "earlier", catalog.head("main"))
    catalog.drop("main", "a")
    catalog.drop("main", "d")
    assert nessie("restore", "a", "d", "--at", "earlier").code == 0


def two_renamed(nessie: InProcess, catalog: Catalog) -> None:
    rename(nessie, "a", "b")
    rename(nessie, "d", "c")


class Crossed(NamedTuple):
    """Two staged changes, each with the key of the other's table.

    If only the change of `taken` is kept, it would delete a table, because that of `left` is not.
    """

    stage: Callable[[InProcess, Catalog], None]
    other: Callable[[Catalog], None]
    taken: str
    left: str


CROSSED = [
    Crossed(two_restored, both_came_back_and_were_swapped, "a", "d"),
    Crossed(two_restored, both_came_back_and_were_moved_on, "a", "d"),
    Crossed(two_restored, one_came_back_at_the_key_of_the_other, "d", "a"),
    Crossed(two_renamed, renamed_crosswise, "b", "d"),
]


@pytest.mark.parametrize("crossed", CROSSED)
def test_no_decision_for_one_of_two_deletes_a_table_that_no_answer_named(
    nessie: InProcess, anywhere: Catalog, tmp_path: Path, crossed: Crossed
) -> None:
    stage, other, taken, left = crossed
    stage(nessie, anywhere)
    other(anywhere)
    attempt = Attempt(nessie, anywhere, tmp_path)
    names = [".".join(conflict["key"]["elements"]) for conflict in attempt.conflicts()]
    attempt.batch = attempt.file.read_bytes()
    combinations = product(["--proposed", "--current"], repeat=len(names))
    attempt.decide_each(names, combinations)
    edits = [edit for edit in attempt.edits if taken in map(str, edit.keys)]
    own = {str(k) for edit in edits for k in edit.keys}
    sides = ["--proposed" if name in own else "--current" for name in names]
    ran = nessie("resolve", *decisions(names, sides), "-m", "mine")
    assert ran.code == 2, ran
    assert f"keeping the staged change of {taken} would delete the present {taken}" in ran.err
    assert left in ran.err.partition("because the staged change of ")[2].partition(" is not")[0]
    lines = [line for line in ran.err.split("`") if line.startswith("nessie resolve")]
    assert [line.split()[2] for line in lines] == ["--proposed", "--current"]
    for line in lines:
        assert attempt.decide(shlex.split(line)[2:]) is not None, line
        attempt.again()


@pytest.mark.parametrize("answers", ["p\nc\n", "c\np\n"])
def test_answers_that_would_delete_a_table_that_none_of_them_named_change_nothing(
    answering: Answering, nessie: InProcess, anywhere: Catalog, tmp_path: Path, answers: str
) -> None:
    two_restored(nessie, anywhere)
    both_came_back_and_were_swapped(anywhere)
    attempt = Attempt(nessie, anywhere, tmp_path)
    code, seen = answering(answers, "resolve", "-m", "mine")
    assert code == 1, seen
    assert "the decisions contradict each other" in seen
    assert "please answer again" in " ".join(seen.split())
    assert (attempt.file.read_bytes(), anywhere.head("main")) == (attempt.batch, attempt.head)


def staged_at_random(rng: random.Random, nessie: InProcess, keys: tuple[str, ...] = KEYS) -> None:
    """Stages changes of random keys. Some of them are refused."""
    for number in range(rng.randint(1, 5)):
        old, new = rng.sample(keys, 2)
        match rng.randrange(6):
            case 0 | 1:
                rename(nessie, old, new)
            case 2:
                words = ("--metadata-location", f"s3://mine-{number}", "--snapshot-id", "9")
                nessie("content", "put", old, *words)
            case 3:
                words = ("--type", "iceberg-table", "--metadata-location", f"s3://new-{number}")
                nessie("content", "put", old, "--new", *words)
            case 4:
                nessie("content", "delete", old)
            case _:
                words = ("--type", "iceberg-table", "--metadata-location", f"s3://re-{number}")
                nessie("content", "replace", old, *words)


def changed_at_random(rng: random.Random, catalog: Catalog) -> None:
    """Commits changes of another writer."""
    for number in range(rng.randint(1, 5)):
        old, new = rng.sample(KEYS, 2)
        present = {str(name) for name in state_of(catalog.repository)}
        if old not in present:
            catalog.commit("main", "new", Put(key(old), table(f"other-{number}", 100 + number)))
        elif new not in present and rng.random() < 0.6:
            catalog.rename("main", old, new)
        elif rng.random() < 0.5:
            catalog.update("main", old, 200 + number)
        else:
            catalog.drop("main", old)


@pytest.mark.parametrize("seed", range(COUNT))
def test_random_batches_and_branches_lose_nothing_unsaid(
    nessie: InProcess, lake: Catalog, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    staged_at_random(rng, nessie)
    if not (tmp_path / ".nessie" / "batch.json").exists():
        return
    changed_at_random(rng, lake)
    attempt = Attempt(nessie, lake, tmp_path)
    conflicts = attempt.conflicts()
    attempt.batch = attempt.file.read_bytes() if conflicts else attempt.batch
    for conflict in conflicts:
        for line, effect in zip(conflict["resolutions"], conflict["effects"], strict=True):
            attempt.paste(line, effect, conflict)
            attempt.again()
    attempt.paste_together(conflicts)
    names = [".".join(conflict["key"]["elements"]) for conflict in conflicts]
    if names:
        sides = ["--proposed", "--proposed", "--current"]
        attempt.decide_each(names, ([rng.choice(sides) for _ in names] for _ in range(3)))


@pytest.mark.parametrize("seed", range(100, 100 + COUNT))
def test_random_batches_with_a_restored_table_never_double_it(
    nessie: InProcess, lake: Catalog, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    lake.repository.create_reference(ReferenceType.TAG, "earlier", lake.head("main"))
    lake.drop("main", "a")
    restore(nessie)
    staged_at_random(rng, nessie)
    if not (tmp_path / ".nessie" / "batch.json").exists():
        return
    came_back(lake, rng.choice([name for name in KEYS if name != "d"]))
    changed_at_random(rng, lake)
    attempt = Attempt(nessie, lake, tmp_path)
    check_every_line(attempt)
