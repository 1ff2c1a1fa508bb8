"""A large commit's memory is returned to the system."""

import json
import subprocess
import sys
import time
from pathlib import Path

from nessie_cli import create
from nessie_cli.kernel.objects import Cache
from tests.server.client import EMPTY, Client, put
from tests.server.processes import started

PATIENCE = 60
OPERATIONS = 100_000


def resident(pid, name="VmRSS"):
    """Returns the resident memory of a process, in bytes."""
    return next(
        int(line.split()[1]) << 10
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith(name)
    )


def test_a_server_frees_the_memory_of_a_large_commit(tmp_path):
    """At its peak, the server needs less than 8.5 times the size of the body."""
    store = str(tmp_path / "catalog.sqlite")
    create(store).close()
    with started("--store", store) as (process, url):
        client = Client(url)
        head = client.commit("main", EMPTY, put("first")).body["targetBranch"]["hash"]
        before, most_before = resident(process.pid), resident(process.pid, "VmHWM")
        for number in range(2):
            operations = [put(f"t{number}-{one:06}") for one in range(OPERATIONS)]
            answer = client.commit("main", head, *operations)
            head = answer.body["targetBranch"]["hash"]
            if number == 0:
                # No JSON remains while the commit is drafted.
                grown = resident(process.pid, "VmHWM") - most_before
                assert grown < 8.5 * len(json.dumps(operations))
        end = time.monotonic() + PATIENCE
        while resident(process.pid) - before > 50 << 20:
            assert time.monotonic() < end, resident(process.pid) - before
            time.sleep(0.2)
        client.close()


LIVE = """
import gc, time
from nessie_cli.server.runtime.memory import give_back, is_cheap, set_aside

set_aside()
assert is_cheap()
answer = [[number] for number in range(1_000_000)]
gc.collect(1)
begun = time.thread_time()
print(is_cheap())
search = time.thread_time() - begun
begun = time.thread_time()
gc.collect()
print(search < (time.thread_time() - begun) / 2)
del answer
print(is_cheap())
give_back()
print(gc.get_freeze_count())
"""


def test_the_objects_of_an_answer_that_is_being_sent_are_not_searched_for_garbage():
    """A search of a million objects stops everything for some tenths of a second."""
    done = subprocess.run([sys.executable, "-c", LIVE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True", "True", "0"]


class Weight:
    def __init__(self, weight):
        self._weight = weight

    def weight(self):
        return self._weight


def test_a_large_load_does_not_evict_the_cache():
    cache = Cache(100)
    cache.put(b"young", Weight(10))
    cache.put_all({b"%d" % number: Weight(1) for number in range(1000)})
    assert cache.get(b"young") is not None
    assert cache.get(b"999") is None
    cache.put_all({b"a": Weight(5), b"b": Weight(5)})
    assert cache.get(b"b") is not None
