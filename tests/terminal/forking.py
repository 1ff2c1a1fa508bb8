"""Starts commands on a terminal, each in a process forked from this one, which has loaded
modules.

Each line of stdin is a JSON request: the arguments, the folder, the environment, the name of the
terminal, and the modules to load. The answer to `start` is the process id, that to `wait` the exit
code.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import traceback
from importlib import import_module
from typing import Any


def become(request: dict[str, Any]) -> None:
    """Turns the child into a command: in its own session, whose controlling terminal is the
    first one that it opens."""
    os.setsid()
    terminal = os.open(request["tty"], os.O_RDWR | os.O_APPEND)
    for number in range(3):
        os.dup2(terminal, number)
    sys.stdin, sys.stdout, sys.stderr = (
        os.fdopen(number, mode, encoding="utf-8", closefd=False)
        for number, mode in enumerate("rww")
    )
    os.environ.clear()
    os.environ.update(request["env"])
    os.chdir(request["cwd"])
    sys.argv = ["nessie", *request["args"]]
    from nessie_cli.cli.main import main

    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        main()
    except KeyboardInterrupt:
        # The interrupt came before the command had begun.
        os._exit(130)


def serve() -> None:
    # A child receives the signal when it has become a command.
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    for line in sys.stdin:
        request = json.loads(line)
        if "wait" in request:
            _, status = os.waitpid(request["wait"], 0)
            answer = os.waitstatus_to_exitcode(status)
        else:
            answer = os.fork()
            if answer == 0:
                try:
                    become(request)
                except BaseException:  # noqa: BLE001 - what no command may ever end with is shown where its output goes
                    traceback.print_exc()
                    sys.stderr.flush()
                finally:
                    os._exit(99)
        sys.stdout.write(f"{answer}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    for module in sys.argv[1:]:
        import_module(module)
    # A garbage collection in the child would copy all shared pages.
    gc.freeze()
    serve()
