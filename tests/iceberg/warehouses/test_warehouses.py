"""Warehouses by options and by a TOML file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.iceberg.warehouses.configuration import _Entry, from_options, from_toml
from nessie_cli.iceberg.warehouses.warehouse import UnknownWarehouse, Vending

SECRET = "0123456789abcdef0123456789abcdef"
FULL = f"""
secret = "{SECRET}"

[warehouse.lake]
location = "s3://lake/wh/"
allowed-locations = ["s3a://old", "file:///srv/old"]
access-delegation = ["vended-credentials", "remote-signing"]
role-arn = "arn:aws:iam::123456789012:role/lake"
external-id = "e"
sts-endpoint = "http://localhost:5000"
credentials-seconds = 900

[warehouse.lake.storage]
"s3.endpoint" = "http://localhost:5000"
"s3.access-key-id" = "AKIA"
"s3.secret-access-key" = "hidden"
"s3.path-style-access" = true
"s3.region" = "eu-west-1"

[warehouse.lake.client]
"s3.endpoint" = "https://s3.example.com"

[warehouse.local]
location = "/srv/local"
"""


def test_options_name_warehouses_and_what_all_of_them_allow(tmp_path: Path) -> None:
    found = from_options(["s3://a/x/", f"b={tmp_path}/b", "c=file:///c"], ["s3://old", "/more"])
    assert [one.name for one in found.all] == ["warehouse", "b", "c"]
    assert found.named(None).location == "s3://a/x"
    assert found.named("").name == "warehouse"
    assert found.named("b").location == f"file://{tmp_path}/b"
    assert found.named("c").allowed == ("file:///c", "s3://old", "file:///more")
    assert found.named("s3://a/x/").name == "warehouse"
    with pytest.raises(UnknownWarehouse, match=r"no warehouse 'd'.*: warehouse, b, c"):
        found.named("d")


def test_a_relative_path_is_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert from_options(["lake"]).named(None).location == f"file://{tmp_path}/lake"


@pytest.mark.parametrize(
    ("uris", "allowed", "message"),
    [
        (["http://h/x"], [], "--warehouse: location http://h/x: http is not a scheme"),
        (["a=s3://a", "a=s3://b"], [], "there are two warehouses 'a'"),
        (["s3://a", "s3://b"], [], "write --warehouse NAME=URI"),
        ([".=s3://a"], [], "the name of a warehouse has letters"),
        (["s3://a"], ["ftp://x"], "--allow-location: location ftp://x"),
        ([""], [], "--warehouse: the location is empty"),
        (["s3://"], [], "names no bucket"),
        (["file://host/x"], [], "names the host 'host'"),
        ([], [], "there is no warehouse"),
    ],
)
def test_bad_options_are_named(uris: list[str], allowed: list[str], message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        from_options(uris, allowed)
    assert message in error.value.message


def test_a_file_configures_everything() -> None:
    found, holds_secrets = from_toml(FULL.encode())
    assert holds_secrets
    assert found.secret.reveal() == SECRET
    lake = found.named(None)
    assert lake.name == "lake"
    assert lake.location == "s3://lake/wh"
    assert lake.allowed == ("s3://lake/wh", "s3a://old", "file:///srv/old")
    assert lake.storage["s3.path-style-access"] == "true"
    assert lake.client_config == {
        "s3.endpoint": "https://s3.example.com",
        "s3.region": "eu-west-1",
        "client.region": "eu-west-1",
        "s3.path-style-access": "true",
    }
    assert lake.vending == Vending(
        role_arn="arn:aws:iam::123456789012:role/lake",
        external_id="e",
        sts_endpoint="http://localhost:5000",
        seconds=900,
    )
    assert not lake.choose_locations
    assert found.named("local").choose_locations
    assert not found.named("local").delegation


def test_no_secret_is_shown_and_secrets_are_known() -> None:
    found, _ = from_toml(FULL.encode())
    shown = f"{found.all!r} {found.all} {found.secret!r} {vars(found)}"
    assert "hidden" not in shown
    assert SECRET not in shown
    for storage, secret in (
        ('"s3.region" = "x"', False),
        ('"s3.endpoint" = "x"', False),
        ('"s3.access-key-id" = "x"', True),
        ('"s3.anything-else" = "x"', True),
    ):
        text = f'[warehouse.a]\nlocation="s3://a"\n[warehouse.a.storage]\n{storage}'
        assert from_toml(text.encode())[1] is secret


def test_secrets_are_random_unless_configured() -> None:
    one, other = from_options(["s3://a"]), from_options(["s3://a"])
    assert one.secret.reveal() != other.secret.reveal()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("warehouse", "not TOML"),
        ("", "missing required field `warehouse`"),
        ("[warehouse]", "there is no warehouse"),
        ("[lake]\nlocation='s3://a'", "unknown field `lake`"),
        ("[warehouse.a]\nlocation=1", "$.warehouse[...].location"),
        ("[warehouse.a]\nlocation='s3://a'\nlocations='x'", "unknown field `locations`"),
        ("[warehouse.a]\nlocation='http://a'", "warehouse.a.location: location http://a"),
        (
            "[warehouse.a]\nlocation='s3://a'\nallowed-locations=['ftp://x']",
            "warehouse.a.allowed-locations: location ftp://x",
        ),
        ("[warehouse.'a b']\nlocation='s3://a'", "warehouse.a b: the name of a warehouse"),
        ("secret='short'\n[warehouse.a]\nlocation='s3://a'", "at least 32 characters"),
        (
            "[warehouse.a]\nlocation='s3://a'\naccess-delegation=['x']",
            "warehouse.a.access-delegation: 'x' is unknown",
        ),
        (
            "[warehouse.a]\nlocation='s3://a'\naccess-delegation=['vended-credentials']",
            "warehouse.a.role-arn is missing",
        ),
        (
            "[warehouse.a]\nlocation='/a'\naccess-delegation=['remote-signing']",
            "works for locations in S3 only",
        ),
        (
            "[warehouse.a]\nlocation='s3://a'\nrole-arn='x'\ncredentials-seconds=60",
            "between 900 and 43200",
        ),
        (
            "[warehouse.a]\nlocation='s3://a'\n[warehouse.a.client]\n's3.secret-access-key'='x'",
            "is a secret",
        ),
    ],
)
def test_a_bad_file_names_the_place(text: str, message: str) -> None:
    with pytest.raises(InvalidInput) as error:
        from_toml(text.encode())
    assert message in error.value.message


def test_the_example_of_the_documentation_is_a_warehouse_file() -> None:
    page = Path(__file__).parents[3] / "docs" / "reference" / "warehouses.md"
    (example,) = re.findall(r"```toml\n(.*?)```", page.read_text(), re.DOTALL)
    found, holds_secrets = from_toml(example.encode())
    assert holds_secrets
    assert [one.name for one in found.all] == ["lake", "scratch"]
    text = page.read_text()
    assert all(f"`{name}`" in text for name in _Entry.__struct_encode_fields__)


@pytest.mark.parametrize(
    ("guarded", "other", "more"),
    [
        ("s3://lake/guarded", "s3://lake", ""),
        ("s3://lake", "s3a://lake/open", ""),
        ("s3://lake/a", "s3://lake/a", ""),
        ("s3://lake/a", "s3://lake/b", "s3://lake/a/b"),
        ("file:///lake/a", "file:///lake/b/../a", ""),
    ],
)
def test_warehouses_with_a_common_location_agree_on_who_may_choose_locations(
    guarded: str, other: str, more: str
) -> None:
    form = """
        [warehouse.guarded]
        location = "{}"
        choose-locations = false
        [warehouse.other]
        location = "{}"
        allowed-locations = {}
        choose-locations = {}
    """
    allowed = f'["{more}"]' if more else "[]"
    with pytest.raises(InvalidInput, match="have a location in common"):
        from_toml(form.format(guarded, other, allowed, "true").encode())
    assert from_toml(form.format(guarded, other, allowed, "false").encode())
    assert from_toml(form.format("s3://lake/far", "s3://lake/farther", "[]", "true").encode())


@pytest.mark.parametrize("end", ["", "/lake", "/a/b"])
def test_a_warehouse_in_a_folder_that_counts_as_a_table_is_refused(end: str) -> None:
    folder = f"file:///tenants/blue_6f9619ff-8b86-4011-b42d-00c04fc964ff{end}"
    with pytest.raises(InvalidInput, match="counts as the folder of a table"):
        from_options([folder])
    assert from_options(["file:///tenants/blue-6f9619ff-8b86-4011-b42d-00c04fc964ff"])
