"""What the record of a run has of a command line: no value that looks secret."""

from __future__ import annotations

import pytest

from nessie_cli.cli.run.settings import shown_command


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
