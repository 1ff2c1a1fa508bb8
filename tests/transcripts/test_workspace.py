"""`init`, `switch`, `status`, and which store and reference a command works on."""

from __future__ import annotations

import json

import pytest


def heads(nessie, *more):
    return nessie.ok("status", "--json", *more).json["reference"]["name"]


def configure(nessie, text):
    """Write the user's configuration."""
    folder = nessie.folder.parent / "home" / "config" / "nessie"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)
    return folder / "config.toml"


# -- init ----------------------------------------------------------------------------------------
def test_init_creates_workspace_and_store_and_repeating_it_changes_nothing(nessie):
    first = nessie.ok("init", "--json").json
    nessie.ok("content", "put", "db", "--type", "namespace", "-m", "db")
    second = nessie.ok("init", "--json").json

    assert (first["created"], second["created"]) == (True, False)
    assert first | {"created": False} == second
    assert [line.split()[0] for line in nessie.ok("content", "list").out.splitlines()] == ["db"]


def test_init_in_another_folder_with_another_default_branch(nessie):
    nessie.ok("init", "a/b", "--default-branch", "trunk")

    assert heads(nessie, "-C", "a/b") == "trunk"


def test_init_on_a_store_elsewhere(nessie):
    nessie.ok("init", "one")
    nessie.ok("-C", "one", "content", "put", "db", "--type", "namespace", "-m", "db")
    nessie.ok("init", "two", "--store", "one/.nessie/store.sqlite")

    assert nessie.ok("-C", "two", "content", "list").out.splitlines()[0].startswith("db ")
    assert not (nessie.folder / "two" / ".nessie" / "store.sqlite").exists()


@pytest.mark.parametrize("url", ["http://ann:pw@host/api/v2", "sqlite:///a.sqlite"])
def test_init_takes_no_url_for_a_folder(nessie, url):
    outcome = nessie("init", url)

    assert outcome.code == 2
    assert outcome.err == (
        "nessie: DIR must be a folder, not a URL. Hint: `nessie init --store URL` uses a store"
        " elsewhere\n"
    )
    assert list(nessie.folder.iterdir()) == []


def test_init_of_a_workspace_on_another_store_is_refused(nessie):
    nessie.ok("init", "--store", "sqlite:///one.sqlite")
    outcome = nessie("init", "--store", "sqlite:///two.sqlite")

    assert outcome.code == 2
    assert "one.sqlite" in outcome.err
    assert not (nessie.folder / "two.sqlite").exists()


@pytest.mark.parametrize("variable", ["NESSIE_STORE", "NESSIE_ENDPOINT"])
def test_init_uses_the_store_that_a_variable_names(nessie, variable):
    outcome = nessie("init", env={variable: "sqlite:///elsewhere.sqlite"})

    assert outcome.code == 0
    assert "elsewhere.sqlite" in outcome.out
    nessie.ok("content", "put", "db", "--type", "namespace", "-m", "db")
    assert (
        nessie.ok("content", "list", "--store", "elsewhere.sqlite")
        .out.splitlines()[0]
        .startswith("db ")
    )
    assert not (nessie.folder / ".nessie" / "store.sqlite").exists()


@pytest.mark.parametrize("by_variable", [False, True])
def test_init_uses_the_store_of_a_profile(nessie, by_variable):
    elsewhere = nessie.folder / "elsewhere.sqlite"
    configure(nessie, f'[profile.p]\nstore = "{elsewhere}"\n')
    words = ("init",) if by_variable else ("init", "--profile", "p")
    outcome = nessie(*words, env={"NESSIE_PROFILE": "p"} if by_variable else {})

    assert outcome.code == 0
    assert "elsewhere.sqlite" in outcome.out
    assert elsewhere.exists()
    assert not (nessie.folder / ".nessie" / "store.sqlite").exists()


def test_init_refuses_a_profile_that_does_not_exist(nessie):
    outcome = nessie("init", "--profile", "p")

    outcome.expect(4, "there is no profile 'p'")
    assert not (nessie.folder / ".nessie").exists()


