"""Modules that are loaded when something in them is used, each in a process of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest

from nessie_cli.cli.later import SELDOM_USED

PROGRAM = """
import sys
from importlib import import_module
from nessie_cli.cli.later import Postponed, load_all, postpone

def waits(name):
    return isinstance(sys.modules[name], Postponed)

postpone()
"""


def run(program):
    done = subprocess.run([sys.executable, "-c", PROGRAM + program], stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", check=False)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("name", sorted(SELDOM_USED))
def test_a_module_is_loaded_by_the_first_name_that_is_asked_for(name):
    found = run(f"""
module = import_module({name!r})
print(waits({name!r}), hasattr(module, "no_such_name"), waits({name!r}), module is import_module({name!r}))
print(type(module.__loader__).__name__, module.__spec__.loader is module.__loader__)
""")

    assert found.split() == ["True", "False", "False", "True", "SourceFileLoader", "True"]


def test_names_are_those_of_the_module():
    assert run("import textwrap\nfrom textwrap import dedent\nprint(dedent('  a'), textwrap.dedent is dedent, waits('textwrap'))") == "a True False\n"


def test_a_program_of_many_threads_loads_them_all_first():
    found = run("import subprocess, textwrap\nload_all()\nprint(waits('subprocess'), waits('textwrap'))\nimport tokenize\nprint(waits('tokenize'))")

    assert found == "False False\nFalse\n"


def test_what_msgspec_can_do_without_is_there_for_everybody_else():
    program = "import msgspec\nprint('typing_extensions' in sys.modules)\nimport typing_extensions\nprint(typing_extensions.Self)"

    assert run(program) == "False\ntyping.Self\n"
