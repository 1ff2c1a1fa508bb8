"""Writes golden files; check the result before you commit it.

python -m tests.json.make                                  rewrites every golden file
python -m tests.json.make NAME...                          rewrites these
python -m tests.json.make NAME 'nessie ...' [OPTION...]    creates tests/json/golden/NAME.json
python -m tests.json.make --fields                         adds new attributes to the permanent list

Options of a new one: --given 'nessie ...' runs before (may be repeated), --folder NAME (see
tests/json/lake.py), --stdin TEXT, --env NAME=VALUE.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from manual.schemas import fields, written
from tests.command.process import Forker
from tests.json import golden
from tests.json.golden import Case, Runner
from tests.json.lake import FOLDERS


def main(argv: list[str]) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.json.make",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*")
    parser.add_argument("--given", action="append", default=[])
    parser.add_argument("--folder", default="lake", choices=FOLDERS)
    parser.add_argument("--stdin", default="")
    parser.add_argument("--env", action="append", default=[])
    parser.add_argument("--fields", action="store_true")
    options = parser.parse_args(argv)
    if options.fields:
        golden.FIELDS.write_text(
            "".join(
                f"{line}\n" for line in sorted({*golden.FIELDS.read_text().splitlines(), *fields()})
            )
        )
        return
    new = len(options.names) == 2 and options.names[1].startswith("nessie ")
    env = dict(pair.split("=", 1) for pair in options.env)
    cases = (
        {
            options.names[0]: Case(
                options.names[1], options.folder, options.given, options.stdin, env
            )
        }
        if new
        else {
            name: golden.case_of(golden.read(name))
            for name in options.names or golden.of_command_lines()
        }
    )
    forker = Forker()
    with tempfile.TemporaryDirectory() as root:
        runner = Runner(Path(root), forker)
        for name, case in cases.items():
            write(name, case, runner)
    forker.close()


def write(name: str, case: Case, runner: Runner) -> None:
    _, outcome = runner.run(case)
    path = golden.path_of(name)
    text = written(golden.document_of(case, outcome))
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f"written: {path} (exit {outcome.code})")


if __name__ == "__main__":
    main(sys.argv[1:])