def test_init_prefers_the_option_to_the_variable(nessie):
    outcome = nessie("init", "--store", "one.sqlite", env={"NESSIE_STORE": "two.sqlite"})

    assert "one.sqlite" in outcome.out
    assert not (nessie.folder / "two.sqlite").exists()


def test_init_of_an_existing_workspace_says_that_a_variable_overrides_it(nessie):
    nessie.ok("init")
    outcome = nessie("init", env={"NESSIE_STORE": "two.sqlite"})

    assert outcome.code == 0
    assert "already exists" in outcome.out
    assert "NESSIE_STORE overrides the workspace" in outcome.err
    assert not (nessie.folder / "two.sqlite").exists()


def test_init_refuses_a_password_in_the_variable(nessie):
    outcome = nessie("init", env={"NESSIE_STORE": "postgresql://ann:secret@localhost/lake"})

    assert outcome.code == 2
    assert "NESSIE_STORE: the URL holds a password" in outcome.err
    assert "secret@" not in outcome.err
    assert list(nessie.folder.iterdir()) == []


@pytest.mark.parametrize("name", ["HEAD", "a b", "-x", "0123456789abcdef", ""])
def test_an_unusable_default_branch_leaves_nothing_behind(nessie, name):
    outcome = nessie("init", f"--default-branch={name}")

    assert outcome.code == 2
    assert list(nessie.folder.iterdir()) == []


def test_init_refuses_a_file_as_the_folder_or_the_store(nessie):
    (nessie.folder / "file").write_text("x" * 5000)

    assert nessie("init", "file").code == 2
    outcome = nessie("init", "--store", "file")
    assert outcome.code == 7
    assert "file" in outcome.err
    assert (nessie.folder / "file").read_text() == "x" * 5000
    assert not (nessie.folder / ".nessie").exists()


# -- which store ---------------------------------------------------------------------------------
def test_the_workspace_is_found_from_below(catalog):
    below = catalog.folder / "a" / "b"
    below.mkdir(parents=True)

    assert catalog.ok("content", "list", cwd=below).out.splitlines()[0].startswith("db ")


def test_store_option_then_environment_then_workspace_then_profile(nessie):
    for name in ("option", "variable", "endpoint", "here", "profile"):
        nessie.ok("init", name, "--default-branch", f"in-{name}")

    def store(name):
        return str(nessie.folder / name / ".nessie" / "store.sqlite")

    configure(nessie, f'default-profile = "p"\n[profile.p]\nstore = "{store("profile")}"\n')
    both = {"NESSIE_STORE": store("variable"), "NESSIE_ENDPOINT": store("endpoint")}

    def default_branch(*args, env=None, where="here"):
        return nessie.ok("branch", "--json", *args, env=env, cwd=nessie.folder / where).json[
            "references"
        ][0]["name"]

    assert default_branch("--store", store("option"), env=both) == "in-option"
    assert default_branch(env=both) == "in-variable"
    assert default_branch(env={"NESSIE_ENDPOINT": store("endpoint")}) == "in-endpoint"
    assert default_branch(env={"NESSIE_STORE": ""}) == "in-here"
    assert default_branch(where=".") == "in-profile"


def test_a_relative_store_in_the_settings_is_relative_to_the_workspace(nessie):
    nessie.ok("init")
    nessie.ok("content", "put", "db", "--type", "namespace", "-m", "db")
    (nessie.folder / ".nessie" / "store.sqlite").rename(nessie.folder / "moved.sqlite")
    (nessie.folder / ".nessie" / "config.toml").write_text('store = "sqlite:///moved.sqlite"\n')
    below = nessie.folder / "below"
    below.mkdir()

    assert nessie.ok("content", "list", cwd=below).out.splitlines()[0].startswith("db ")


