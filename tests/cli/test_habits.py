"""What users of git and pynessie type."""

import json

import pytest

PY = {"type": "ICEBERG_TABLE", "metadataLocation": "s3://py", "snapshotId": 7, "schemaId": 1, "specId": 1, "sortOrderId": 1}


def test_pynessie_s_content_commit_puts_what_stdin_holds(nessie, catalog, tmp_path, monkeypatch) -> None:
    (tmp_path / "content").write_text(json.dumps(PY))
    with (tmp_path / "content").open() as given:
        monkeypatch.setattr("sys.stdin", given)
        assert nessie("content", "commit", "-i", "db.orders", "-r", "main", "-c", "main", "-m", "by pynessie", "--author", "Py <py@x>").code == 0
    assert catalog.snapshot("main", "db.orders") == 7
    assert nessie("log", "-n", "1", "--format", "%an|%ae|%s").lines == ["Py|py@x|by pynessie"]


def test_pynessie_s_content_commit_deletes(nessie, catalog) -> None:
    assert nessie("content", "commit", "-R", "db.orders", "db.items", "-r", "main", "--condition", "main", "-m", "gone").code == 0
    assert nessie("content", "list", "-r", "main").code == 0
    assert catalog.snapshot("main", "db.orders") is None


def test_pynessie_s_editor_is_not_opened_but_told_about(nessie, catalog) -> None:
    ran = nessie("content", "commit", "db.orders", "-m", "x")
    assert (ran.code, "nessie content put KEY --content FILE" in ran.err) == (2, True)


def test_an_author_without_a_commit_is_refused(nessie, catalog) -> None:
    ran = nessie("content", "delete", "db.orders", "--author", "A")
    assert (ran.code, "--author belongs to -m" in ran.err) == (2, True)
    assert nessie("status", "--json").json["batch"]["operations"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["remote", "add", "http://x"], "nessie config set store URL"),
        (["remote", "show"], "nessie config get store"),
        (["remote", "set-head", "dev"], "nessie switch"),
        (["remote"], "nessie config get store"),
        (["config", "--add", "endpoint", "x"], "'store' is what is meant"),
        (["config", "--get", "default_branch"], "profile.NAME.ref"),
        (["checkout", "dev"], "nessie switch"),
    ],
)
def test_what_is_called_otherwise_here_is_told(nessie, catalog, words, said) -> None:
    ran = nessie(*words)
    assert (ran.code, ran.out, said in ran.err) == (2, "", True)


@pytest.mark.parametrize("words", [[], ["log"], ["content"], ["content", "put"], ["stash"], ["stash", "pop"], ["config"]])
def test_h_is_short_for_help(nessie, catalog, words) -> None:
    assert nessie(*words, "-h") == nessie(*words, "--help")
    assert nessie(*words, "-h").out.startswith(f"Usage: nessie {' '.join(words)}".rstrip())


def test_pynessie_s_configuration_is_named_where_no_store_is_found(nessie, tmp_path) -> None:
    folder = tmp_path / "home" / "config" / "nessie"
    folder.mkdir(parents=True)
    (folder / "config.yaml").write_text("endpoint: http://x\n")
    ran = nessie("log")
    assert (ran.code, f"{folder / 'config.yaml'} is pynessie's" in ran.err) == (4, True)
