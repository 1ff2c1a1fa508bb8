"""A folder as the source of an import: its tables, and their current metadata files."""

from __future__ import annotations

import os
import random
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput, NotAllowed
from nessie_cli.importing.opening import open_source
from nessie_cli.importing.source import Listing, Name, SourceContent, SourceKind, SourceNamespace
from tests.importing.table_folders import NO_SNAPSHOT, TEMPLATE, TableFolder, numbered, versions


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    folder = tmp_path / "lake"
    folder.mkdir()
    return folder


@pytest.fixture
def orders(lake: Path) -> TableFolder:
    return TableFolder(lake / "sales.db" / "orders")


def listed(lake: Path | str, *namespaces: Name) -> Listing:
    source = open_source(str(lake))
    try:
        return source.listing(namespaces)
    finally:
        source.close()


def only(lake: Path) -> SourceContent:
    """Returns the only content, of a listing without problems."""
    listing = listed(lake)
    assert not listing.problems
    (content,) = listing.contents
    return content


def file_of(content: SourceContent) -> str:
    return content.metadata_location.rpartition("/")[2]


def messages(listing: Listing) -> list[str]:
    return [problem.message for problem in listing.problems]


def left_out(listing: Listing) -> list[str]:
    return [entry.message for entry in listing.left_out]


# -- names ----------------------------------------------------------------------------------------


def test_the_name_is_the_path_without_the_suffix_of_hive(lake) -> None:
    for path in ("a/t", "a/b/t", "c.db/d.db/t.db", "t"):
        TableFolder(lake / path).chain([*versions(2)])
        TableFolder(lake / path).hint("2")
    listing = listed(lake)
    assert [content.name for content in listing.contents] == [
        ("a", "b", "t"),
        ("a", "t"),
        ("c", "d", "t.db"),
        ("t",),
    ]
    assert listing.namespaces == [
        SourceNamespace(name) for name in [("a",), ("a", "b"), ("c",), ("c", "d")]
    ]
    assert not listing.problems
    assert not listing.left_out


def test_the_folder_of_one_table_is_a_source_too(lake, orders) -> None:
    orders.write("v1.metadata.json")
    orders.hint("1")
    assert only(orders.folder).name == ("orders",)


def test_the_folder_of_metadata_files_is_refused_with_the_way_out(lake, orders) -> None:
    orders.write("v1.metadata.json")
    with pytest.raises(InvalidInput, match=r"has the metadata files of one table.*name the folder"):
        listed(orders.metadata)


def test_two_folders_of_one_name_are_a_problem_that_names_both(lake, orders) -> None:
    for folder in (orders, TableFolder(lake / "sales" / "orders")):
        folder.write("v1.metadata.json")
        folder.hint("1")
    listing = listed(lake)
    assert not listing.contents
    assert messages(listing) == [
        f"several folders have this name: {lake}/sales.db/orders and {lake}/sales/orders"
    ]


def test_only_the_chosen_namespaces_are_searched(lake) -> None:
    for path in ("a.db/t", "a.db/b/t", "c/t"):
        TableFolder(lake / path).write("v1.metadata.json")
        TableFolder(lake / path).hint("1")
    (lake / "c" / "unreadable").mkdir()
    listing = listed(lake, ("a", "b"), ("a", "b"), ("nowhere",))
    assert [content.name for content in listing.contents] == [("a", "b", "t")]
    assert [(problem.name, problem.message) for problem in listing.problems] == [
        (("nowhere",), "no such namespace")
    ]
    assert [content.name for content in listed(lake, ("a",)).contents] == [
        ("a", "b", "t"),
        ("a", "t"),
    ]


# -- with a hint ----------------------------------------------------------------------------------


def test_the_hint_says_what_is_current(lake, orders) -> None:
    orders.chain(versions(3))
    orders.hint("3")
    content = only(lake)
    assert content == SourceContent(
        ("sales", "orders"),
        SourceKind.TABLE,
        f"{orders.metadata}/v3.metadata.json",
        version=f"{orders.uuid} {TEMPLATE['last-updated-ms']}",
    )


def test_versions_after_the_hint_without_a_gap_are_current(lake, orders) -> None:
    orders.chain([*versions(4), "v6.metadata.json"])
    orders.hint("2")
    assert (file_of(only(lake)), only(lake).guess) == ("v4.metadata.json", "")


@pytest.mark.parametrize("name", ["v2.gz.metadata.json", "v2.metadata.json.gz"])
def test_compressed_files_are_current_in_both_spellings(lake, orders, name) -> None:
    orders.chain(["v1.metadata.json", name])
    orders.hint("1")
    assert (file_of(only(lake)), only(lake).guess) == (name, "")


