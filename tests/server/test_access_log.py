"""The access log: its waiting lines are bounded in bytes."""

import errno
import json
import os
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


def test_tokens_in_addresses_are_not_logged() -> None:
    written: list[bytes] = []
    log = AccessLog(written.append)
    id_, secret = "0123456789ab", "Az_-" * 10 + "xyz"
    jwt = f"{secret}.{secret}.{secret}"
    log.record(path=f"/nessie_{id_}_{secret}", query=f"token=nessie-run_a.b_{secret}&t=eyJ{jwt}&x")
    # Parts that look like tokens take no long time either.
    log.record(path="nessie-run_" * 6_000, query=f"ref={'eyJ' * 10}")
    log.close()
    first, second = (json.loads(line) for line in b"".join(written).splitlines())
    assert first["path"] == f"/nessie_{id_}_***"
    assert first["query"] == "token=nessie-run_***&t=eyJ***&x"
    assert second["query"] == f"ref={'eyJ' * 10}"


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


def test_a_log_goes_on_when_its_disk_has_space_again() -> None:
    """The disk is full in the middle of a line."""
    written: list[bytes] = []
    full = threading.Event()
    failed = threading.Event()

    def write(data: bytes) -> None:
        if full.is_set():
            written.append(data[:10])
            failed.set()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        written.append(data)

    def records() -> int:
        return b"".join(written).count(b"number")

    log = AccessLog(write)
    log.record(number=1)
    while not records():
        pass
    full.set()
    log.record(number=2)
    assert failed.wait(30)
    full.clear()
    log.record(number=3)
    log.close()
    first, cut, *rest = b"".join(written).splitlines()
    assert json.loads(first)["number"] == 1
    assert len(cut) == 10
    lines = [json.loads(line) for line in rest]
    assert [line.get("number") for line in lines] == [3, None]
    assert (
        lines[1]["message"] == "lines of this log were lost, at most 1: they could not be written"
    )


def test_a_log_ends_when_its_reader_has_exited() -> None:
    calls: list[bytes] = []

    def write(data: bytes) -> None:
        calls.append(data)
        raise BrokenPipeError

    log = AccessLog(write)
    log.record(number=1)
    log.close()
    assert len(calls) == 1
