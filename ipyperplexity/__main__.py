"""The command line: ask, try it, serve the demo engine, log in, and see what is configured."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence

from ipyperplexity.command_line.asking import add_ask, attached
from ipyperplexity.command_line.replaying import add_replay
from ipyperplexity.command_line.serving import add_serve
from ipyperplexity.errors import Interrupted, InvalidRequestError, PerplexityError
from ipyperplexity.notebook import remarks
from ipyperplexity.notebook.command_table import COMMANDS
from ipyperplexity.version import __version__

DEMO_QUESTION = "What does the with statement do?"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 failed, 2 wrong use, 130 interrupted."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    options = _parser().parse_args(attached(given) if given[:1] == ["ask"] else given)
    code: int = options.run(options)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="ipyperplexity",
        description=(
            "Ask Perplexity in a notebook cell, or here; try it, log in, serve the demo engine."
        ),
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser(
        "demo",
        help="run a %%%%perplexity cell on the offline demo engine: no key, no network",
        description=(
            "Starts the embedded engine, runs a real %%perplexity cell in a real IPython shell, "
            "streams the answer, and prints its sources as a table."
        ),
    )
    demo.add_argument("question", nargs="*", help=f"default: {DEMO_QUESTION}")
    demo.set_defaults(run=_demo)

    add_ask(commands)
    add_serve(commands)
    add_replay(commands)

    # Their arguments are those of the magic's commands of the same names, which read them.
    for name, run in _AS_IN_A_NOTEBOOK.items():
        known = COMMANDS[name]
        command = commands.add_parser(
            name, help=known.about, prefix_chars="\0", add_help=False, usage=known.usage
        )
        command.add_argument("arguments", nargs="*", help=argparse.SUPPRESS)
        command.set_defaults(run=run)
    return parser


def _demo(options: argparse.Namespace) -> int:
    from ipyperplexity.notebook.demo import run_demo_cell

    question = " ".join(options.question).strip() or DEMO_QUESTION
    return run_demo_cell(question)


def _login(options: argparse.Namespace) -> int:
    from ipyperplexity.notebook.login import run_login

    run_login(options.arguments)
    return 0


def _logout(options: argparse.Namespace) -> int:
    from ipyperplexity.notebook.login import run_logout

    run_logout(options.arguments)
    return 0


def _config(options: argparse.Namespace) -> int:
    from ipyperplexity.notebook.config_command import run_config

    run_config(options.arguments)
    return 0


def _status(options: argparse.Namespace) -> int:
    from ipyperplexity.default_client import status

    if options.arguments:
        is_help = options.arguments[0] in ("-h", "--help")
        usage = f"usage: ipyperplexity {COMMANDS['status'].usage}"
        print(usage, file=sys.stdout if is_help else sys.stderr)
        return 0 if is_help else 2
    found = status()
    print(found)
    return 0 if found else 1


_AS_IN_A_NOTEBOOK: dict[str, Callable[[argparse.Namespace], int]] = {
    "login": _login,
    "logout": _logout,
    "config": _config,
    "status": _status,
}


def run() -> None:
    """Entry point: errors are a sentence, an interrupt is an exit code."""
    remarks.register()
    try:
        try:
            code = main()
        finally:
            sys.stdout.flush()  # here, and not at the end, where nobody catches what it raises
    except PerplexityError as error:
        print(f"ipyperplexity: {error}", file=sys.stderr)
        code = 2 if isinstance(error, InvalidRequestError) else 1
    except (KeyboardInterrupt, Interrupted):
        code = 130
    except BrokenPipeError:  # who reads has seen enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)


if __name__ == "__main__":
    run()