def test_a_hint_may_name_a_file(lake, orders) -> None:
    names = [numbered(0), numbered(1)]
    orders.chain(names)
    orders.hint(names[0].removesuffix(".metadata.json"))
    assert (file_of(only(lake)), only(lake).guess) == (names[0], "")


def test_a_hint_without_its_file_is_a_problem(lake, orders) -> None:
    orders.chain(versions(2))
    orders.hint("7")
    assert messages(listed(lake)) == ["version-hint.text names version 7, which does not exist"]


def test_two_files_of_the_hinted_version_are_a_problem(lake, orders) -> None:
    orders.chain(["v1.metadata.json", "v1.gz.metadata.json"])
    orders.hint("1")
    assert messages(listed(lake)) == [
        "several files have one version: v1.gz.metadata.json, v1.metadata.json"
    ]


def test_a_table_that_moved_to_another_catalog_is_a_guess(lake, orders) -> None:
    # Hive and PyIceberg begin to count from 0 after a table of Hadoop's catalog was registered.
    newer = [numbered(0), numbered(1)]
    orders.chain([*versions(3), *newer])
    orders.hint("3")
    content = only(lake)
    assert file_of(content) == newer[1]
    assert content.guess.startswith(
        "version-hint.text names version 3, but another catalog went on"
    )


def test_files_that_do_not_follow_the_hinted_one_do_not_count(lake, orders) -> None:
    orders.chain(versions(3))
    orders.write(numbered(9))
    (orders.metadata / numbered(8)).write_text("damaged")
    orders.hint("3")
    assert (file_of(only(lake)), only(lake).guess) == ("v3.metadata.json", "")


def test_a_file_that_hadoop_has_not_renamed_yet_is_no_version(lake, orders) -> None:
    orders.chain(versions(2))
    orders.write("12345678-9abc-4def-8123-456789abcdef.metadata.json", versions(2))
    assert file_of(only(lake)) == "v2.metadata.json"


# -- without a hint -------------------------------------------------------------------------------


@pytest.mark.parametrize("hint", [None, "", "two", "-1", "\xb2"])
def test_without_a_hint_that_is_a_number_the_newest_file_is_a_guess(lake, orders, hint) -> None:
    orders.chain(versions(3))
    if hint is not None:
        orders.hint(hint)
    content = only(lake)
    assert file_of(content) == "v3.metadata.json"
    assert "version-hint.text" in content.guess


def test_the_newest_file_may_never_have_been_committed(lake, orders) -> None:
    names = [numbered(number) for number in range(3)]
    orders.chain(names)
    content = only(lake)
    assert file_of(content) == names[2]
    assert content.guess == (
        "there is no version-hint.text; the newest metadata file may never have been committed"
    )


def test_two_tips_are_a_problem_that_names_both(lake, orders) -> None:
    names = [numbered(0), numbered(1)]
    orders.chain(names)
    tips = [orders.write(numbered(2), names) for _ in range(2)]
    assert messages(listed(lake)) == [
        f"several metadata files may be current: {', '.join(sorted(tips))}"
    ]


def test_a_shorter_branch_is_counted(lake, orders) -> None:
    names = [numbered(number) for number in range(4)]
    orders.chain(names)
    orders.write(numbered(1), names[:1])
    content = only(lake)
    assert file_of(content) == names[3]
    assert content.guess.endswith("; files that are not in its metadata log: 1")


def test_only_some_of_a_thousand_metadata_files_are_read(lake, orders, monkeypatch) -> None:
    names = [numbered(number) for number in range(1000)]
    orders.chain(names)
    reads: list[str] = []
    from nessie_cli.iceberg.files import Files

    read = Files.read
    monkeypatch.setattr(Files, "read", lambda self, uri: reads.append(uri) or read(self, uri))
    content = only(lake)
    assert file_of(content) == names[-1]
    assert "not in its metadata log" not in content.guess
    assert len(reads) <= 12


def test_a_table_that_was_dropped_and_created_again_is_a_problem(lake, orders) -> None:
    old = [numbered(number) for number in range(3)]
    orders.chain(old)
    again = TableFolder(orders.folder)
    again.chain([numbered(0), numbered(1)])
    (message,) = messages(listed(lake))
    assert message.startswith("the folder has files of two tables: " + old[2])


def test_a_staged_file_beside_a_table_is_left_out(lake, orders) -> None:
    names = [numbered(0), numbered(1)]
    orders.chain(names)
    staged = TableFolder(orders.folder).write(numbered(0), **NO_SNAPSHOT)
    listing = listed(lake)
    assert [file_of(content) for content in listing.contents] == [names[1]]
    assert [message.partition(" ")[0] for message in left_out(listing)] == [staged]