def test_the_profile_names_the_reference_too(nessie):
    nessie.ok("init", "far")
    nessie.ok("-C", "far", "branch", "dev")
    configure(
        nessie,
        f'default-profile = "p"\n[profile.p]\nstore = "{nessie.folder}/far/.nessie/store.sqlite"\nref = "dev"\n',
    )

    assert heads(nessie) == "dev"


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ('default-profile = "p"\n[profile.p\n', 2, ": not TOML"),
        ('x = 1\ndefault-profile = "p"\n', 2, "no store under [profile.p]"),
        ("\n\ndefault-profile = 3\n", 3, "must be a string"),
        ('default-profile = "p"\n[profile.p]\nstore = ["a"]\n', 3, "must be a string"),
        ('profile = "x"\ndefault-profile = "p"\n', 1, "must be a table"),
    ],
)
def test_broken_user_settings_name_file_and_line(nessie, text, line, words):
    path = configure(nessie, text)

    outcome = nessie("status")

    assert outcome.code == 2
    assert outcome.err.startswith(f"nessie: {path}, line {line}: ")
    assert words in outcome.err


def test_broken_workspace_settings_name_file_and_line(workspace):
    path = workspace.folder / ".nessie" / "config.toml"
    path.write_text("# settings\nstore = 1\n")

    outcome = workspace("status")

    assert (outcome.code, outcome.err) == (
        2,
        f"nessie: {path}, line 2: store must be a string that is not blank, not 1\n",
    )


def test_a_missing_store_is_not_created_again(catalog):
    (catalog.folder / ".nessie" / "store.sqlite").unlink()

    outcome = catalog("content", "list")

    assert outcome.code == 4
    assert "store.sqlite" in outcome.err
    assert not (catalog.folder / ".nessie" / "store.sqlite").exists()


# -- which reference -----------------------------------------------------------------------------
def test_ref_option_then_environment_then_workspace_then_default_branch(catalog):
    for name in ("option", "variable", "here"):
        catalog.ok("branch", name)
    catalog.ok("switch", "here")

    assert heads(catalog, "--ref", "option") == "option"
    assert (
        catalog.ok("status", "--json", "--ref", "option", env={"NESSIE_REF": "variable"}).json[
            "reference"
        ]["name"]
        == "option"
    )
    assert (
        catalog.ok("status", "--json", env={"NESSIE_REF": "variable"}).json["reference"]["name"]
        == "variable"
    )
    assert heads(catalog) == "here"
    (catalog.folder / ".nessie" / "HEAD").unlink()
    assert heads(catalog) == "main"


def test_head_and_its_short_forms_mean_the_current_reference(catalog):
    catalog.ok("switch", "-c", "dev")
    catalog.table("db.orders", 2, "-m", "on dev")

    for revision in ("HEAD", "@", "dev", ""):
        assert catalog.snapshot("db.orders", *([revision] if revision else [])) == 2
    for revision in ("HEAD~1", "~1", "~", "^", "^1", "@~1", "dev~", "main"):
        assert catalog.snapshot("db.orders", revision) == 1


def test_reading_at_a_commit_without_a_name(catalog):
    head = catalog.ok("status", "--json").json["reference"]["hash"]
    catalog.table("db.orders", 2, "-m", "second")

    assert catalog.snapshot("db.orders", "--ref", head[:10]) == 1
    assert catalog.snapshot("db.orders", "--ref", "main~1") == 1
    outcome = catalog("content", "delete", "db.orders", "--ref", "main~1")
    assert outcome.code == 2
    assert "is a commit, but this command needs a branch" in outcome.err


def test_a_broken_head_file_is_named(catalog):
    path = catalog.folder / ".nessie" / "HEAD"
    path.write_text("two words\n")

    outcome = catalog("status")

    assert outcome.code == 2
    assert f"{path}, line 1" in outcome.err


# -- switch and status ---------------------------------------------------------------------------
def test_switch_creates_and_selects_references(catalog):
    catalog.ok("switch", "-c", "dev")
    catalog.table("db.orders", 2, "-m", "on dev")
    catalog.ok("switch", "-c", "old", "dev~1")

    assert heads(catalog) == "old"
    assert catalog.snapshot("db.orders") == 1
    assert catalog.ok("switch", "main", "--json").json["reference"]["name"] == "main"


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("nowhere",), 4, "nowhere"),
        (("mian",), 4, "Did you mean 'main'?"),
        ((), 2, "nessie switch REF"),
        (("main", "main"), 2, "nessie switch REF"),
        (("-c", "main"), 5, "already exists"),
        (("-c", "bad name"), 2, "bad name"),
        (("-c", "new", "nowhere"), 4, "nowhere"),
    ],
)
def test_a_failed_switch_changes_nothing(catalog, args, code, words):
    outcome = catalog("switch", *args)

    assert outcome.code == code
    assert words in outcome.err
    assert heads(catalog) == "main"


