"""What has been typed so far: command, options with their values, and what the last word is the beginning of."""

from __future__ import annotations

# Importing `typing` takes longer than a keystroke may; checkers know this name without the import.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from nessie_cli.workspace.glance import Place

    Kind = str | tuple[str, ...]
    Option = tuple[tuple[str, ...], Kind, bool, str]
    Command = tuple[Mapping[str, str], Sequence[Option], tuple[Kind, ...], bool, Kind]


class Line:
    """The words behind `nessie`, the last one unfinished, read with the table of commands.

    `path` is the command so far, `given` the options in it, `values` their values by every name, `position` the number of words before the last
    that are neither option nor value. `asked` is the option whose value the last word is. `aliases` are asked for where a word is no command.
    """

    def __init__(
        self,
        words: Sequence[str],
        commands: Mapping[str, Command],
        shared: Sequence[Option],
        aliases: Callable[[Line], Mapping[str, str]] = lambda _: {},
    ) -> None:
        self._aliases = aliases
        self.place: Place | None = None
        self._commands = commands
        self._shared = shared
        self.path = ""
        self.given: set[str] = set()
        self.values: dict[str, list[str]] = {}
        self.words: list[str] = []
        self.asked: Option | None = None
        self.behind_dashes = False
        self.last = words[-1] if words else ""
        for word in words[:-1]:
            self._take(word)

    @property
    def command(self) -> Command:
        """What the table says of the command."""
        return self._commands[self.path]

    @property
    def options(self) -> list[Option]:
        """The options that may be given here."""
        return [*self.command[1], *self._shared]

    @property
    def expects_command(self) -> bool:
        """Whether the last word is the name of a command."""
        return bool(self.command[0]) and not self.behind_dashes

    def goes_on(self, word: str) -> bool:
        """Whether a word behind an option, whose value may be left out, is already the next option."""
        return self.asked is not None and word.startswith("-") and self.asked[1][-1:] == "?"

    def option(self, name: str) -> Option | None:
        """The option with this name."""
        return next((option for option in self.options if name in option[0]), None)

    def value(self, name: str) -> str | None:
        """The last value that an option was given."""
        values = self.values.get(name)
        return values[-1] if values else None

    def _take(self, word: str) -> None:
        if self.asked is not None and not self.goes_on(word):
            self._give(self.asked, word)
            self.asked = None
            return
        self.asked = None
        if self.behind_dashes or not word.startswith("-") or word == "-":
            self._take_word(word)
        elif word == "--":
            self.behind_dashes = True
        elif word.startswith("--"):
            name, equals, value = word.partition("=")
            self._take_option(name, value if equals else None)
        else:
            self._take_letters(word[1:])

    def _take_word(self, word: str) -> None:
        below = f"{self.path} {word}".strip()
        if self.expects_command and below in self._commands:
            self.path = below
            return
        if not self.path and not self.words and (meant := self._aliases(self).get(word)):
            for part in _parts(meant):
                self._take(part)
            return
        self.words.append(word)

    def _take_letters(self, letters: str) -> None:
        """Short options written together; what follows one that takes a value is its value."""
        for index, letter in enumerate(letters):
            option = self.option("-" + letter)
            if option is not None and option[1]:
                self._take_option("-" + letter, letters[index + 1 :] or None)
                return
            self._take_option("-" + letter, None)

    def _take_option(self, name: str, value: str | None) -> None:
        option = self.option(name)
        if option is None:
            return
        self.given.update(option[0])
        if value is not None:
            self._give(option, value)
        elif option[1]:
            self.asked = option

    def _give(self, option: Option, value: str) -> None:
        for name in option[0]:
            self.values.setdefault(name, []).append(value)


def _parts(alias: str) -> list[str]:
    """The words of an alias; what takes quotes apart costs more than all the rest."""
    if not any(c in alias for c in "\"'\\"):
        return alias.split()
    import shlex

    return shlex.split(alias)
