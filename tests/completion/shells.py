"""Real shells on a pseudo-terminal: type, press TAB, read the line."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import sys
import termios
import time
from pathlib import Path

PATIENCE = 120
ROWS, COLUMNS = 50, 120
_BUFFER = re.compile(r"<<(.*?)>>", re.DOTALL)
_ESCAPES = re.compile(
    r"\x1b(?:\[[0-9;?>=]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[()][A-Z0-9]|[=>78MP])"
)

# Each shell prints its line between marks when it gets Ctrl-X Ctrl-P. The last command sets the
# prompt that shows that the shell is ready.
SET_UP = {
    "bash": r"""bind -x '"\C-x\C-p": printf "<<%s>>" "$READLINE_LINE"' 2>/dev/null; bind 'set bell-style none'; bind 'set page-completions off'
bind 'set completion-query-items 1000'; bind 'set enable-bracketed-paste off'; source <(nessie completion bash); PS1='REA''DY> '
""",
    "zsh": r"""show() { print -n -r -- "<<$BUFFER>>" }; zle -N show; bindkey '^X^P' show; unsetopt beep list_beep; LISTMAX=1000
autoload -Uz compinit; compinit -D; source <(nessie completion zsh); PS1='REA''DY> '
""",
    "fish": r"""set -g fish_greeting; set -g fish_autosuggestion_enabled 0; bind \cx\cp 'printf "<<%s>>" (commandline | string collect)'
nessie completion fish | source; function fish_prompt; echo -n 'REA''DY> '; end
""",
}
# The same with the files of completions/ in the folders where each shell or its packages expect
# them.
INSTALLED = {
    "bash": (
        ". /usr/share/bash-completion/bash_completion;",
        "source <(nessie completion bash)",
        ":",
    ),
    "zsh": ("fpath=(~/installed $fpath);", "source <(nessie completion zsh)", ":"),
    "fish": ("set -p fish_complete_path ~/installed;", "nessie completion fish | source", "true"),
}
ARGUMENTS = {
    "bash": ["--norc", "--noprofile", "-i"],
    "zsh": ["-f", "-i"],
    "fish": ["--no-config", "-i"],
}


class Shell:
    """An interactive shell in a folder."""

    def __init__(
        self, name: str, folder: Path, environment: dict[str, str], *, installed: bool = False
    ) -> None:
        self.name = name
        program = shutil.which(name)
        assert program
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            os.chdir(folder)
            kept = {
                **environment,
                "PATH": path,
                "TERM": "xterm",
                "INPUTRC": "/dev/null",
                "HISTFILE": "",
            }
            os.execve(program, [name, *ARGUMENTS[name]], kept)
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._seen = ""
        set_up = SET_UP[name]
        if installed:
            before, source, nothing = INSTALLED[name]
            set_up = f"{before} {set_up.replace(source, nothing)}"
        for line in set_up.splitlines():
            self.type(line + "\r")
        self._wait(lambda text: "READY> " in text)

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def complete(self, text: str) -> str:
        """Returns the line after typing and one TAB, and discards the line."""
        self._clear()
        self.type(text + "\t")
        return self._line()

    def listing(self, text: str) -> str:
        """Returns the output of the shell for two TABs, without escape sequences."""
        self._clear()
        start = len(self._seen)
        self.type(text + "\t\t")
        self._line()
        return _ESCAPES.sub("", self._seen[start:]).replace("\r", "")

    def close(self) -> None:
        os.kill(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)
        os.close(self._terminal)

    def _clear(self) -> None:
        self.type("\x05\x15" if self.name != "zsh" else "\x15")
        self._line()

    def _line(self) -> str:
        start = len(self._seen)
        self.type("\x18\x10")
        found = self._wait(lambda text: _BUFFER.search(text[start:]))
        return found[1].replace("\r", "")

    def _wait(self, look):
        deadline = time.monotonic() + PATIENCE
        while not (found := look(self._seen)):
            ready, _, _ = select.select(
                [self._terminal], [], [], max(deadline - time.monotonic(), 0)
            )
            assert ready, f"{self.name} does not answer; seen: {self._seen[-2000:]!r}"
            self._seen += os.read(self._terminal, 65536).decode(errors="replace")
        return found
