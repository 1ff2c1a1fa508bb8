"""`nessie doctor`: what is installed, and the store that a command would use."""

import pytest

from tests.server.serving import serving

SECRET = "0e1d-hidden"


def checks(ran) -> dict[str, dict[str, str]]:
    return {check["name"]: check for check in ran.json["checks"]}


def facts(ran) -> dict[str, str]:
    return {name: check["fact"] for name, check in checks(ran).items()}


def test_every_check_is_a_row(nessie, catalog, tmp_path) -> None:
    ran = nessie("doctor")
    rows = {row[0]: row[1:] for row in ran.rows}
    assert ran.code == 0
    assert rows["python"][0] == "OK"
    assert rows["extra iceberg"][0] == "OK"
    assert "pyiceberg" in rows["extra iceberg"][1]
    assert rows["workspace"][1] == f"{tmp_path}, trusted"
    assert rows["answer"][1].endswith("default branch is main")
    assert rows["reference"][1] == f"main, chosen by the workspace {tmp_path}"


def test_a_check_names_the_source_of_the_store_and_the_reference(
    nessie, catalog, tmp_path, monkeypatch
) -> None:
    store = tmp_path / ".nessie" / "store.sqlite"
    assert facts(nessie("doctor", "--json"))["store"].endswith(f"the workspace {tmp_path}")
    found = facts(nessie("doctor", "--json", "--store", str(store), "--ref", "main"))
    assert found["store"].endswith("chosen by --store")
    assert found["reference"] == "main, chosen by --ref"
    assert nessie("config", "set", "profile.work.store", str(store), "--user").code == 0
    found = facts(nessie("doctor", "--json", "--profile", "work"))
    assert found["store"].endswith("chosen by the profile work (--profile)")
    monkeypatch.setenv("NESSIE_STORE", str(store))
    monkeypatch.setenv("NESSIE_REF", "main")
    found = facts(nessie("doctor", "--json"))
    assert found["store"].endswith("chosen by NESSIE_STORE")
    assert found["reference"] == "main, chosen by NESSIE_REF"


def test_no_store_is_not_a_failure(nessie) -> None:
    ran = nessie("doctor", "--json")
    assert (ran.code, ran.json["usable"]) == (0, None)
    assert checks(ran)["store"]["status"] == "ABSENT"
    assert checks(ran)["workspace"]["fix"] == "nessie init"


@pytest.mark.parametrize("store", ["nowhere.sqlite", "http://127.0.0.1:9/api/v2"])
def test_a_store_that_does_not_answer_is_exit_code_7(nessie, store) -> None:
    ran = nessie("doctor", "--json", "--store", store)
    assert (ran.code, ran.json["usable"]) == (7, False)
    assert checks(ran)["answer"]["status"] == "FAILED"


def test_a_missing_reference_is_one_failed_check(nessie, catalog) -> None:
    ran = nessie("doctor", "--json", "--ref", "gone")
    assert (ran.code, ran.json["usable"]) == (1, True)
    assert checks(ran)["reference"]["status"] == "FAILED"


def test_credentials_are_named_by_their_source_and_never_shown(
    nessie, catalog, monkeypatch
) -> None:
    monkeypatch.setenv("NESSIE_AUTH_TOKEN", SECRET)
    with serving(catalog.repository) as url:
        for words in (["doctor"], ["doctor", "--json"], ["doctor", "-v", "--debug"]):
            ran = nessie(*words, "--store", url)
            assert ran.code == 0, ran.err
            assert "bearer, from NESSIE_AUTH_TOKEN" in ran.out
            assert SECRET not in ran.out + ran.err


def test_credentials_that_may_not_be_sent_make_the_store_unusable(
    nessie, catalog, monkeypatch
) -> None:
    monkeypatch.setenv("NESSIE_AUTH_TOKEN", SECRET)
    ran = nessie("doctor", "--json", "--store", "http://catalog.example.org/api/v2")
    assert ran.code == 7
    assert checks(ran)["credentials"]["status"] == "FAILED"
    assert SECRET not in ran.out + ran.err


@pytest.mark.parametrize("text", ["author = [", "author = 5"])
@pytest.mark.parametrize("with_workspace", [False, True])
def test_invalid_settings_are_one_failed_check(nessie, tmp_path, with_workspace, text) -> None:
    if with_workspace:
        assert nessie("init").code == 0
    settings = tmp_path / "home" / "config" / "nessie" / "config.toml"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(text)
    ran = nessie("doctor", "--json")
    found = checks(ran)
    assert ran.code == 1
    assert found["user settings"]["status"] == "FAILED"
    assert str(settings) in found["user settings"]["fact"]
