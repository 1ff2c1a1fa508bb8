"""`nessie config`: settings of workspace, user and repository; profiles and aliases."""

from pathlib import Path

import pytest

from nessie_cli.repository.opening import create

COMMENTED = """\
# what the team agreed on
author = "Ada"  # for the log

[alias]
# short
lg = "log --oneline"
"""


@pytest.fixture
def settings(catalog, tmp_path: Path) -> Path:
    return tmp_path / ".nessie" / "config.toml"


def test_get_and_list_show_what_set_wrote(nessie, catalog) -> None:
    assert nessie("config", "unset", "--user", "merge.tables").code == 0
    assert (
        nessie("config", "set", "author", "Ada <ada@example.org>").out
        == "author = Ada <ada@example.org>\n"
    )
    assert nessie("config", "get", "author").out == "Ada <ada@example.org>\n"
    assert nessie("config", "list").rows == [["author", "Ada <ada@example.org>", "workspace"]]
    assert nessie("config", "get", "author", "--json").json == {
        "key": "author",
        "value": "Ada <ada@example.org>",
        "scope": "workspace",
    }
    assert nessie("config", "list", "--json").json == {
        "settings": [{"key": "author", "value": "Ada <ada@example.org>", "scope": "workspace"}]
    }


def test_a_change_keeps_comments_and_everything_else(nessie, settings) -> None:
    settings.write_text(COMMENTED)
    assert nessie("config", "set", "alias.st", "status").code == 0
    assert settings.read_text() == COMMENTED + 'st = "status"\n'
    assert nessie("config", "unset", "alias.st").code == 0
    assert settings.read_text() == COMMENTED
    assert nessie("config", "set", "author", "Eva", "--json").json == {
        "key": "author",
        "value": "Eva",
        "scope": "workspace",
        "previous": "Ada",
    }
    assert settings.read_text() == COMMENTED.replace("Ada", "Eva")


@pytest.mark.parametrize(
    "rest",
    ["[alias]\n# inner\n", '[alias]\n# for tables\n[access]\nusername = "ann"\n'],
)
def test_a_table_with_comments_is_kept_without_settings(nessie, settings, rest) -> None:
    settings.write_text(rest.replace("[alias]\n", '[alias]\nlg = "log"\n'))
    assert nessie("config", "unset", "alias.lg").code == 0
    assert settings.read_text() == rest


def test_a_table_is_removed_with_its_last_setting(nessie, settings) -> None:
    assert nessie("config", "set", "alias.lg", "log").code == 0
    assert nessie("config", "unset", "alias.lg").out == "removed: alias.lg = log\n"
    assert settings.read_text() == ""


def test_the_workspace_takes_precedence_over_the_user(nessie, catalog) -> None:
    nessie("config", "set", "author", "Everywhere", "--user")
    assert nessie("config", "get", "author").out == "Everywhere\n"
    nessie("config", "set", "author", "Here")
    assert nessie("config", "get", "author").out == "Here\n"
    assert nessie("config", "get", "author", "--user").out == "Everywhere\n"


def test_the_author_of_the_workspace_writes_its_commits_unless_the_environment_names_one(
    nessie, catalog, monkeypatch
) -> None:
    nessie("config", "set", "author", "Here <here@example.org>")
    nessie("content", "put", "s", "--type", "delta-table", "--last-checkpoint", "c", "-m", "new")
    assert catalog.repository.commit_at("main").meta.authors == ("Eva <eva@example.org>",)
    monkeypatch.delenv("NESSIE_AUTHOR")
    nessie("content", "put", "t", "--type", "delta-table", "--last-checkpoint", "c", "-m", "new")
    assert catalog.repository.commit_at("main").meta.authors == ("Here <here@example.org>",)


