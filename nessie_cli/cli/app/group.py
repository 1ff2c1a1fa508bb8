"""The lazy command group.

It lists commands from the registry and imports only the one that runs.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from typer.core import TyperCommand, TyperGroup

from nessie_cli.cli.app.command import command_of, execute
from nessie_cli.cli.app.parameters import RUN_HOOKS, global_parameters, no_verify_parameter
from nessie_cli.cli.git_habits import ACCEPTED
from nessie_cli.cli.registry import COMMANDS, EXAMPLES, CommandEntry

GLOBAL_HINT = (
    "Global options (--store, --ref, --json, ...) work here as well; `nessie --help` lists them."
)
COMMAND_HINT = (
    "`nessie COMMAND --help` shows a command's options and examples; `nessie help COMMAND` shows"
    " its manual page."
)


def as_asked(ctx: Any, text: str) -> str:
    """Returns a help text as a JSON document if the command line has `--json`, else unchanged."""
    if not getattr(ctx.obj, "wants_json_errors", False):
        return text
    import json

    return json.dumps(
        {"name": ctx.command_path.replace(" ", "-"), "text": text}, separators=(",", ":")
    )


def write_examples(formatter: Any, examples: str, hint: str) -> None:
    """Writes the end of a help text: the examples, one per line and never wrapped, and pointers."""
    with formatter.section("Examples"):
        for line in examples.splitlines():
            formatter.write(f"  {line}\n")
    formatter.write_paragraph()
    formatter.write_text(hint)


class ExampleCommand(TyperCommand):
    """A command with examples as its epilog."""

    def make_parser(self, ctx: Any) -> Any:
        """Returns the parser, which also accepts git options that have no effect here."""
        parser = super().make_parser(ctx)
        add: Any = parser.add_option
        for option in ACCEPTED.get(ctx.command_path.removeprefix("nessie "), ()):
            add(obj=self, opts=[option], dest="", action="store_const", const=True)
        return parser

    def collect_usage_pieces(self, ctx: Any) -> list[str]:  # noqa: ARG002 (the parser's interface)
        """Returns the words of the usage line as in the manual, such as `FROM [REV]`.

        The parser would add braces or brackets to them.
        """
        arguments = [
            parameter for parameter in self.params if parameter.param_type_name == "argument"
        ]
        return ["[OPTIONS]", *(str(parameter.metavar) for parameter in arguments)]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Writes the arguments and the options, without the Python types of newer parsers."""
        rows: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in self.get_params(ctx):
            if record := parameter.get_help_record(ctx):
                kind = parameter.param_type_name
                name = str(parameter.metavar) if kind == "argument" else record[0]
                rows[kind].append((name, record[1]))
        for title, kind in (("Arguments", "argument"), ("Options", "option")):
            if rows[kind]:
                with formatter.section(title):
                    formatter.write_dl(rows[kind])

    def get_help(self, ctx: Any) -> str:
        """Returns the help text, or a JSON document with `--json`."""
        return as_asked(ctx, super().get_help(ctx))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 (the parser's interface)
        """Writes the examples and a pointer to the global options."""
        write_examples(formatter, self.epilog or "", GLOBAL_HINT)


class ModuleCommand(ExampleCommand):
    """A command defined by a module with `Options`, `run` and `show`."""

    def invoke(self, ctx: Any) -> None:
        """Runs the command and prints its result."""
        execute(super().invoke(ctx), ctx.obj)


class LazyGroup(TyperGroup):
    """A group over a table of the registry, with examples as its epilog.

    Nested groups override `table`.
    """

    table: Mapping[str, CommandEntry] = COMMANDS

    def get_help(self, ctx: Any) -> str:
        """Returns the help text, or a JSON document with `--json`."""
        return as_asked(ctx, super().get_help(ctx))

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (the parser's interface)
        """Returns the names that help and completion show."""
        return [name for name, entry in self.table.items() if not entry.hidden]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:  # noqa: ARG002 (the parser's interface)
        """Imports a command and adds the global options. Returns None if the name is unknown."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        command = nested(cmd_name, entry) if entry.children is not None else load(cmd_name, entry)
        if entry.module in RUN_HOOKS:
            command.params.append(no_verify_parameter(entry.module))
        command.params.extend(global_parameters(hidden=True))
        return command

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Resolves a command as the base class does.

        The error for an unknown name suggests a similar one.
        """
        if args and args[0] not in self.table and not args[0].startswith("-"):
            if self.table is COMMANDS:
                from nessie_cli.cli.app.plugins import run_plugin

                run_plugin(ctx.obj, args)
            from nessie_cli.cli.errors.unknown_words import unknown_command

            ctx.fail(unknown_command(args, self.list_commands(ctx), ctx.command_path))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Writes the commands by section, using only the registry."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name in self.list_commands(ctx):
            entry = self.table[name]
            sections.setdefault(entry.section, []).append((name, entry.help))
        for title, rows in sections.items():
            with formatter.section(title):
                formatter.write_dl(rows)
        if self.table is COMMANDS:
            _format_plugins(formatter)

    def format_epilog(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 (the parser's interface)
        """Writes the examples and a pointer to the global options."""
        write_examples(
            formatter, self.epilog or "", COMMAND_HINT if self.table is COMMANDS else GLOBAL_HINT
        )


def _format_plugins(formatter: Any) -> None:
    from nessie_cli.cli.app.plugins import plugins

    if programs := plugins():
        with formatter.section("Plug-ins"):
            formatter.write_dl([(name, str(path)) for name, path in programs.items()])


def load(name: str, entry: CommandEntry) -> Any:
    """Imports the module of a command and returns the command."""
    return command_of(import_module(f"nessie_cli.cli.{entry.module}"), name, ModuleCommand)


def nested(name: str, entry: CommandEntry) -> LazyGroup:
    """Returns a lazy group inside this group."""
    group = LazyGroup(
        name=name,
        help=f"{entry.help}\n\n{entry.text}",
        epilog="\n".join(entry.examples),
        no_args_is_help=True,
        subcommand_metavar="[COMMAND] [ARGS]..." if entry.default else None,
        rich_markup_mode=None,
    )
    group.table = entry.children or {}
    return group


def root() -> LazyGroup:
    """Returns the command `nessie` itself."""
    group = LazyGroup(
        name="nessie",
        help="Git for a data lake's catalog: branches, tags, commits and merges over tables"
        " and views.",
        no_args_is_help=True,
        rich_markup_mode=None,
        # Nested commands reuse the invocation.
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="\n".join(EXAMPLES),
    )
    group.params.extend(global_parameters(hidden=False))
    return group
