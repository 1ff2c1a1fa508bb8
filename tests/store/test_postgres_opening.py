"""Creating and opening stores in PostgreSQL: URLs, passwords, schemas, formats, permissions."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from nessie_cli.errors import InvalidInput, StoreNotFound, StoreUnavailable, UnsupportedFormat
from nessie_cli.store import STORE_FORMAT
from nessie_cli.store.opening import create_store, open_store
from nessie_cli.store.postgres import create_postgres, open_postgres
from nessie_cli.store.postgres.location import parse_location
from nessie_cli.store.records import Done
from tests.store.postgres_server import DATABASE, USER, PostgresServer
from tests.store.samples import create, write

SECRET = "geheim"


def schema_of(url: str) -> str:
    return url.partition("schema=")[2]


# -- URLs --


@pytest.mark.parametrize(
    "url",
    [
        f"postgresql://ada:{SECRET}@host/db",
        f"postgres://ada:{SECRET}@host/db",
        f"POSTGRESQL://ada:{SECRET}@host/db",
        f"postgresql://ada:{SECRET}@a@host/db",
        f"postgresql://ada:a/{SECRET}@host/db",
        f"postgresql://ada:a?{SECRET}@host/db",
        f"postgresql://ada:a?b={SECRET}@host/db",
        f"postgresql://ada:a#{SECRET}@host/db",
        f"postgresql://:{SECRET}@host/db",
        f"postgresql://ada%3a{SECRET}@host/db",
        f"postgresql://host/db?user=ada&password={SECRET}",
        f"postgresql://host/db?PassWord={SECRET}",
        f"postgresql://host/db?p%61ssword={SECRET}",
        f"postgresql://host/db?sslpassword={SECRET}",
        f"postgresql:ada:{SECRET}@host/db",
    ],
)
def test_a_password_in_the_url_is_refused_and_not_shown(url: str) -> None:
    for make in (create_store, open_store):
        with pytest.raises(InvalidInput, match=r"^store postgresql:") as caught:
            make(url)
        assert SECRET not in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("postgresql://host/db?nonsense=1", "nonsense"),
        ("postgresql://host/db?schema=", "schema"),
        ("postgresql://host/db?schema=" + "x" * 64, "63 bytes"),
        ("postgresql://host/db?pool_size=1", "from 2 to"),
        ("postgresql://host/db?pool_size=many", "from 2 to"),
        ("postgresql://host/db?pool_size=9999", "from 2 to"),
        ("postgresql://host/db?schema=a&schema=b", "schema is given twice"),
        ("postgresql://host/db?schema", "no value"),
        ("postgresql:host", "postgresql://user@host/database"),
    ],
)
def test_a_malformed_url_is_refused(url: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said) as caught:
        open_store(url)
    assert "\n" not in str(caught.value)


def test_options_of_a_url_are_parsed() -> None:
    found = parse_location(
        "postgresql://ada@h1,h2:5433/db?schema=s%2F1&pool_size=5&sslmode=verify-full&options=-c%20a%3Db+c"
    )
    assert (found.schema, found.pool_size) == ("s/1", 5)
    expected = {
        "user": "ada",
        "host": "h1,h2",
        "port": ",5433",
        "dbname": "db",
        "sslmode": "verify-full",
        "options": "-c a=b+c",
    }
    assert found.connection.items() >= expected.items()
    assert parse_location("postgresql:///db").schema == "nessie"


def test_the_url_opens_the_store_again(postgres_url: str) -> None:
    store = create_store(postgres_url)
    write(store, create("main"))
    again = open_store(store.url)
    assert again.references() == store.references() != []
    store.close()
    again.close()


def test_application_name_and_tls_can_be_set(postgres_url: str, server: PostgresServer) -> None:
    store = create_postgres(postgres_url + "&application_name=loader%20one")
    with server.connect() as connection:
        names = connection.execute(
            "SELECT application_name FROM pg_stat_activity WHERE datname = %s", (DATABASE,)
        ).fetchall()
    assert ("loader one",) in names
    store.close()
    # This server has no TLS, so requiring TLS prevents the connection.
    with pytest.raises(StoreUnavailable, match="SSL"):
        open_postgres(postgres_url + "&sslmode=require")


@pytest.fixture
def guarded(server: PostgresServer) -> Iterator[PostgresServer]:
    """The server requires a password from the user `ada`."""
    rules = server.folder / "data/pg_hba.conf"
    before = rules.read_text()
    with server.connect() as connection:
        connection.execute(f"CREATE ROLE ada LOGIN PASSWORD '{SECRET}'")
        rules.write_text("host all ada 127.0.0.1/32 scram-sha-256\n" + before)
        connection.execute("SELECT pg_reload_conf()")
    yield server
    rules.write_text(before)
    with server.connect() as connection:
        connection.execute("SELECT pg_reload_conf()")
        connection.execute("DROP ROLE ada")


def test_passwords_come_from_the_environment_and_files(
    guarded: PostgresServer, postgres_url: str, tmp_path: Path
) -> None:
    create_postgres(postgres_url).close()
    with guarded.connect() as connection:
        schema = schema_of(postgres_url)
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO ada")
        connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO ada")
    url = postgres_url.replace(f"//{USER}@", "//ada@")
    passwords, services = tmp_path / "passwords", tmp_path / "services"
    passwords.write_text(f"127.0.0.1:*:*:ada:{SECRET}\n")
    passwords.chmod(0o600)
    services.write_text(
        f"[lake]\nhost=127.0.0.1\nport={guarded.port}\nuser=ada\npassword={SECRET}\ndbname={DATABASE}\n"
    )
    code = (
        "import sys; from nessie_cli.store.opening import open_store; store ="
        " open_store(sys.argv[1]); print(store.url, store.references())"
    )

    def opened(url: str, **environment: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", code, url],
            capture_output=True,
            text=True,
            env=os.environ | environment,
            check=False,
        )

    for ran in (
        opened(url, PGPASSWORD=SECRET),
        opened(url, PGPASSFILE=str(passwords)),
        opened(f"postgresql:///?service=lake&schema={schema}", PGSERVICEFILE=str(services)),
    ):
        assert ran.returncode == 0, ran.stderr
        assert ran.stdout.endswith(" []\n")
        assert SECRET not in ran.stdout + ran.stderr
    for ran in (opened(url), opened(url, PGPASSWORD="wrong" + SECRET)):
        assert "StoreUnavailable: store postgresql://ada@" in ran.stderr
        assert "password" in ran.stderr
        assert SECRET not in ran.stderr


# -- schemas and formats --


def test_a_missing_store_is_reported(postgres_url: str, server: PostgresServer) -> None:
    with pytest.raises(StoreNotFound, match="schema test_"):
        open_store(postgres_url)
    with pytest.raises(StoreUnavailable, match="does not exist"):
        open_store(postgres_url.replace(f"/{DATABASE}?", "/elsewhere?"))
    for make in (open_store, create_store):
        with pytest.raises(StoreUnavailable, match="refused"):
            make(postgres_url.replace(f":{server.port}/", ":1/"))


def test_two_schemas_are_two_stores(server: PostgresServer, postgres_url: str) -> None:
    other_url = postgres_url + 'x"ä'
    one, other = create_postgres(postgres_url), create_postgres(other_url)
    assert write(one, create("main", "1")) == write(other, create("main", "2")) == Done()
    assert one.references() != other.references()
    with server.connect() as connection:
        schema = schema_of(other_url).replace('"', '""')
        connection.execute(f'DROP SCHEMA "{schema}" CASCADE')
    one.close()
    other.close()


def test_creating_twice_keeps_the_store(postgres_url: str) -> None:
    first = create_postgres(postgres_url)
    write(first, create("main"))
    second = create_postgres(postgres_url)
    assert len(second.references()) == 1
    first.close()
    second.close()


def test_many_processes_create_one_store(postgres_url: str) -> None:
    code = (
        "import sys; from nessie_cli.store.postgres import create_postgres; from"
        " tests.store.samples import create, write;"
        "print(write(create_postgres(sys.argv[1]), create(sys.argv[2])))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", code, postgres_url, f"branch {n}"],
            stdout=subprocess.PIPE,
            text=True,
        )
        for n in range(4)
    ]
    assert [process.communicate(timeout=120)[0] for process in processes] == ["Done()\n"] * 4
    store = open_postgres(postgres_url)
    assert [one.name for one in store.references()] == [f"branch {n}" for n in range(4)]
    store.close()


def test_a_schema_with_other_tables_is_left_alone(
    postgres_url: str, server: PostgresServer
) -> None:
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema_of(postgres_url)} CREATE TABLE other (a int)")
    with pytest.raises(UnsupportedFormat, match="does not hold a nessie store"):
        open_postgres(postgres_url)
    with pytest.raises(UnsupportedFormat, match="other tables"):
        create_postgres(postgres_url)


def test_a_foreign_table_of_the_same_name_is_not_a_store(
    postgres_url: str, server: PostgresServer
) -> None:
    with server.connect() as connection:
        connection.execute(f"CREATE SCHEMA {schema_of(postgres_url)} CREATE TABLE store (a int)")
    for make in (open_postgres, create_postgres):
        with pytest.raises(UnsupportedFormat, match="does not hold a nessie store"):
            make(postgres_url)


def test_a_newer_format_is_refused(postgres_url: str, server: PostgresServer) -> None:
    create_postgres(postgres_url).close()
    with server.connect() as connection:
        connection.execute(f"UPDATE {schema_of(postgres_url)}.store SET format = 99")
    with pytest.raises(
        UnsupportedFormat,
        match=f"format 99; this program supports format {STORE_FORMAT}. Hint: upgrade",
    ):
        open_postgres(postgres_url)


def test_an_older_format_is_refused_unchanged(postgres_url: str, server: PostgresServer) -> None:
    create_postgres(postgres_url).close()
    with server.connect() as connection:
        connection.execute(f"UPDATE {schema_of(postgres_url)}.store SET format = 2")
    with pytest.raises(UnsupportedFormat, match="format 2"):
        open_store(postgres_url)
    with server.connect() as connection:
        query = f"SELECT format FROM {schema_of(postgres_url)}.store"
        assert connection.execute(query).fetchall() == [(2,)]


def test_the_tables_of_an_unreleased_version_are_refused(
    postgres_url: str, server: PostgresServer
) -> None:
    create_postgres(postgres_url).close()
    with server.connect() as connection:
        connection.execute(f"DROP TABLE {schema_of(postgres_url)}.attempts")
    for make in (open_postgres, create_postgres):
        with pytest.raises(UnsupportedFormat, match=r"Hint: create a new store, .*store load FILE"):
            make(postgres_url)


def test_text_is_compared_by_code_point_in_every_database(
    postgres_url: str, server: PostgresServer
) -> None:
    create_postgres(postgres_url).close()
    with server.connect() as connection:
        query = """SELECT DISTINCT collname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
            JOIN pg_collation l ON l.oid = a.attcollation
            WHERE c.relnamespace = %s::regnamespace AND a.atttypid = 'text'::regtype"""
        assert connection.execute(query, (schema_of(postgres_url),)).fetchall() == [("C",)]


def test_a_database_in_another_encoding_is_refused(
    server: PostgresServer, postgres_url: str
) -> None:
    with server.connect() as connection:
        connection.execute("CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0")
        try:
            with pytest.raises(
                UnsupportedFormat,
                match="encoding is LATIN1; create one by createdb --encoding=UTF8",
            ):
                create_postgres(postgres_url.replace(f"/{DATABASE}?", "/latin?"))
        finally:
            connection.execute("DROP DATABASE latin")


# -- permissions --


def test_a_read_only_user_can_read_and_gets_clear_refusals(
    postgres_url: str, server: PostgresServer
) -> None:
    store = create_postgres(postgres_url)
    write(store, create("main"))
    schema = schema_of(postgres_url)
    with server.connect() as connection:
        connection.execute("CREATE ROLE reader LOGIN")
        try:
            connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO reader")
            url = postgres_url.replace(f"//{USER}@", "//reader@")
            with pytest.raises(StoreUnavailable, match="permission denied for table store; grant"):
                open_postgres(url)
            connection.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO reader")
            reader = open_postgres(url)
            assert reader.references() == store.references()
            with pytest.raises(StoreUnavailable, match="permission denied"):
                write(reader, create("other"))
            with pytest.raises(StoreUnavailable, match="permission denied"):
                create_postgres(url.replace(schema, schema + "x"))
            reader.close()
        finally:
            connection.execute("DROP OWNED BY reader")
            connection.execute("DROP ROLE reader")
    store.close()