def test_a_setting_that_only_users_have_needs_no_workspace_and_no_option(nessie, tmp_path) -> None:
    assert nessie("config", "set", "default-profile", "work").code == 0
    assert (
        "default-profile" in (tmp_path / "home" / "config" / "nessie" / "config.toml").read_text()
    )
    ran = nessie("config", "set", "author", "Ada")
    ran.expect(2, "--user")


def test_pynessies_forms_work(nessie, catalog) -> None:
    assert nessie("config", "--unset", "merge.tables", "--user").code == 0
    assert nessie("config", "--add", "author", "Ada").code == 0
    assert nessie("config", "--get", "author").out == "Ada\n"
    assert nessie("config", "author").out == "Ada\n"
    assert nessie("config", "--list").rows == [["author", "Ada", "workspace"]]
    assert nessie("config", "--unset", "author").code == 0
    assert nessie("config", "-l").out == ""


@pytest.mark.parametrize(
    ("argv", "code", "said"),
    [
        (["get", "author"], 4, "'author' is not set"),
        (["get", "athor"], 4, "did you mean 'author'"),
        (["set", "athor", "x"], 2, "did you mean 'author'"),
        (["unset", "alias.none"], 4, "not set"),
        (["get", "protect.main", "--repository"], 4, "`nessie config list --repository`"),
        (["set", "endpoint", "http://h"], 2, "here it is called 'store'"),
        (["set", "protect.main", "no-delete"], 2, "--repository"),
        (["set", "store", "x", "--user"], 2, "use --workspace"),
        (["set", "author", "x", "--user", "--workspace"], 2, "only one of"),
        (["set", "author", " "], 2, "not blank"),
        (
            ["set", "store", "s3://bucket/x"],
            2,
            (
                "there are no s3:// stores; write a path, or a URL with one of sqlite://,"
                " postgresql://"
            ),
        ),
        (
            ["set", "profile.work.store", "postgresql+psycopg://h/x"],
            2,
            "there are no postgresql+psycopg:// stores",
        ),
        (
            ["list", "--store", "mongodb://h/x", "--repository"],
            2,
            "no store has this form; write sqlite:///relative/path",
        ),
        (["set", "author", "a\nb"], 2, "one line"),
        (["set", "profile..store", "x"], 2, "write NAME"),
        (["set", "profile.work.ref", "no name"], 2, "Reference name"),
        (["set", "alias.log", "diff"], 2, "an alias cannot override a command"),
        (["set", "alias.lg", "lgg"], 2, "does not begin with a nessie command"),
        (["set", "alias.lg", "log 'x"], 2, "is not a valid command line"),
        (["set", "alias.--lg", "log"], 2, "is not a valid command name"),
        (["set", "protect.main", "no-rules", "--repository"], 2, "no-rules"),
        (["set", "protct.main", "no-delete", "--repository"], 2, "did you mean 'protect.main'?"),
        (["set", "require-expected-content", "yes", "--repository"], 2, "must be true or false"),
        (["set", "namespace-validation", "off", "--repository"], 2, "must be true or false"),
    ],
)
def test_wrong_input_is_one_line_and_changes_nothing(nessie, settings, argv, code, said) -> None:
    ran = nessie("config", *argv)
    assert (ran.code, ran.out) == (code, "")
    assert said in ran.err
    assert len(ran.err.splitlines()) == 1
    assert not settings.exists()
    assert nessie("config", *argv, "--json").json["error"]["status"] in (400, 404)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("store", "postgresql://ada:geheim@db/lake"),
        ("store", "postgresql://db/lake?user=ada&password=geheim"),
        ("profile.work.store", "https://ada:geheim@host/api/v2"),
        ("access.proxy", "http://ada:geheim@host:3128"),
        ("profile.work.store", "https://host/api/v2?access_token=geheim"),
        ("alias.prod", "--store postgresql://ada:geheim@db/lake log"),
        ("auth.token", "geheim"),
        ("profile.work.password", "geheim"),
    ],
)
def test_secrets_are_refused_and_not_repeated(nessie, settings, tmp_path, name, value) -> None:
    ran = nessie("config", "set", name, value)
    assert ran.code == 2
    assert f"nessie: {name}: " in ran.err
    assert "secrets are never written" in ran.err
    assert "geheim" not in ran.err + nessie("config", "set", name, value, "--json").out
    assert "geheim" not in "".join(p.read_text() for p in tmp_path.rglob("config.toml"))