def test_a_table_that_may_be_staged_only_is_left_out(lake, orders) -> None:
    orders.write(numbered(0), **NO_SNAPSHOT)
    listing = listed(lake)
    assert not listing.contents
    (message,) = left_out(listing)
    assert message.startswith("its only metadata file has no snapshot: the table is empty, or")
    assert messages(listing) == ["has no table or view of Iceberg that is current"]


def test_a_dropped_table_whose_files_are_gone_is_left_out(lake, orders) -> None:
    orders.chain([numbered(0), numbered(1)])
    orders.list.unlink()
    (message,) = left_out(listed(lake))
    assert "the manifest list of its snapshot is missing" in message


def test_a_folder_with_manifests_only_is_left_out(lake, orders) -> None:
    listing = listed(lake)
    assert left_out(listing) == ["has manifests, but no metadata file: the table was deleted"]


def test_copies_of_an_import_and_what_follows_them_do_not_count(lake, orders) -> None:
    """A repository that imported the table writes into its folder, too, on any branch."""
    first, copy, ours = numbered(4), ".nessie-import-1.metadata.json", numbered(5)
    orders.write(first)
    orders.write(copy, [first])
    assert file_of(only(lake)) == first
    orders.write(ours, [first, copy])
    more = [numbered(number) for number in range(6, 300)]
    for at, name in enumerate(more):
        # Engines keep the newest 100 entries of a log.
        orders.write(name, [first, copy, ours, *more[:at]][-100:])
    listing = listed(lake)
    assert [file_of(content) for content in listing.contents] == [first]
    assert "written after an import" in listing.left_out[0].message
    theirs = orders.write(numbered(5), [first])
    assert file_of(only(lake)) == theirs


@pytest.mark.parametrize("copy", [".nessie-import-1.metadata.json", ""])
def test_the_hint_holds_while_engines_write_for_a_repository(lake, orders, copy) -> None:
    orders.chain(versions(3))
    orders.hint("3")
    orders.write("00000-8f14e45f-ceea-467f-a1d1-0123456789ab.metadata.json", [*versions(3), copy])
    guess = only(lake).guess
    assert (guess == "") == bool(copy)


@pytest.mark.parametrize("hint", ["9" * 100_000, "\u0661", "\xb2", "-1"])
def test_a_hint_that_is_no_version_is_not_followed(lake, orders, hint) -> None:
    orders.chain(versions(2))
    orders.hint(hint)
    assert "is not a number" in only(lake).guess


def test_a_view_is_a_view(lake) -> None:
    folder = TableFolder(lake / "db" / "v")
    folder.view(numbered(0))
    name = folder.view(numbered(1))
    content = only(lake)
    assert (content.kind, file_of(content)) == (SourceKind.VIEW, name)
    assert content.guess.endswith("may never have been committed")
    folder.hint(name)
    assert (file_of(only(lake)), only(lake).guess) == (name, "")


@pytest.mark.parametrize("seed", range(120))
def test_a_file_is_never_trusted_unless_it_was_committed(lake, orders, seed) -> None:
    """Random histories: Hadoop's catalog, then perhaps another one, with commits that failed."""
    chance = random.Random(seed)
    history: list[str] = []
    for name in versions(chance.randrange(0, 6)):
        history.append(orders.write(name, history))
        if chance.random() < 0.7:
            orders.hint(str(len(history)))
    has_moved = not history or chance.random() < 0.5
    rivals: list[str] = []
    failed: list[str] = []
    for number in range(chance.randrange(1, 6) if has_moved else 0):
        history.append(orders.write(numbered(number), history))
        # A failed commit leaves a file with the number of the next one.
        rivals = failed
        failed = [
            orders.write(numbered(number + 1), history)
            for _ in range(chance.choice([0, 0, 0, 1, 2]))
        ]
    listing = listed(lake)
    if len(failed) > 1 or (rivals and not failed):
        assert "several metadata files may be current" in messages(listing)[0]
        return
    (content,) = listing.contents
    has_hint = (orders.metadata / "version-hint.text").exists()
    # The file of a failed commit looks like that of a commit, so it is never trusted.
    assert file_of(content) == (failed or history)[-1]
    assert bool(content.guess) is (has_moved or not has_hint)


# -- places ---------------------------------------------------------------------------------------


def test_a_copied_folder_is_a_problem_that_names_the_original(lake, orders) -> None:
    orders.write("v1.metadata.json", location="s3://elsewhere/orders")
    orders.hint("1")
    (message,) = messages(listed(lake))
    assert message.startswith("its metadata file says that it is in s3://elsewhere/orders: this")


