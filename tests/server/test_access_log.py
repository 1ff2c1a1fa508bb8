"""The access log: its waiting lines are bounded in bytes."""

import json
import threading

from nessie_cli.server.pipeline.exchange import AccessLog

MIB = 1 << 20


def test_lines_that_nobody_reads_take_at_most_16_mib() -> None:
    reads = threading.Event()
    written: list[bytes] = []

    def write(data: bytes) -> None:
        reads.wait(30)
        written.append(data)

    log = AccessLog(write)
    for number in range(1_000):
        log.record(path="x" * 60_000, number=number)
    reads.set()
    log.close()
    assert sum(map(len, written)) < 17 * MIB
    assert max(map(len, written)) < 2 * MIB
    lines = [json.loads(line) for line in b"".join(written).splitlines()]
    numbers = [line["number"] for line in lines if "number" in line]
    assert numbers == list(range(len(numbers)))
    reports = [line["message"].partition(" ") for line in lines if "message" in line]
    # The thread can begin after the first line was lost, and then reports twice.
    assert sum(int(number) for number, _, _ in reports) == 1_000 - len(numbers) > 0
    assert {text for _, _, text in reports} == {
        "lines of this log were lost: its reader is too slow"
    }


def test_a_log_whose_reader_is_fast_is_whole() -> None:
    written: list[bytes] = []
    log = AccessLog(written.append)
    for number in range(3_000):
        log.record(path="x" * 10_000, number=number)
        if number % 500 == 0:
            while len(b"".join(written).splitlines()) <= number:
                pass
    log.close()
    assert len(b"".join(written).splitlines()) == 3_000