def test_init_writes_no_secret_either(nessie, tmp_path) -> None:
    ran = nessie("init", "--store", "postgresql://ada:geheim@db/lake")
    ran.expect(2, "secrets are never written")
    assert not (tmp_path / ".nessie").exists()


def test_a_file_that_is_not_toml_is_reported_with_its_line_and_kept(nessie, settings) -> None:
    settings.write_text('author = "Ada"\nalias = [\n')
    for argv in (["list"], ["set", "author", "Eva"], ["unset", "author"]):
        ran = nessie("config", *argv)
        ran.expect(2, "line")
    assert settings.read_text() == 'author = "Ada"\nalias = [\n'


def test_settings_of_the_repository_apply_to_every_client(nessie, catalog) -> None:
    assert nessie("config", "--repository", "set", "protect.release/*", "no-delete").code == 0
    assert catalog.repository.config().settings["protect.release/*"] == "no-delete"
    assert nessie("config", "list", "--repository").rows == [
        ["protect.release/*", "no-delete", "repository"]
    ]
    catalog.branch("release/1")
    ran = nessie("branch", "-d", "release/1")
    ran.expect(6, "protect")
    assert nessie("config", "unset", "protect.release/*", "--repository").code == 0
    assert nessie("branch", "-d", "release/1").code == 0


# -- profiles ------------------------------------------------------------------------------------
@pytest.fixture
def elsewhere(nessie, tmp_path: Path) -> str:
    """A store that only the profile `work` names, with the branches `main` and `dev`."""
    url = str(tmp_path / "elsewhere.sqlite")
    with create(url) as repository:
        repository.create_reference("BRANCH", "dev", repository.reference("main").hash)
    assert nessie("config", "set", "profile.work.store", "elsewhere.sqlite").code == 0
    assert nessie("config", "set", "profile.work.ref", "dev").code == 0
    return url


def names(ran) -> list[str]:
    return [row[0] for row in ran.rows]


def test_the_default_profile_is_used_if_nothing_else_names_a_store(nessie, elsewhere) -> None:
    assert nessie("branch").code == 4
    nessie("config", "set", "default-profile", "work")
    assert names(nessie("branch")) == ["dev", "main"]
    assert nessie("status", "--json").json["reference"]["name"] == "dev"


def test_a_named_profile_takes_precedence_over_the_workspace(
    nessie, elsewhere, catalog, monkeypatch
) -> None:
    assert "dev" not in names(nessie("branch"))
    assert names(nessie("--profile", "work", "branch")) == ["dev", "main"]
    assert names(nessie("branch", "--profile", "work")) == ["dev", "main"]
    monkeypatch.setenv("NESSIE_PROFILE", "work")
    assert names(nessie("branch")) == ["dev", "main"]
    assert nessie("status", "--json").json["reference"]["name"] == "dev"
    assert "dev" not in names(nessie("branch", "--store", catalog.url))


def test_the_path_in_a_profile_means_the_same_everywhere(nessie, elsewhere, tmp_path) -> None:
    (tmp_path / "deep").mkdir()
    assert names(nessie("-C", "deep", "--profile", "work", "branch")) == ["dev", "main"]


def test_an_unknown_profile_gets_a_suggestion(nessie, elsewhere, catalog) -> None:
    ran = nessie("--profile", "wrok", "branch")
    ran.expect(4, "did you mean 'work'")
    ran = nessie("--profile", "work", "--store", "x", "branch")
    ran.expect(2, "cannot be used together")


