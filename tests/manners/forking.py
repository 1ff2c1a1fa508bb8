"""Starts commands on a terminal, each in a process forked from this one, which is warmed up.

One JSON request per line on stdin: the words, the folder, the environment, the name of the
terminal, and the modules to load. The answer to `start` is the process id, that to `wait` its exit
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
    """The child: a session of its own, whose controlling terminal becomes the one that it opens
    first."""
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
        # It came before the command had begun.
        os._exit(130)


def serve() -> None:
    # A child gets it when it has become a command.
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
    # A child that looks for garbage would copy the pages of everything that it shares with this
    # process.
    gc.freeze()
    serve()
