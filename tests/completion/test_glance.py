"""What a keystroke reads agrees with what everybody else reads."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nessie_cli import CommitMeta, ContentKey, IcebergTable, InvalidInput, Namespace, Put
from nessie_cli.cli.completion import catalog, keys
from nessie_cli.cli.resolutions import TYPE_OPTION
from nessie_cli.kernel import glance
from nessie_cli.kernel.forms import Kind, decode_commit
from nessie_cli.model import NO_ANCESTOR, TYPE_OF_PAYLOAD
from nessie_cli.repository.local import LocalRepository
from nessie_cli.repository.local_reading import DEFAULT_BRANCH
from nessie_cli.repository.opening import create
from nessie_cli.store.opening import open_store

values = st.recursive(
    st.integers(0, 2**64 - 1) | st.text(max_size=300) | st.binary(max_size=300), lambda inner: st.lists(inner, max_size=40), max_leaves=100
)


@given(values)
@settings(print_blob=True, max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_bytes_mean_the_same(value):
    assert glance.decode(msgspec.msgpack.encode(value)) == value


@pytest.mark.parametrize("length", [0, 31, 32, 255, 256, 65535, 65536])
def test_bytes_of_every_length(length):
    for value in (b"x" * length, "x" * length, [1] * length):
        assert glance.decode(msgspec.msgpack.encode(value)) == value


def test_other_bytes_are_refused():
    with pytest.raises(ValueError, match="192"):
        glance.decode(msgspec.msgpack.encode(None))


def test_constants_are_those_of_the_format():
    assert catalog.DEFAULT_BRANCH == DEFAULT_BRANCH
    assert Kind.COMMIT == glance.COMMIT_KIND
    assert {payload: TYPE_OPTION[name] for payload, name in TYPE_OF_PAYLOAD.items()} == catalog.TYPE_NAMES
    assert TYPE_OF_PAYLOAD[glance.NAMESPACE] == "NAMESPACE"


ELEMENTS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=6) | st.sampled_from(
    ["a", "b", "a b", "a.b", 'a"b', '"', "."]
)
KEYS = st.lists(ELEMENTS, min_size=1, max_size=4).map(tuple)


@given(KEYS)
@settings(print_blob=True)
def test_the_text_of_a_key_is_the_one_of_every_listing(elements):
    assert ".".join(map(keys.text_of, elements)) == str(ContentKey(elements))


@given(KEYS, ELEMENTS)
@settings(print_blob=True)
def test_a_key_that_has_been_begun_is_taken_apart_as_it_was_written(above, last):
    text = ".".join(map(keys.text_of, above)) + "."
    found = keys.begun(text + keys.text_of(last))

    assert found == (above, text, keys.text_of(last))


@given(st.text("ab.\" '", max_size=12))
@settings(print_blob=True)
def test_whatever_is_typed_never_fails(text):
    found = keys.begun(text)
    if found is not None and found[0]:
        assert ContentKey.parse(found[1][:-1]).elements == found[0]


def test_no_key():
    assert keys.begun("a..b") is None
    assert keys.begun('"a"b.c') is None
    assert keys.begun("") == ((), "", "")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A store whose tree has several levels, with many names in it; the keys by their elements."""
    path = str(tmp_path_factory.mktemp("large") / "store.sqlite")
    wanted = [
        ("n",),
        *(("n", f"t{i:04}") for i in range(3000)),
        *((f"top{i}",) for i in range(300)),
        ("n", "deep"),
        ("n", "deep", "é"),
        ("n", "deep", "z"),
    ]
    with create(path) as repository:
        assert isinstance(repository, LocalRepository)
        operations = [
            Put(
                ContentKey(elements),
                Namespace(elements=elements) if elements in (("n",), ("n", "deep")) else IcebergTable(metadata_location="s3://x"),
            )
            for elements in wanted
        ]
        repository.commit("main", operations, CommitMeta("load " + "long " * 300))
        head = repository.reference("main").hash
    store = open_store(path)
    yield store, bytes.fromhex(head), sorted(wanted)
    store.close()


def elements_below(wanted, above, begun):
    below = [elements for elements in wanted if elements[: len(above)] == above and len(elements) > len(above)]
    return list(dict.fromkeys(elements[len(above)] for elements in below if elements[len(above)].startswith(begun)))


@pytest.mark.parametrize("above", [(), ("n",), ("n", "deep"), ("top1",), ("zzz",)])
@pytest.mark.parametrize("begun", ["", "t", "t1", "t29", "to", "top299", "zz", "d"])
def test_the_next_elements_are_those_of_the_tree(large, above, begun):
    store, head, wanted = large
    reads = []

    def fetch(id_):
        reads.append(id_)
        return store.get([id_]).get(id_)

    root = glance.root(fetch(head))
    found = list(glance.elements(fetch, root, above, begun))

    assert [element for element, _ in found] == elements_below(wanted, above, begun)
    namespaces = {element for element, payload in found if payload in (None, glance.NAMESPACE)}
    assert namespaces == {element for element, _ in found if (*above, element) in {("n",), ("n", "deep")}}
    assert len(reads) == len(set(reads)), "no node is read twice"


def test_passing_over_what_lies_below_an_element_reads_few_nodes(large):
    store, head, _ = large
    reads = []

    def fetch(id_):
        reads.append(id_)
        return store.get([id_]).get(id_)

    assert [element for element, _ in glance.elements(fetch, glance.root(fetch(head)), (), "n")] == ["n"]
    assert len(reads) < 10


def test_commits(large):
    store, head, _ = large
    data = store.get([head])[head]

    assert glance.subject(data) == "load " + "long " * 300 == decode_commit(data).message
    assert glance.root(data) == decode_commit(data).root
    assert glance.parents(data) == [bytes.fromhex(NO_ANCESTOR)] == list(decode_commit(data).parents)


def test_an_empty_history_has_nothing():
    assert list(glance.elements(lambda _: None, b"", (), "")) == []


def test_a_name_that_is_no_key_is_no_key_for_commands_either():
    for text in ("a..b", '"a"b.c'):
        with pytest.raises(InvalidInput):
            ContentKey.parse(text)
