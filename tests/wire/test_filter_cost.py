"""Filters whose evaluation could take long or much memory are refused before it begins."""

import time

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    Entry,
    LogEntry,
    Reference,
    ReferenceType,
)
from nessie_cli.wire.filters import FilterKind, compile_filter

ENTRY = Entry(ContentKey(("db", "t")), "ICEBERG_TABLE", "id", "hash")
BRANCH = Reference(ReferenceType.BRANCH, "main", "ab" * 32)
SOON = 1.0
"""Seconds in which a filter is tested or refused, on a busy machine."""


def commit(operations):
    keys = (ContentKey(("db", f"t{number}")) for number in range(operations))
    return LogEntry(CommitMeta("load"), 1, tuple(map(Delete, keys)))


def ones(number):
    return f"[{','.join(['1'] * number)}]"


HOSTILE = {
    "growing texts": "['a'].map(x, x+x+x+x)" + ".map(x, x+x+x+x)" * 12 + "[0].size() > 0",
    "growing lists": "[[1]].map(x, x+x+x+x)" + ".map(x, x+x+x+x)" * 12 + "[0].size() > 0",
    "growing maps": "[{'a': 1}]" + ".map(x, {'a': x, 'b': x, 'c': x})" * 13 + ".size() > 0",
    "growing texts in a condition": "['a']" + ".map(x, true ? x+x+x+x : x)" * 13 + ".size() > 0",
    "growing texts by strings": "['a']" + ".map(x, string(x+x+x+x))" * 13 + ".size() > 0",
    "growing texts by bytes": "['a']" + ".map(x, string(bytes(x+x+x+x)))" * 13 + ".size() > 0",
    "growing lists of lists": "[1]" + ".map(x, [x, x, x, x])" * 13 + ".size() > 0",
    "growing nested loops": "['a'].map(x, [x+x+x].map(y, [y+y+y].map(z, [z+z+z].map(w, w))))==[]",
    "a long result": f"{ones(4000)}.map(x, x + 1).size() > 0",
    "a long selection": f"{ones(4000)}.filter(x, x > 0).size() > 0",
    "loops over a result": f"{ones(90)}.map(x, {ones(90)}).exists(x, x.exists(y, y == 2))",
    "repetitions of a pattern": f"'{'a' * 2000}'.matches('(((a{{1,10}}){{1,10}}){{1,10}})b')",
    "many repetitions": "'aaaa'.matches('" + "(a{1,100}){1,9}" * 20 + "')",
    "open repetitions": "'aaaa'.matches('((a{100,}){100,})b')",
    "classes of Unicode": "'aaaa'.matches('" + r"\\pL" * 1000 + "')",
    "a pattern that is made": "'aaaa'.matches('a{1000}' + 'b{1000}')",
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_filter_that_could_take_long_is_refused_at_once(what):
    # Of this process, because others may keep the processors busy.
    begun = time.process_time()
    with pytest.raises(InvalidInput, match="filter: "):
        compile_filter(FilterKind.REFERENCES, HOSTILE[what])(BRANCH)
    assert time.process_time() - begun < SOON


LONG = "x" * 1_000_000
PARTS = {
    "an attribute": ("commit.message.contains(commit.author)", 300_000),
    "twice an attribute": ("commit.message.contains(commit.author + commit.author)", 150_000),
    "a text": (f"commit.message.contains('{'x' * 9_000}y')", 1),
    "a text within a loop": ("['xy', 'xxy', 'xxxy'].exists(t, commit.message.contains(t))", 1),
    "an attribute as a list": ("[commit.author].exists(t, commit.message.contains(t))", 300_000),
}


@pytest.mark.parametrize("what", PARTS)
def test_a_long_text_is_not_looked_for_in_a_long_text(what):
    """Each place of the one is compared with all of the other, up to its last byte."""
    text, length = PARTS[what]
    author = "x" * length + "y"
    entry = LogEntry(CommitMeta(LONG * 4, authors=(author,)), 1, ())
    begun = time.process_time()
    with pytest.raises(InvalidInput, match="filter: could take too long"):
        compile_filter(FilterKind.LOG, text)(entry)
    assert time.process_time() - begun < SOON


@pytest.mark.parametrize(("text", "is_there"), [("x", True), ("xy", False), ("maintenance", False)])
def test_a_short_text_is_looked_for_in_a_long_text(text, is_there):
    entry = LogEntry(CommitMeta(LONG, authors=("a",)), 1, ())
    begun = time.process_time()
    test = compile_filter(FilterKind.LOG, f"commit.message.contains('{text}')")
    assert test(entry) is is_there
    assert time.process_time() - begun < SOON


def test_loops_over_loops_of_operations_are_refused_for_large_commits():
    each = "operations.all(a, operations.all(b, a.key == b.key || a.key != b.key))"
    test = compile_filter(FilterKind.LOG, each)
    assert test(commit(20))
    with pytest.raises(InvalidInput, match="could take too long for a record"):
        test(commit(2000))


@pytest.mark.parametrize(
    "text",
    [
        "operations.exists(op, op.namespace == 'db')",
        "operations.exists(op, op.keyElements.exists(e, e == 't1999'))",
        "operations.all(op, op.type in ['PUT', 'DELETE'])",
        "operations.exists_one(op, op.key == 'db.t7')",
        "operations.exists(op, op.name.matches('^t[0-9]+$'))",
        "commit.message.matches('^[a-z]{1,20}$') && commit.author == ''",
    ],
)
def test_a_filter_with_one_pass_over_a_large_commit_is_evaluated(text):
    assert compile_filter(FilterKind.LOG, text)(commit(2000)) in (True, False)


@pytest.mark.parametrize(
    "text",
    [
        "operations.exists(a, false)",
        "size(operations) == 1",
        "operations[0].name == 't0'",
        "commit.author == 'a' || operations == operations",
    ],
)
def test_the_operations_of_a_very_large_commit_are_not_converted(text):
    """The engine converts all of them in one call, also for a filter that reads one."""
    test, large = compile_filter(FilterKind.LOG, text), commit(50_000)
    begun = time.process_time()
    with pytest.raises(InvalidInput, match="for the 50,000 operations of a commit"):
        test(large)
    assert time.process_time() - begun < SOON


def test_long_keys_count_for_the_operations_of_a_commit():
    test = compile_filter(FilterKind.LOG, "size(operations) == 5000")
    keys = (ContentKey(("namespace" * 2,) * 19 + (f"t{n}",)) for n in range(5000))
    assert test(commit(5000))
    with pytest.raises(InvalidInput, match="could take too long"):
        test(LogEntry(CommitMeta("load"), 1, tuple(map(Delete, keys))))


def test_a_filter_on_commits_does_not_depend_on_their_operations():
    test = compile_filter(FilterKind.LOG, "commit.message == 'load'")
    large = commit(50_000)
    begun = time.process_time()
    assert test(large)
    assert time.process_time() - begun < SOON / 10


@pytest.mark.parametrize(
    "text",
    [
        f"{ones(90)}.all(a, {ones(90)}.all(b, a + b >= 0))",
        f"{ones(300)}.map(a, a + 1).size() == 300",
        f"{ones(4000)}.exists_one(a, a == 2) == false",
        "entry.keyElements.map(e, e + '/')[0] == 'db/'",
        "entry.key.matches('^(db|lake)[.][a-z_]{1,60}$')",
        "{'a': 1, 'b': 2}.all(k, k != entry.name)",
    ],
)
def test_small_loops_are_evaluated_fast(text):
    test = compile_filter(FilterKind.ENTRIES, text)
    begun = time.monotonic()
    assert test(ENTRY)
    assert time.monotonic() - begun < SOON


DENSE = {
    "empty lists": f"[{','.join(['[]'] * 3000)}].size() > 0",
    "empty maps": f"[{','.join(['{}'] * 3000)}].size() > 0",
    "lists of lists": f"[{','.join(['[[]]'] * 1800)}].size() > 0",
    "comparisons": " && ".join(["[[]] == [[]]"] * 600),
    "loops": " && ".join(["[].map(a, a) == []"] * 450),
    "parentheses": " && ".join(["((((((true))))))"] * 200),
}
"""Filters whose compilation would hold the interpreter for long."""


@pytest.mark.parametrize("what", DENSE)
def test_a_filter_with_many_brackets_is_not_compiled(what):
    with pytest.raises(InvalidInput, match="brackets, 1000 are allowed"):
        compile_filter(FilterKind.REFERENCES, DENSE[what])


def test_a_filter_with_some_brackets_is_compiled():
    text = " && ".join(["size('') == 0"] * 400 + ["('é' == 'é')"] * 200)
    assert compile_filter(FilterKind.REFERENCES, text)(BRANCH)


@pytest.mark.parametrize("text", ["é" * 9_990, "é'" * 3_000, 'é""é"' * 1_500])
def test_a_text_of_foreign_characters_is_not_compiled(text):
    with pytest.raises(InvalidInput, match="not ASCII"):
        compile_filter(FilterKind.REFERENCES, text)


def test_foreign_characters_in_quotes_are_compiled():
    text = f"ref.name != '{'é' * 4_000}' && ref.name != \"{'中' * 4_000}\""
    assert compile_filter(FilterKind.REFERENCES, text)(BRANCH)
