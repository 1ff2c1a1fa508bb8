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


def test_a_program_can_load_them_all_at_once():
    found = run("import subprocess, textwrap\nload_all()\nprint(waits('subprocess'), waits('textwrap'))\nimport tokenize\nprint(waits('tokenize'))")

    assert found == "False False\nFalse\n"


def test_what_msgspec_can_do_without_is_there_for_everybody_else():
    program = "import msgspec\nprint('typing_extensions' in sys.modules)\nimport typing_extensions\nprint(typing_extensions.Self)"

    assert run(program) == "False\ntyping.Self\n"


def test_what_typer_hands_on_is_what_it_is_or_makes_the_same():
    found = run("""
import typer
from typer import Argument, Context, Exit, Option
print(waits("typer"), "typer.main" in sys.modules, "typer.params" in sys.modules)
ours = [Option(), Option("--a", "-b", help="h", min=1), Option(metavar="M", hidden=True), Argument(), Argument(help="h", show_default=False)]
typer.Typer
from typer import Option, Argument
theirs = [Option(), Option("--a", "-b", help="h", min=1), Option(metavar="M", hidden=True), Argument(), Argument(help="h", show_default=False)]
print(waits("typer"), Option.__module__, typer.Context is Context, typer.Exit is Exit)
print([(type(a), vars(a)) for a in ours] == [(type(a), vars(a)) for a in theirs])
""")

    assert found == "True False False\nFalse typer.params True True\nTrue\n"


@pytest.mark.parametrize(
    ("module", "call"),
    [("difflib", "get_close_matches('ab', ['ac'])"), ("gettext", "gettext('ab')"), ("urllib.parse", "quote_from_bytes(b'a b')")],
)
def test_a_function_that_is_taken_at_once_loads_its_module_when_it_is_called(module, call):
    name = call.partition("(")[0]
    found = run(f"""
import {module} as module
from {module} import {name}
print(waits({module!r}))
print({call} == module.{call}, waits({module!r}), {call} == module.{call})
""")

    assert found == "True\nTrue False True\n"


def test_the_name_of_the_system_is_the_one_that_platform_tells():
    found = run(
        "import platform\nours = platform.system()\nprint(waits('platform'))\nplatform.machine\nprint(waits('platform'), platform.system() == ours)"
    )

    assert found == "True\nFalse True\n"


AT_ONCE = """
import threading
from nessie_cli.cli.later import SELDOM_USED
import bz2, difflib, fnmatch, gettext, ipaddress, linecache, lzma, ntpath, platform, subprocess, textwrap, tokenize, urllib.parse
uses = [
    lambda: bz2.decompress(bz2.compress(b"x")), lambda: difflib.get_close_matches("mian", ["main"]), lambda: fnmatch.fnmatch("a", "*"),
    lambda: gettext.gettext("x"), lambda: ipaddress.ip_address("::1"), lambda: linecache.getline("none", 1),
    lambda: lzma.decompress(lzma.compress(b"x")),
    lambda: ntpath.basename("a/b"), lambda: platform.python_version(), lambda: subprocess.DEVNULL, lambda: subprocess.list2cmdline(["a b"]),
    lambda: textwrap.wrap("a b", 1), lambda: textwrap.TextWrapper().wrap("a b"), lambda: list(tokenize.generate_tokens(iter(["x"]).__next__)),
    lambda: urllib.parse.urlsplit("s3://lake/x").netloc,
]
sys.setswitchinterval(1e-6)
wrong = []

def use(first, gate):
    gate.wait()
    for number in range(len(uses)):
        try:
            uses[(first + number) % len(uses)]()
        except BaseException as error:
            wrong.append(repr(error))

gate = threading.Barrier(8)
threads = [threading.Thread(target=use, args=(number // 2, gate)) for number in range(8)]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
left = [name for name in SELDOM_USED if isinstance(sys.modules.get(name), Postponed)]
print(sorted(set(wrong)), left)
"""


def test_threads_that_use_a_module_at_once_wait_for_the_one_that_loads_it():
    for _ in range(3):
        assert run(AT_ONCE) == "[] []\n"


def test_a_module_that_cannot_be_loaded_says_why_each_time():
    found = run("""
postpone()
import ntpath
def refused(*_):
    raise OSError("no more files")
ntpath.__spec__.loader.real.exec_module = refused
for _ in range(2):
    try:
        ntpath.basename
    except OSError as error:
        print(error, waits("ntpath"))
del ntpath.__spec__.loader.real.exec_module
print(ntpath.basename("a/b"), waits("ntpath"))
""")

    assert found == "no more files True\nno more files True\nb False\n"