def test_a_staged_batch_comes_along_and_is_compared_with_the_new_branch(catalog):
    catalog.ok("branch", "dev")
    catalog.table("db.orders", 9, "-m", "main moves on", "--ref", "dev")
    catalog.table("db.orders", 2)

    outcome = catalog.ok("switch", "dev")
    assert "1 staged operation moved to " in outcome.out
    assert [c["conflictType"] for c in catalog.ok("status", "--json").json["conflicts"]] == [
        "VALUE_DIFFERS"
    ]

    catalog.ok("switch", "main")
    assert catalog.ok("status", "--json").json["conflicts"] == []


def test_a_staged_delete_never_deletes_another_content_with_that_key(catalog):
    catalog.ok("branch", "dev")
    catalog.ok(
        "content",
        "replace",
        "db.orders",
        "--type",
        "udf",
        "--sql-text",
        "x",
        "-m",
        "other content",
        "--ref",
        "dev",
    )
    catalog.ok("content", "delete", "db.orders")
    catalog.ok("switch", "dev")

    outcome = catalog("commit", "-m", "drop", "--json")

    assert outcome.code == 3
    assert outcome.error["errorDetails"]["conflicts"][0]["conflictType"] == "PAYLOAD_DIFFERS"


def test_status_counts_ahead_and_behind(catalog):
    catalog.ok("switch", "-c", "dev")
    for snapshot in (2, 3):
        catalog.table("db.orders", snapshot, "-m", "on dev")
    catalog.table("db.other", 1, "-m", "on main", "--ref", "main")

    document = catalog.ok("status", "--json").json

    assert (document["ahead"], document["behind"], document["defaultBranch"]) == (2, 1, "main")
    assert "2 ahead, 1 behind main" in catalog.ok("status").out


def test_status_shows_each_change_once_renames_as_one(catalog):
    catalog.table("db.other", 1, "-m", "other")
    catalog.ok("content", "rename", "db.orders", "db.sold")
    catalog.ok("content", "replace", "db.other", "--type", "udf", "--sql-text", "x")
    catalog.table("db.new", 1)

    lines = [
        line.split() for line in catalog.ok("status").out.splitlines() if line.startswith("  ")
    ]

    assert lines == [
        ["rename", "db.orders", "db.sold"],
        ["replace", "db.other", "udf"],
        ["create", "db.new", "iceberg-table"],
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("{", "is not JSON"),
        ("[]", "is not a batch file"),
        ('{"version": 2}', "is not a batch file of version 1"),
        ('{"version": 1, "begunAt": "x"}', "operations"),
        ('{"version": 1, "begunAt": "x", "operations": [{"type": "PUT"}]}', "operations[0]"),
    ],
)
def test_a_damaged_batch_is_named_and_never_overwritten(catalog, text, words):
    path = catalog.folder / ".nessie" / "batch.json"
    path.write_text(text)

    for args in (
        ("status",),
        ("commit", "-m", "x"),
        ("content", "delete", "db.orders"),
        ("reset",),
    ):
        outcome = catalog(*args)
        assert outcome.code == 2, args
        assert outcome.err.startswith((f"nessie: {path}: ", f"nessie: {path} is "))
        assert words in outcome.err
        assert path.read_text() == text


def test_json_of_status_without_anything_staged(catalog):
    document = json.loads(catalog.ok("status", "--json").out)

    assert document["batch"] == {"reference": "main", "begunAt": None, "operations": []}
    assert set(document) == {"reference", "defaultBranch", "ahead", "behind", "batch", "conflicts"}
