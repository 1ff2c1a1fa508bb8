"""Pages of large contents: they end by size, and are read and sent in pieces."""

import json
import random
from datetime import UTC, datetime
from urllib.parse import quote

import pytest

from nessie_cli import connect, create
from nessie_cli.model import UDF, CommitMeta, ContentKey, LogEntry, Namespace, Put
from nessie_cli.server.http.messages import encoded
from nessie_cli.server.http.streams import CHUNK, ListingBody
from nessie_cli.server.nessie.listings import LARGEST_PAGE, Filter, FilteredPage, ListingPage
from nessie_cli.wire import commits
from nessie_cli.wire.commits import BareLogEntry, LogEntryV1
from tests.server.client import EMPTY, Client
from tests.server.processes import started
from tests.server.serving import serving
from tests.server.test_memory import resident

COMMITS, PUTS, SIZE = 6, 5, 500_000
KEYS = [f"u{commit}-{number}" for commit in range(COMMITS) for number in range(PUTS)]
OURS = {"nessie-cli": "1"}


def fill(repository, commits=COMMITS, puts=PUTS, size=SIZE):
    """Commits texts that compress to half their size."""
    chance = random.Random(1)
    for commit in range(commits):
        repository.commit(
            "main",
            [
                Put(
                    ContentKey((f"u{commit}-{number}",)),
                    UDF(dialect="spark", sql_text=chance.randbytes(size // 2).hex()),
                )
                for number in range(puts)
            ],
            CommitMeta(f"m{commit}"),
        )


@pytest.fixture(scope="module")
def url():
    with connect("memory:") as repository, serving(repository) as address:
        fill(repository)
        yield address


@pytest.fixture
def client(url):
    client = Client(url)
    yield client
    client.close()


def pages(client, path, headers=None, most=None):
    """Returns the pages of a listing."""
    version_1 = path.startswith("/api/v1")
    token = "pageToken" if version_1 else "page-token"
    if most is not None:
        path += (
            f"{'&' if '?' in path else '?'}{'maxRecords' if version_1 else 'max-records'}={most}"
        )
    answers, more = [], ""
    while True:
        answer = client.send("GET", path + more, headers=headers or {})
        assert answer.status == 200
        answers.append(answer)
        if not answer.body["hasMore"]:
            return answers
        more = f"{'&' if '?' in path else '?'}{token}={quote(answer.body['token'])}"


def keys_of(item):
    if "operations" in item:
        return [operation["key"]["elements"][0] for operation in item["operations"]]
    return [(item.get("key") or item["name"])["elements"][0]]


LISTINGS = {
    "/api/v2/trees/main/history?fetch=ALL": "logEntries",
    "/api/v2/trees/main/history?fetch=ALL&filter=true": "logEntries",
    "/api/v1/trees/tree/main/log?fetch=ALL": "logEntries",
    "/api/v1/trees/tree/main/log?fetch=ALL&filter=true": "logEntries",
    "/api/v2/trees/main/entries?content=true": "entries",
    "/api/v2/trees/main/entries?content=true&filter=true": "entries",
    f"/api/v2/trees/@{EMPTY}/diff/main": "diffs",
    f"/api/v2/trees/main/diff/@{EMPTY}?filter=true": "diffs",
}


@pytest.mark.parametrize("headers", [{}, OURS], ids=["plain", "ours"])
@pytest.mark.parametrize("most", [None, 4])
@pytest.mark.parametrize("path", LISTINGS)
def test_a_page_of_large_contents_ends_early_and_the_next_ones_go_on(client, path, most, headers):
    answers = pages(client, path, headers, most)
    items = [item for answer in answers for item in answer.body[LISTINGS[path]]]
    assert sorted(key for item in items for key in keys_of(item)) == KEYS
    assert len(answers) >= len(KEYS) * SIZE // (2 * LARGEST_PAGE)
    largest = max(len(json.dumps(item)) for item in items)
    for answer in answers:
        assert len(answer.raw) < LARGEST_PAGE + largest + 10_000
        assert len(answer.body[LISTINGS[path]]) <= (most or len(items))
    if most != 4:
        # All but the last page are full.
        assert min(len(answer.raw) for answer in answers[:-1]) >= LARGEST_PAGE


@pytest.mark.parametrize("path", ["/api/v2/trees/main/history", "/api/v1/trees/tree/main/log"])
def test_a_page_of_commits_with_large_metadata_ends_early(path):
    with connect("memory:") as repository, serving(repository) as url:
        for number in range(12):
            key = ContentKey((f"n{number}",))
            meta = CommitMeta(f"m{number}", properties={"a": ("x" * ((1 << 20) - 10),)})
            repository.commit("main", [Put(key, Namespace(elements=key.elements))], meta)
        client = Client(url)
        answers = pages(client, path)
        client.close()
    messages = [
        entry["commitMeta"]["message"] for answer in answers for entry in answer.body["logEntries"]
    ]
    assert messages == [f"m{number}" for number in reversed(range(12))]
    assert max(len(answer.raw) for answer in answers) < LARGEST_PAGE + (3 << 20)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (f"/api/v1/diffs/*{EMPTY}...main", "diffs"),
        ("/api/v2/trees/main/entries", "entries"),
        ("/api/v1/trees/tree/main/entries", "entries"),
    ],
)
def test_what_has_no_pages_or_no_contents_is_one_answer(client, path, name):
    answer = client.get(path)
    assert answer.body["hasMore"] is False
    assert [key for item in answer.body[name] for key in keys_of(item)] == KEYS


