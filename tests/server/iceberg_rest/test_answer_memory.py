"""Tables with large metadata: their answers take part in the limit of large answers."""

from nessie_cli.server.http.messages import Limits
from tests.server.iceberg_rest.lake import error_of, lake
from tests.server.test_answer_memory import asked, status

LARGE = {f"p{number:02}": "x" * 100_000 for number in range(80)}
"""Properties of 8 MB, more than the buffers of a connection hold."""


def test_answers_of_tables_share_the_limit_and_those_of_writes_exceed_it(tmp_path):
    with lake(tmp_path, limits=Limits(answers=10_000_000, answer_seconds=0.5)) as served:
        main = served.main
        main.namespace("db")
        for name in ("unread", "other"):
            assert main.create("db", name, properties=LARGE).status == 200
        with asked(served.url, "/iceberg/v1/main/namespaces/db/tables/unread") as connection:
            # The answer has its share when its head arrives.
            assert status(connection) == 200
            refused = main.load("db", "other")
            assert error_of(refused) == (429, "TooManyRequestsException")
            assert refused.headers["retry-after"] == "2"
            changed = main.set_properties("db", "other", properties={"q": "1"})
            properties = changed.body["metadata"]["properties"]
            assert properties.items() >= {**LARGE, "q": "1"}.items()
        assert main.load("db", "other").body["metadata"]["properties"] == properties