def test_a_default_profile_without_a_store_names_the_line(nessie, elsewhere) -> None:
    nessie("config", "set", "default-profile", "home")
    ran = nessie("branch")
    ran.expect(2, "line 1", "[profile.home]")


# -- aliases -------------------------------------------------------------------------------------
def test_an_alias_is_replaced_before_parsing(nessie, catalog) -> None:
    nessie("config", "set", "alias.lg", "log --oneline")
    assert nessie("lg", "-n", "1") == nessie("log", "--oneline", "-n", "1")
    assert nessie("--json", "lg") == nessie("--json", "log", "--oneline")
    nessie("config", "set", "alias.old", "--ref v1 content list")
    assert nessie("old").rows[0][0] == "db"


def test_an_alias_is_found_from_where_the_command_works(nessie, catalog, tmp_path) -> None:
    nessie("config", "set", "alias.lg", "log --oneline")
    (tmp_path / "outside").mkdir()
    assert nessie("-C", "outside", "lg").code == 0
    assert nessie("-C", str(tmp_path.parent), "lg").code == 2


def test_an_alias_in_a_file_hides_no_command_and_names_no_other_alias(nessie, settings) -> None:
    settings.write_text('[alias]\nlog = "branch"\nlg = "lgg"\nlgg = "log"\n')
    assert nessie("log", "--oneline").lines[0].endswith("tables")
    ran = nessie("lg")
    ran.expect(2, "does not begin with a nessie command")
    assert nessie("lgg").code == 0


def test_a_mistyped_alias_gets_a_suggestion(nessie, catalog) -> None:
    nessie("config", "set", "alias.graph", "log --graph")
    ran = nessie("grph")
    ran.expect(2, "did you mean 'graph'")


# -- lists ---------------------------------------------------------------------------------------
def test_a_value_is_added_to_a_list(nessie, tmp_path, monkeypatch):
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert (
        nessie("config", "set", "safe-directories", "/srv/lake", "--add").out
        == "safe-directories = /srv/lake\n"
    )
    for _ in range(2):
        assert nessie("config", "set", "safe-directories", ".", "--add").code == 0
    assert nessie("config", "get", "safe-directories").out == f"/srv/lake:{tmp_path / 'inner'}\n"
    assert nessie("config", "set", "safe-directories", "/only").out == "safe-directories = /only\n"
    assert nessie("config", "--global", "--add", "allow-http", "nessie:19120").code == 0
    assert (
        nessie("config", "--global", "--add", "allow-http", "other").out
        == "allow-http = nessie:19120 other\n"
    )


def test_a_list_may_be_written_as_an_array(nessie, tmp_path):
    path = tmp_path / "home" / "config" / "nessie" / "config.toml"
    path.write_text('trusted-endpoints = ["https://one.example.org", "https://two.example.org"]\n')
    assert (
        nessie("config", "get", "trusted-endpoints").out
        == "https://one.example.org, https://two.example.org\n"
    )
    added = nessie("config", "set", "trusted-endpoints", "https://three.example.org", "--add")
    assert (
        added.out
        == "trusted-endpoints = https://one.example.org https://two.example.org https://three.example.org\n"
    )


@pytest.mark.parametrize("text", ["https://one.org,https://two.org", "https://one.org, two:1"])
def test_servers_may_be_separated_by_commas(nessie, text):
    ran = nessie("config", "set", "trusted-endpoints", text)
    assert ran.code == (2 if "two:1" in text else 0), ran.err


def test_a_setting_that_is_not_a_list_takes_one_value(nessie):
    refused = nessie("config", "set", "author", "Ada", "--add", "--user")
    refused.expect(2, "author is not a list")
    assert nessie("config", "--global", "--add", "author", "Ada").code == 0
    assert nessie("config", "set", "trusted-endpoints", "nessie:19120").code == 2
    refused = nessie("config", "--global", "safe.directory", "/srv/lake")
    refused.expect(2, "here it is called 'safe-directories'")
