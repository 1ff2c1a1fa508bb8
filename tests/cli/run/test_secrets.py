"""What the record of a run has of a command line: no value that looks secret."""

from __future__ import annotations

import pytest

from nessie_cli.errors import InvalidInput
from nessie_cli.runs.checks import CheckKind, RunCheck
from nessie_cli.runs.shown_text import shown_command


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--password=X"], ["--password=***"]),
        (["--token", "X", "a"], ["--token", "***", "a"]),
        (["AWS_SECRET_ACCESS_KEY=X"], ["AWS_SECRET_ACCESS_KEY=***"]),
        (["postgres://u:X@h/d"], ["postgres://u@h/d"]),
        (["--conf", "spark.hadoop.fs.s3a.secret.key=X"], None),
        (["Authorization: Bearer X"], ["Authorization: Bearer ***"]),
        (['{"password":"X","a":1}'], ['{"password":"***","a":1}']),
        (["https://h/x?sig=X&X-Amz-Signature=X&a=b"], None),
        (["x --password=X; y --api-key=X"], ["x --password=***; y --api-key=***"]),
    ],
)
def test_secrets_are_hidden(words: list[str], shown: list[str] | None) -> None:
    hidden = shown_command(words)
    assert "X" not in "".join(hidden).replace("X-Amz", "")
    assert shown is None or list(hidden) == shown


@pytest.mark.parametrize(
    "word", ["--date=2026-11-30", "design=a", "tokens.csv", "s3://lake/secrets/a", "--key", "-p"]
)
def test_other_words_stay(word: str) -> None:
    assert shown_command([word, "value"]) == (word, "value")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (CheckKind.COMMAND, "curl -H 'Authorization: Bearer abc' https://h/x"),
        (CheckKind.COMMAND, "check --token abc"),
        (CheckKind.COMMAND, "PGPASSWORD=abc psql"),
        (CheckKind.COMMAND, "psql postgres://u:abc@h/d"),
        (CheckKind.COMMAND, "check --token $TOKEN --password abc"),
        (CheckKind.SQL, "ATTACH 'host=h password=abc' AS p (TYPE postgres); SELECT 1"),
        (CheckKind.SPARK_SQL, "SELECT 'postgres://u:abc@h/d'"),
    ],
)
def test_a_check_with_a_secret_is_refused(kind: CheckKind, text: str) -> None:
    with pytest.raises(InvalidInput, match="looks secret") as refused:
        RunCheck(kind, text).validate()
    assert "abc" not in refused.value.message


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (CheckKind.COMMAND, 'check --token $TOKEN --password="${PASSWORD}"'),
        (CheckKind.COMMAND, 'curl -H "Authorization: Bearer $TOKEN" https://h/x'),
        (CheckKind.COMMAND, "psql postgres://u:$PW@h/d"),
        (CheckKind.COMMAND, "pytest checks/tokens.py -k password --date=2026-11-30"),
        (CheckKind.SQL, "SELECT * FROM lake.a JOIN lake.b ON a.api_key = b.api_key"),
        (CheckKind.COMMAND, "pytest basic checks"),
        (CheckKind.COMMAND, "echo three rows; exit 4 & true? && :"),
        (CheckKind.COMMAND, "test -e go || { touch checking; exec sleep 60; }"),
        (CheckKind.SQL, "SELECT * FROM lake.a WHERE name = 'who?' OR name = 'a;'"),
        (CheckKind.SQL, "SELECT * FROM lake.a WHERE plan = 'Basic tier'"),
        (CheckKind.SQL, "SELECT * FROM lake.a WHERE password = 'abc' OR token='x'"),
    ],
)
def test_a_check_without_one_is_accepted(kind: CheckKind, text: str) -> None:
    RunCheck(kind, text).validate()
