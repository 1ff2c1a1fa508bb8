"""Partly typed keys, and the elements that may follow, agree with keys in every other
command."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nessie_cli import CommitMeta, ContentKey, IcebergTable, InvalidInput, Namespace, Put
from nessie_cli.cli.completion import keys
from nessie_cli.cli.completion.revisions import Revisions
from nessie_cli.kernel.objects import Cache, Objects
from nessie_cli.repository.opening import create
from nessie_cli.revisions import Revision

ELEMENTS = st.text(
    st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6
) | st.sampled_from(["a", "b", "a b", "a.b", 'a"b', '"', "."])
KEYS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)


def text_of(element):
    return str(ContentKey((element,)))


def found_in(repository, typed):
    at = Revision(None, repository.resolve("main").hash)
    return keys.keys(repository, at, typed)


@given(KEYS, ELEMENTS)
@settings(print_blob=True)
def test_a_partly_typed_key_is_split_as_it_was_written(above, last):
    text = ".".join(map(text_of, above)) + "."
    found = keys.begun(text + text_of(last))

    assert found == (above, text, text_of(last))


@given(st.text("ab.\" '", max_size=12))
@settings(print_blob=True)
def test_any_input_is_accepted(text):
    found = keys.begun(text)
    if found is not None and found[0]:
        assert ContentKey.parse(found[1][:-1]).elements == found[0]


def test_an_empty_key_is_split():
    assert keys.begun("a..b") is None
    assert keys.begun('"a"b.c') is None
    assert keys.begun("") == ((), "", "")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A repository with several levels in its tree and many names; returns the keys by their
    elements."""
    path = str(tmp_path_factory.mktemp("large") / "store.sqlite")
    namespaces = {("n",), ("n", "deep")}
    wanted = [
        ("n",),
        *(("n", f"t{i:04}") for i in range(3000)),
        *((f"top{i}",) for i in range(300)),
        ("n", "deep"),
        ("n", "deep", "é"),
        ("n", "deep", "z"),
        ("n x",),
    ]
    contents = {
        elements: Namespace(elements=elements)
        if elements in namespaces
        else IcebergTable(metadata_location="s3://x")
        for elements in wanted
    }
    with create(path) as repository:
        repository.commit(
            "main",
            [Put(ContentKey(elements), content) for elements, content in contents.items()],
            CommitMeta("load"),
        )
        yield repository, sorted(wanted)


def elements_below(wanted, above, begun):
    below = [
        elements
        for elements in wanted
        if elements[: len(above)] == above and len(elements) > len(above)
    ]
    return list(
        dict.fromkeys(
            elements[len(above)] for elements in below if elements[len(above)].startswith(begun)
        )
    )


@pytest.mark.parametrize("above", [(), ("n",), ("n", "deep"), ("top1",), ("zzz",)])
@pytest.mark.parametrize("begun", ["", "t", "t1", "t29", "to", "top299", "zz", "d"])
def test_the_next_elements_come_from_the_tree(large, above, begun):
    repository, wanted = large
    typed = "".join(f"{element}." for element in above)
    found = found_in(repository, typed + begun)
    texts = {text_of(element): element for element in elements_below(wanted, above, begun)}
    assert [text.removeprefix(typed).removesuffix(".") for text, _ in found] == list(texts)
    namespaces = {
        texts[text.removeprefix(typed)[:-1]]
        for text, type_ in found
        if type_ == "namespace" and text.endswith(".")
    }
    assert namespaces == {
        element for element in texts.values() if (*above, element) in {("n",), ("n", "deep")}
    }
    assert all((type_ == "namespace") == text.endswith(".") for text, type_ in found)


def test_skipping_the_keys_below_an_element_reads_few_nodes(large):
    repository, _ = large
    objects = repository._objects = Objects(repository._store.get, Cache())
    assert found_in(repository, "n") == [("n.", "namespace"), ('"n x"', "iceberg-table")][:1]
    # Two descents of the tree read a few leaves ahead each; the keys below `n` are in more than a
    # hundred leaves.
    assert objects.node_reads < 12


def test_an_empty_history_has_no_elements():
    with create("memory:") as repository:
        names = Revisions(repository, "main")
        assert (found_in(repository, ""), names.hashes(""), names.revisions("main~")) == (
            [],
            [],
            [],
        )


def test_only_elements_with_keys_below_them_end_with_a_dot():
    with create("memory:") as repository:
        full, empty = ContentKey(("full",)), ContentKey(("empty",))
        puts = [Put(key, Namespace(elements=key.elements)) for key in (full, empty)]
        table = Put(ContentKey(("full", "t")), IcebergTable(metadata_location="s3://x"))
        repository.commit("main", [*puts, table], CommitMeta("load"))
        assert found_in(repository, "") == [("empty", "namespace"), ("full.", "namespace")]


def test_invalid_keys_are_also_invalid_for_commands():
    for text in ("a..b", '"a"b.c'):
        with pytest.raises(InvalidInput):
            ContentKey.parse(text)