@pytest.mark.parametrize("number", [1, 2, 3, len(KEYS)])
@pytest.mark.parametrize("path", ["/api/v2/trees/main/contents", "/api/v1/contents?ref=main"])
def test_several_large_contents_are_one_answer(client, path, number):
    keys = [*KEYS[:number], "missing"]
    body = {"requestedKeys": [{"elements": [key]} for key in [*keys, *keys]]}
    answer = client.send("POST", path, body)
    assert [item["key"]["elements"][0] for item in answer.body["contents"]] == KEYS[:number]
    assert {len(item["content"]["sqlText"]) for item in answer.body["contents"]} == {SIZE}
    assert ("transfer-encoding" in answer.headers) == (number * SIZE > CHUNK)
    if "v2" in path:
        assert answer.body["effectiveReference"]["hash"] == client.head()
        query = "&".join(f"key={key}" for key in keys)
        assert client.get(f"{path}?{query}").body == answer.body


def test_our_client_reads_all_pages(url):
    with connect(url) as remote:
        log = list(remote.log("main", operations=True))
        assert [entry.meta.message for entry in log] == [f"m{n}" for n in reversed(range(COMMITS))]
        assert [entry.key.plain for entry in remote.entries("main", content=True)] == KEYS
        assert [entry.key.plain for entry in remote.diff(f"@{EMPTY}", "main")] == KEYS
        keys = [ContentKey((key,)) for key in KEYS]
        assert list(remote.contents("main", keys)) == keys
        assert dict(remote.each_content("main", keys)) == remote.contents("main", keys)


@pytest.mark.parametrize(
    ("sizes", "first"),
    [([5, 1], 1), ([1, 5, 1], 2), ([4], 1), ([4, 1], 1), ([1, 1, 1, 1, 1], 4), ([1, 1], 2)],
)
def test_a_page_has_at_least_one_item_and_names_the_next(sizes, first):
    items = [(number, size << 20) for number, size in enumerate(sizes)]

    def name(item):
        return str(item[0])

    def size(item):
        return item[1]

    for page in (
        ListingPage(items, None, name, size),
        FilteredPage(lambda: iter(items), None, name, Filter(lambda _: True, 60), size),
    ):
        list(page.search())
        assert list(page) == items[:first]
        assert page.token() == (str(first) if first < len(items) else None)


def test_a_piece_ends_by_size_and_is_read_when_it_is_sent():
    read = []
    items = (read.append(number) or {"text": "x" * (CHUNK // 3)} for number in range(10))
    pieces = ListingBody("items", items, dict).opened()
    assert len(read) == 3
    text = next(pieces)
    assert len(read) == 3
    text += next(pieces)
    assert len(read) == 6
    assert len(json.loads(text + b"".join(pieces))["items"]) == 10


def test_large_contents_need_little_memory(tmp_path):
    """Without limits, each answer takes 100 MB in several copies."""
    store = str(tmp_path / "catalog.sqlite")
    with create(store) as repository:
        fill(repository, commits=4, puts=25, size=1_000_000)
    with started("--store", store) as (process, url):
        client = Client(url)
        client.get("/api/v2/trees/main/entries?content=true&max-records=1")
        before = resident(process.pid, "VmHWM")
        body = {"requestedKeys": [{"elements": [f"u{c}-{n}"]} for c in range(4) for n in range(25)]}
        answer = client.send("POST", "/api/v2/trees/main/contents", body)
        assert len(answer.body["contents"]) == 100
        for path in (
            "/api/v2/trees/main/entries?content=true",
            f"/api/v2/trees/@{EMPTY}/diff/main",
            f"/api/v1/diffs/*{EMPTY}...main",
        ):
            assert client.get(path).status == 200
        grown = resident(process.pid, "VmHWM") - before
        client.close()
    assert grown < 64 << 20


def test_a_log_entry_is_sent_in_parts():
    content = UDF(dialect="spark", sql_text="x" * 100_000, id="a")
    puts = tuple(Put(ContentKey((f"u{number}",)), content) for number in range(60))
    meta = CommitMeta(
        "m", properties={"operations": ()}, commit_time=datetime(2026, 1, 1, tzinfo=UTC)
    )
    structs = [
        struct.of(LogEntry(meta, 1, operations))
        for struct in (BareLogEntry, commits.LogEntry, LogEntryV1)
        for operations in (puts, puts[:1], (), None)
    ]
    chunks = list(ListingBody("items", iter(structs), dict).opened())
    assert max(map(len, chunks)) < 2 * CHUNK
    assert json.loads(b"".join(chunks)) == {"items": json.loads(encoded(structs))}