def test_other_spellings_of_the_location_are_the_same(lake, orders) -> None:
    orders.write("v1.metadata.json", location=f"file:{orders.folder}/")
    orders.hint("1")
    for root in (str(lake), f"file://{lake}"):
        (content,) = listed(root).contents
        # The spelling of the table's writer: other engines may read a plain path elsewhere.
        assert content.metadata_location == f"file:{orders.metadata}/v1.metadata.json"


def test_a_damaged_file_is_a_problem_that_names_it(lake, orders) -> None:
    (orders.metadata / "v1.metadata.json").write_text("{")
    orders.hint("1")
    (problem,) = listed(lake).problems
    assert problem.name == ("sales", "orders")
    assert problem.message.startswith(f"{orders.metadata}/v1.metadata.json: truncated")


def test_an_empty_folder_is_a_problem(lake) -> None:
    listing = listed(lake)
    assert [(problem.location, problem.message) for problem in listing.problems] == [
        (str(lake), "has no table or view of Iceberg that is current")
    ]


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody may read. Permissions do not bind a superuser, so the test drops
    these rights."""
    folder = Path(tempfile.mkdtemp(dir="/tmp"))
    folder.chmod(0o777)
    superuser = os.geteuid() == 0
    if superuser:
        os.seteuid(65534)
    yield folder
    if superuser:
        os.seteuid(0)
    shutil.rmtree(folder)


def test_an_unreadable_folder_is_a_problem_and_the_others_are_listed(shared: Path) -> None:
    orders = TableFolder(shared / "sales" / "orders")
    orders.write("v1.metadata.json")
    orders.hint("1")
    for name in ("closed", "damaged/metadata"):
        (shared / name).mkdir(parents=True)
        (shared / name).chmod(0)
    listing = listed(shared)
    assert [content.name for content in listing.contents] == [("sales", "orders")]
    assert [(problem.location, problem.message) for problem in listing.problems] == [
        (f"{shared}/{place}", f"{shared}/{folder} cannot be listed: Permission denied")
        for place, folder in (("closed", "closed"), ("damaged", "damaged/metadata"))
    ]
    with pytest.raises(NotAllowed, match="Permission denied"):
        listed(shared / "closed")
    (shared / "damaged/metadata").chmod(0o700)


def test_an_unreadable_metadata_file_is_a_problem(shared: Path) -> None:
    orders = TableFolder(shared / "orders")
    (orders.metadata / orders.write("v1.metadata.json")).chmod(0)
    orders.hint("1")
    (message,) = messages(listed(shared))
    assert message == f"{orders.metadata}/v1.metadata.json cannot be read: Permission denied"


def test_symbolic_links_are_left_out_so_loops_end(lake, orders) -> None:
    orders.write("v1.metadata.json")
    orders.hint("1")
    (lake / "loop").symlink_to(lake)
    (lake / "self").symlink_to(lake / "self")
    (lake / "gone").symlink_to(lake / "nowhere")
    (lake / "sales.db" / "up").symlink_to(lake / "sales.db")
    listing = listed(lake)
    assert [content.name for content in listing.contents] == [("sales", "orders")]
    assert [entry.location for entry in listing.left_out] == [
        f"{lake}/loop",
        f"{lake}/sales.db/up",
    ]
    # The root itself may be a link.
    assert [content.name for content in listed(lake / "loop").contents] == [("sales", "orders")]


def test_other_formats_and_partitions_are_left_out(lake) -> None:
    for path in ("delta/_delta_log", "hudi/.hoodie", "plain/day=1/hour=2", ".Trash/t/metadata"):
        (lake / path).mkdir(parents=True)
    listing = listed(lake)
    assert [(entry.location.rpartition("/")[2], entry.message) for entry in listing.left_out] == [
        (".Trash", "is a hidden folder, which is not searched"),
        ("delta", "is a table of Delta Lake"),
        ("hudi", "is a table of Hudi"),
        ("plain", "has folders of partitions, but no metadata of Iceberg"),
    ]


def test_300_tables_are_listed_with_progress(lake) -> None:
    for number in range(300):
        folder = TableFolder(lake / f"db{number % 10}" / f"t{number}")
        folder.chain(versions(3))
        folder.hint("3")
    seen: list[tuple[int, int | None]] = []
    source = open_source(str(lake))
    listing = source.listing([], lambda done, total: seen.append((done, total)))
    assert (len(listing.contents), len(listing.namespaces)) == (300, 10)
    assert seen[-1] == (311, None)
