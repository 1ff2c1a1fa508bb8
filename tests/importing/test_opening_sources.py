"""What the source of an import names: a catalog, a server or a folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyiceberg.catalog import load_catalog

from nessie_cli.errors import InvalidInput, NessieError, NotFound
from nessie_cli.importing.opening import SourceType, open_source


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, and the home of PyIceberg's configuration."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYICEBERG_HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def configured(here: Path) -> Path:
    """A configuration with the SQL catalogs `prod` and `glue`, and a REST catalog."""
    load_catalog("prod", type="sql", uri=f"sqlite:///{here}/c.db").close()
    (here / ".pyiceberg.yaml").write_text(
        f"""
catalog:
  prod:
    uri: sqlite:///{here}/c.db
  remote:
    type: rest
    uri: http://127.0.0.1:1/
  untyped:
    s3.region: eu-west-1
"""
    )
    return here


def refusal(text: str, kind: SourceType | None = None, **properties: str) -> NessieError:
    with pytest.raises(NessieError) as caught:
        open_source(text, kind, properties)
    return caught.value


def test_a_word_is_a_catalog_or_a_folder(configured: Path) -> None:
    (configured / "lake").mkdir()
    for text, label in {
        "prod": "prod",
        "lake": f"{configured}/lake",
        "./lake/": f"{configured}/lake",
        ".": f"{configured}",
        f"file:{configured}/lake": f"file:{configured}/lake",
    }.items():
        source = open_source(text)
        assert source.label == label
        source.close()


def test_a_word_that_is_both_is_refused_with_both_ways_out(configured: Path) -> None:
    (configured / "prod").mkdir()
    error = refusal("prod")
    assert isinstance(error, InvalidInput)
    assert str(error) == (
        "prod names a catalog of PyIceberg and a folder."
        " Hint: write ./prod for the folder, or --type for the catalog"
    )
    for text, kind, label in (
        ("prod", SourceType.SQL, "prod"),
        ("prod", SourceType.FOLDER, f"{configured}/prod"),
        ("./prod", None, f"{configured}/prod"),
    ):
        source = open_source(text, kind)
        assert source.label == label
        source.close()
    (configured / "glue").mkdir()
    assert "--type" in str(refusal("glue"))


def test_an_unknown_word_has_suggestions(configured: Path) -> None:
    assert str(refusal("prodd")) == (
        "prodd is neither a catalog of PyIceberg nor a folder. Hint: did you mean prod?"
    )
    assert str(refusal("zzz")).endswith("Hint: PyIceberg's configuration has prod, remote, untyped")
    (configured / ".pyiceberg.yaml").unlink()
    assert "write a URI, the path of a folder" in str(refusal("zzz"))


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        ("", None, "the source of the import is empty"),
        ("prod", SourceType.REST, "prod is a catalog of type sql, not rest"),
        ("remote", SourceType.GLUE, "remote is a catalog of type rest, not glue"),
        ("zzz", SourceType.SQL, "PyIceberg's configuration has no catalog zzz"),
        ("untyped", None, "untyped: PyIceberg's configuration does not say the type"),
        ("untyped", SourceType.REST, "untyped: PyIceberg's configuration has no URI"),
        ("./zzz", None, "./zzz: no such folder"),
        ("c.db", None, "c.db is not a folder. Hint: name the folder of a warehouse; --type sql"),
        ("/dev/null", None, "/dev/null is not a folder"),
        ("file://elsewhere/lake", None, "file://elsewhere/lake names the host 'elsewhere'"),
        ("ftp://host/lake", None, "ftp: is the scheme of no source. Hint: name the type"),
        ("http://h/api/v2?x=1", None, "must not contain ? or #"),
        ("mysql+nothing://h/db", None, "cannot be read"),
        ("jdbc:postgresql://h/db", None, "write the URL of SQLAlchemy, such as postgresql://"),
        ("hive2://h", None, "hive2: is the scheme of no source"),
    ],
)
def test_what_cannot_be_opened_is_named(
    configured: Path, text: str, kind: SourceType | None, message: str
) -> None:
    with pytest.raises((InvalidInput, NotFound)) as caught:
        open_source(text, kind).listing([])
    assert message in str(caught.value)


def test_single_files_have_their_own_ways(configured: Path) -> None:
    for name, hint in (
        ("v1.metadata.json", "`nessie content put KEY --from-metadata FILE`"),
        ("export.zip", "--history"),
    ):
        (configured / name).touch()
        assert hint in str(refusal(name))


def test_only_a_nessie_server_has_revisions(configured: Path) -> None:
    for text in ("prod", ".", "glue"):
        with pytest.raises(InvalidInput, match="has no branches and tags"):
            open_source(text, revision="main")


@pytest.mark.parametrize(
    "name",
    [
        "s3.secret-access-key",
        "token",
        "credential",
        "adls.account-key",
        "access.password",
        "header.Authorization",
    ],
)
def test_secrets_are_no_properties_and_are_not_repeated(here: Path, name: str) -> None:
    error = refusal(".", **{name: "never-to-be-seen"})
    assert isinstance(error, InvalidInput)
    assert name in str(error)
    assert "never-to-be-seen" not in str(error)


@pytest.mark.parametrize(
    "text", ["s3://key:never-to-be-seen@bucket/wh", "hdfs://h/wh?token=never-to-be-seen"]
)
def test_a_folder_with_a_secret_is_refused(here: Path, text: str) -> None:
    """The record of the import and the message of its commit name the folder."""
    error = refusal(text)
    assert isinstance(error, InvalidInput)
    assert "secrets are never written" in str(error)
    assert "never-to-be-seen" not in str(error)


def test_a_damaged_configuration_is_named(here: Path) -> None:
    (here / ".pyiceberg.yaml").write_text("catalog: [")
    assert "PyIceberg's configuration (.pyiceberg.yaml) cannot be read" in str(refusal("prod"))
    (here / ".pyiceberg.yaml").write_text("catalog: x")
    assert "PyIceberg's configuration (.pyiceberg.yaml) cannot be read" in str(refusal("prod"))
