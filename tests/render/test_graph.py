from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nessie_cli.inspection.graph import Graph
from nessie_cli.render.graph import ASCII, UNICODE, Marks, drawn
from nessie_cli.render.spans import plain

Commits = Sequence[tuple[str, Sequence[str]]]
ROOT = "0"


def draw(commits: Commits, marks: Marks = UNICODE) -> list[str]:
    graph = Graph(ROOT)
    lines = []
    for name, parents in commits:
        commit = drawn(graph.add(name, parents), marks)
        lines += [plain(line).rstrip() for line in commit.above]
        lines.append(plain(commit.own) + name)
        lines += [plain(line).rstrip() for line in commit.below]
    return lines


LINE: Commits = [("c", "b"), ("b", "a"), ("a", "0")]
MERGE: Commits = [("m", "cf"), ("c", "b"), ("f", "e"), ("e", "b"), ("b", "0")]
CRISS_CROSS: Commits = [("p", "ab"), ("q", "ba"), ("a", "r"), ("b", "r"), ("r", "0")]
HEADS: Commits = [("x", "r"), ("y", "r"), ("z", "r"), ("r", "0")]
OCTOPUS: Commits = [("x", "abc"), ("a", "r"), ("b", "r"), ("c", "r"), ("r", "0")]
INTO_AN_OLDER_LANE: Commits = [("h", "g"), ("k", "j"), ("j", "ig"), ("i", "g"), ("g", "0")]
UNRELATED: Commits = [("a", "0"), ("b", "0"), ("c", "0")]
OPENS_TO_THE_LEFT: Commits = [
    ("p", "o"),
    ("q", "r"),
    ("o", "0"),
    ("r", "st"),
    ("s", "0"),
    ("t", "0"),
]


@pytest.mark.parametrize(
    ("commits", "picture"),
    [
        (LINE, ["● c", "● b", "● a"]),
        (MERGE, ["◎ m", "├─╮", "● │ c", "│ ● f", "│ ● e", "├─╯", "● b"]),
        (
            CRISS_CROSS,
            ["◎ p", "├─╮", "│ │ ◎ q", "├─┼─┤", "● │ │ a", "│ ├─╯", "│ ● b", "├─╯", "● r"],
        ),
        (HEADS, ["● x", "│ ● y", "│ │ ● z", "├─┼─╯", "├─╯", "● r"]),
        (OCTOPUS, ["◎ x", "├─╮", "├─┼─╮", "● │ │ a", "│ ● │ b", "│ │ ● c", "├─┼─╯", "├─╯", "● r"]),
        (INTO_AN_OLDER_LANE, ["● h", "│ ● k", "│ ◎ j", "├─┤", "│ ● i", "├─╯", "● g"]),
        (UNRELATED, ["● a", "  ● b", "● c"]),
        (OPENS_TO_THE_LEFT, ["● p", "│ ● q", "● │ o", "  ◎ r", "╭─┤", "│ ● s", "● t"]),
    ],
)
def test_pictures(commits: Commits, picture: list[str]) -> None:
    assert draw(commits) == picture


def test_ascii_without_line_drawing_characters() -> None:
    assert draw(MERGE, ASCII) == ["M m", "|-\\", "* | c", "| * f", "| * e", "|-/", "* b"]


@st.composite
def histories(draw_: st.DrawFn) -> Commits:
    """Commits, children first, each with up to three older parents."""
    count = draw_(st.integers(1, 14))
    commits = []
    for number in range(count):
        older = [str(n + 1) for n in range(number + 1, count)]
        parents = draw_(st.lists(st.sampled_from(older), max_size=3, unique=True)) if older else []
        commits.append((str(number + 1), parents or [ROOT]))
    return commits


def edges_in(lines: list[str], names: set[str]) -> set[tuple[str, str]]:
    """Read the edges back from a picture: who can be reached by following the lines down from a
    commit to the next one."""
    flows: dict[int, set[str]] = {}
    edges = set()
    last, last_at = "", -1
    for line in lines:
        if any(mark in line for mark in "●◎"):
            at = min(line.find(mark) for mark in "●◎" if mark in line) // 2
            name = line.split()[-1]
            assert name in names
            lanes = line.removesuffix(name)
            for column in list(flows):
                if lanes[column * 2 : column * 2 + 1].strip() == "":
                    del flows[column]
            edges |= {(child, name) for child in flows.get(at, set())}
            flows[at] = {name}
            last, last_at = name, at
            continue
        left = min(line.find(mark) for mark in "├╭" if mark in line) // 2
        right = max(line.rfind(mark) for mark in "╮╯┤") // 2
        if "╯" in line:
            flows[left] = flows[left] | flows.pop(right)
        else:
            other = left if right == last_at else right
            assert last_at in (left, right)
            flows[other] = (
                flows.get(other, set()) | {last} if line[other * 2] not in "╮╭" else {last}
            )
    return edges


@pytest.mark.slow
@settings(max_examples=300, deadline=None, print_blob=True)
@given(histories())
def test_the_picture_shows_every_parent_and_no_other(commits: Commits) -> None:
    names = {name for name, _ in commits}
    wanted = {(name, parent) for name, parents in commits for parent in parents if parent != ROOT}
    assert edges_in(draw(commits), names) == wanted


@settings(max_examples=100, deadline=None, print_blob=True)
@given(histories(), st.randoms(use_true_random=False))
def test_commits_out_of_order_are_drawn_too(commits: Commits, random) -> None:
    shuffled = list(commits)
    random.shuffle(shuffled)
    lines = draw(shuffled)
    assert [line.split()[-1] for line in lines if set(line) & set("●◎")] == [
        name for name, _ in shuffled
    ]


def test_a_commit_left_out_leads_to_its_parent() -> None:
    graph = Graph(ROOT)
    graph.add("c", ["b"])
    graph.skip("b", ["a"])
    assert plain(drawn(graph.add("a", [ROOT])).own) == "● "
    graph.skip("never seen", ["x"])
