"""Modules that are loaded when something in them is asked for, by several threads at the same moment as well."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import threading
from nessie_cli.cli.later import SELDOM_USED, Postponed, postpone

postpone()
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


def test_threads_that_use_a_module_at_once_wait_for_the_one_that_loads_it() -> None:
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, timeout=120)
        assert done.stdout == "[] []\n"


def test_a_module_that_cannot_be_loaded_says_why_each_time() -> None:
    program = """
import sys
from nessie_cli.cli.later import postpone
postpone()
postpone()
import ntpath
print(type(ntpath).__name__)
def refused(*_):
    raise OSError("no more files")
ntpath.__spec__.loader.real.exec_module = refused
for _ in range(2):
    try:
        ntpath.basename
    except OSError as error:
        print(error)
del ntpath.__spec__.loader.real.exec_module
print(ntpath.basename("a/b"), type(ntpath).__name__)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split("\n") == ["Postponed", "no more files", "no more files", "b module", ""]
