"""Decisions about conflicts: each counts for the states that were shown with it."""

import re
from urllib.parse import urlencode

import pytest

from nessie_cli.model import (
    CommitMeta,
    ContentKey,
    Delete,
    IcebergTable,
    Namespace,
    Put,
    ReferenceType,
)
from nessie_cli.server.pages.changes import MOST_FIELDS, MOST_FIELDS_OF_ONE
from nessie_cli.server.pages.conflicts import CONFLICTS, MOST_DECIDED, MOST_EFFECTS
from tests.server.web.catalogs import decisions_of, namespace, put

MERGE = "/ui/merge?source=dev&into=main"


def states_of(repository, number, name="t{:04}"):
    """Makes `main` and `dev` with different states of this many tables; returns their keys."""
    keys = [ContentKey((name.format(n),)) for n in range(number)]
    for branch, version in (("main", 1), ("dev", 2), ("main", 3)):
        if branch == "dev":
            head = repository.reference("main").hash
            repository.create_reference(ReferenceType.BRANCH, "dev", head)
        change(repository, branch, keys, version)
    return keys


def change(repository, branch, keys, version):
    ids = {key: content.id for key, content in repository.contents(branch, keys).items()}
    tables = [
        IcebergTable(id=ids.get(key), metadata_location=f"file:/{n}-{version}", snapshot_id=version)
        for n, key in enumerate(keys)
    ]
    repository.commit(branch, list(map(Put, keys, tables)), CommitMeta(f"{branch} {version}"))


def version_of(repository, key):
    return repository.content("main", key).snapshot_id


def decided(browser, side="theirs"):
    """Decides all conflicts, and returns the fields of the form on the last page."""
    page = browser.get(MERGE)
    number = 1
    while True:
        fields = page.form("/ui/merge") | dict.fromkeys(decisions_of(page), side)
        if not any(each.attributes.get("value") == str(number + 1) for each in buttons(page)):
            return fields
        number += 1
        page = browser.get(f"/ui/merge?{urlencode(fields | {'conflicts': number})}")


def buttons(page):
    return [
        each
        for each in page.elements
        if each.tag == "button" and each.attributes.get("name") == "conflicts"
    ]


@pytest.mark.parametrize("sent", [False, True])
def test_a_state_that_was_not_shown_is_not_decided(browser, repository, sent):
    keys = states_of(repository, CONFLICTS + 5)
    fields = decided(browser)
    change(repository, "main", keys[-1:], 4)
    page = (
        browser.post("/ui/merge", **fields)
        if sent
        else browser.get(f"/ui/merge?{urlencode(fields)}")
    )
    assert page.status == (409 if sent else 200)
    assert "main has moved" in page.text
    assert ("Nothing was merged" in page.text) == sent
    assert "1 decision no longer applies" in page.text
    assert "1 conflict is left to decide" in page.text
    head = repository.reference("main").hash
    page = browser.post("/ui/merge", **page.form("/ui/merge"))
    assert "1 conflict is left to decide" in page.text
    assert repository.reference("main").hash == head
    # The state is shown on the last page, and decided there.
    page = browser.get(f"/ui/merge?{urlencode(page.form('/ui/merge') | {'conflicts': 2})}")
    assert f"file:/{0}-4" in page.text
    fields = page.form("/ui/merge")
    [undecided] = [name for name in decisions_of(page) if not fields[name]]
    browser.post("/ui/merge", **fields | {undecided: "theirs"})
    assert [version_of(repository, key) for key in keys] == [2] * len(keys)


@pytest.mark.parametrize("branch", ["main", "dev"])
def test_decisions_outlast_other_changes(browser, repository, branch):
    [key] = states_of(repository, 1)
    fields = decided(browser)
    repository.commit(branch, [put("late")], CommitMeta("late"))
    page = browser.get(f"/ui/merge?{urlencode(fields)}")
    assert f"{branch} has moved" in page.text
    assert "no longer" not in page.text
    assert "left to decide" not in page.text
    browser.post("/ui/merge", **page.form("/ui/merge"))
    assert version_of(repository, key) == 2


def test_a_fixed_address_says_what_has_moved(browser, repository):
    [key] = states_of(repository, 1)
    [fixed] = [
        each.attributes["href"]
        for each in browser.get(MERGE).elements
        if each.attributes.get("class") == "fixed"
    ]
    assert "has moved" not in browser.get(fixed).text
    change(repository, "main", [key], 4)
    assert "main has moved" in browser.get(fixed).text


def test_a_revert_of_a_state_that_was_not_shown_is_not_decided(browser, repository):
    key = ContentKey(("t",))
    for version in (1, 2, 3):
        change(repository, "main", [key], version)
    url = f"/ui/revert?ref={repository.commit_at('main~1').hash}&into=main"
    page = browser.get(url)
    fields = page.form("/ui/revert") | dict.fromkeys(decisions_of(page), "theirs")
    change(repository, "main", [key], 4)
    page = browser.get(f"/ui/revert?{urlencode(fields)}")
    assert page.status == 200
    for text in ("main has moved", "1 decision no longer applies", "1 conflict is left to decide"):
        assert text in page.text
    page = browser.post("/ui/revert", **page.form("/ui/revert"))
    assert version_of(repository, key) == 4


def test_more_conflicts_than_pages_decide_are_for_the_command_line(browser, repository):
    states_of(repository, MOST_DECIDED + 1)
    page = browser.get(f"{MERGE}&full=1")
    assert f"{MOST_DECIDED + 1} conflicts" in page.text
    assert f"More than {MOST_DECIDED} conflicts cannot be decided in the browser" in page.text
    assert not decisions_of(page)
    assert not any(each.attributes.get("formmethod") == "post" for each in page.elements)


