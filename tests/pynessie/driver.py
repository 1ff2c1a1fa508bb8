"""Runs commands of pynessie's command line in one process: a line of JSON in, a line of JSON
out.

It runs with pynessie's own libraries, which are not those of this project. The answer to `{"args":
[...], "input": "..."}` is `{"exit": 0, "out": "..."}`, the answer to `{"args": null}` the names of
all commands.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

from click import Command, Group
from click.testing import CliRunner
from pynessie.cli import cli


def names(command: Command, words: tuple[str, ...] = ()) -> Iterator[str]:
    if isinstance(command, Group):
        for name, below in command.commands.items():
            yield from names(below, (*words, name))
    else:
        yield " ".join(words)


def main() -> None:
    for line in sys.stdin:
        asked = json.loads(line)
        if asked["args"] is None:
            answer = {"names": sorted(names(cli))}
        else:
            result = CliRunner().invoke(cli, asked["args"], input=asked["input"])
            answer = {
                "exit": result.exit_code,
                "out": result.output + (repr(result.exception) if result.exit_code else ""),
            }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
