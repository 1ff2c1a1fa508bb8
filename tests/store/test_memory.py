"""The memory store fulfils the store contract."""

from nessie_cli.store.memory import MemoryStore
from tests.store.contract import StoreContract
from tests.store.samples import Clock


class TestMemoryStore(StoreContract):
    def make_store(self, clock: Clock) -> MemoryStore:
        return MemoryStore(clock)