def test_as_many_conflicts_as_pages_decide_fit_into_addresses_and_forms(browser, repository):
    keys = states_of(repository, MOST_DECIDED)
    fields = browser.get(f"{MERGE}&full=1").form("/ui/merge")
    names = set()
    for number in range(1, MOST_DECIDED // CONFLICTS + 1, 8):
        page = browser.get(f"{MERGE}&full=1&conflicts={number}")
        names.update(decisions_of(page))
    # The last page, with as many decisions as there can be.
    given = dict.fromkeys(sorted(names), "theirs")
    unknown = {f"decide.{n:024x}": "theirs" for n in range(MOST_DECIDED - len(given))}
    page = browser.get(f"/ui/merge?{urlencode(fields | given | unknown | {'conflicts': 40})}")
    assert page.status == 200
    assert f"{len(keys) - len(given)} conflicts are left to decide" in page.text
    sent = browser.post("/ui/merge", **fields | given | unknown)
    assert sent.status == 409
    assert f"{len(unknown)} decisions no longer apply" in sent.text


def test_a_conflict_that_arises_from_a_decision_is_named(browser, repository):
    repository.commit("main", [namespace("n"), put("n", "b")], CommitMeta("base"))
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    b, c = ContentKey(("n", "b")), ContentKey(("c",))
    table = repository.content("main", b)
    repository.commit("main", [Delete(b), Put(c, table)], CommitMeta("rename"))
    repository.commit("main", [Delete(ContentKey(("n",)))], CommitMeta("drop"))
    repository.commit("dev", [put("c", snapshot=2)], CommitMeta("another"))
    page = browser.get(MERGE)
    [decision] = decisions_of(page)
    page = browser.get(f"{MERGE}&{decision}=theirs")
    assert "left to decide" in page.text
    assert "With these decisions: namespace 'n' must exist" in page.text


def test_hidden_characters_of_keys_are_visible(browser, repository):
    states_of(repository, 1, "a\u202eb{}")
    commit = repository.commit_at("main~1").hash
    for url in (MERGE, f"/ui/revert?ref={commit}&into=dev", "/ui/compare?from=main&to=dev"):
        page = browser.get(url)
        assert r"a\u202eb0" in page.text, url
        assert "\u202e" not in "".join(page.texts), url


def test_the_pages_of_changes_send_the_decisions(browser, repository):
    states_of(repository, 1)
    repository.commit("dev", [put(f"n{number:03}") for number in range(60)], CommitMeta("load"))
    page = browser.get(MERGE)
    [following] = [
        each.attributes
        for each in page.elements
        if each.tag == "button" and each.attributes.get("name") == "page"
    ]
    # It is a button of the form, so it sends the choice that was made since.
    assert following["form"] in [
        each.attributes.get("id") for each in page.elements if each.tag == "form"
    ]
    fields = page.form("/ui/merge") | dict.fromkeys(decisions_of(page), "theirs")
    page = browser.get(f"/ui/merge?{urlencode(fields | {'page': following['value']})}")
    assert "51 to 61 of 61" in page.text
    assert "left to decide" not in page.text


@pytest.mark.parametrize("namespaces", [1, 2])
def test_a_page_shows_some_of_the_fields_of_a_conflict_and_how_many_more(
    browser, repository, namespaces
):
    count = 2 * MOST_FIELDS_OF_ONE
    keys = [ContentKey((f"n{number}",)) for number in range(namespaces)]

    def put_all(branch, text):
        ids = {key: each.id for key, each in repository.contents(branch, keys).items()}
        properties = {f"p{number:04}": text for number in range(count)}
        contents = [
            Namespace(id=ids.get(key), elements=key.elements, properties=properties) for key in keys
        ]
        repository.commit(branch, list(map(Put, keys, contents)), CommitMeta(text))

    put_all("main", "base")
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    put_all("main", "ours")
    put_all("dev", "theirs")
    page = browser.get(MERGE)
    shown = MOST_FIELDS_OF_ONE if namespaces == 1 else MOST_FIELDS
    assert f"properties.p{shown - 1:04}" in page.text
    assert f"properties.p{shown:04}" not in page.text
    rest = f"{count - shown} more fields differ. nessie merge on the command line shows all."
    assert page.text.count(rest) == namespaces
    assert len(decisions_of(page)) == namespaces


def test_a_page_lists_some_of_the_effects_of_a_decision_and_how_many_more(browser, repository):
    """Tables on main have moved in a chain to the key that dev gives to another table."""
    count = 2 * MOST_EFFECTS
    chain = [f"c{number:03}" for number in range(count)]

    def move(branch, old, new, version):
        content = repository.content(branch, ContentKey((old,)))
        moved = put(new, snapshot=version, content_id=content.id)
        operations = [Delete(ContentKey((old,))), moved]
        repository.commit(branch, operations, CommitMeta(f"{old} to {new}"))

    repository.commit("main", [put("a"), *map(put, chain)], CommitMeta("base"))
    repository.create_reference(ReferenceType.BRANCH, "dev", repository.reference("main").hash)
    for old, new in zip(reversed(chain), ["k", *reversed(chain[1:])], strict=True):
        move("main", old, new, 1)
    repository.commit(
        "main",
        [put("a", snapshot=2, content_id=repository.content("main", ContentKey(("a",))).id)],
        CommitMeta("ours"),
    )
    move("dev", "a", "k", 3)
    page = browser.get(MERGE)
    assert len(re.findall(r"renames \S+ to", page.text)) == MOST_EFFECTS
    rest = f"and {count + 1 - MOST_EFFECTS} more effects on other contents"
    assert rest in page.text
