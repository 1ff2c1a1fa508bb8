"""Makes the golden files. Run it once for each released format, never to make a test pass:

python -m tests.golden.make_store
"""

from __future__ import annotations

import json
from pathlib import Path

from nessie_cli.repository.opening import connect, create
from nessie_cli.store import STORE_FORMAT
from tests.golden.facts import readable
from tests.golden.story import BEGIN, clock, one_more, randomness, tell

HERE = Path(__file__).parent
LATER = {"clock": BEGIN + 86_400_000_000, "random": 10_000_000}
"""Where clock and randomness begin when the current program writes on top of an old store."""


def write(path: Path, facts: object) -> None:
    path.write_text(
        json.dumps(facts, ensure_ascii=False, indent=1, sort_keys=True) + "\n", encoding="utf-8"
    )
    print(path)


def main() -> None:
    store = HERE / f"store-format-{STORE_FORMAT}.sqlite"
    if store.exists():
        raise SystemExit(
            f"{store} is there; it is the proof that old stores can be read, so it is not made"
            " again"
        )
    with create(str(store), clock=clock(), random=randomness(), who="golden") as repository:
        hashes = tell(repository)
        facts = readable(repository)
    copy = store.with_suffix(".copy")
    copy.write_bytes(store.read_bytes())
    with connect(
        str(copy), clock=clock(LATER["clock"]), random=randomness(LATER["random"]), who="golden"
    ) as repository:
        later = one_more(repository)
    copy.unlink()
    write(
        HERE / f"store-format-{STORE_FORMAT}.json",
        {"hashes": hashes, "later": later, "readable": facts},
    )


if __name__ == "__main__":
    main()
