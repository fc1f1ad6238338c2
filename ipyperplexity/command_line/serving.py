"""``ipyperplexity serve``: the embedded engine for other programs, or for a whole room."""

from __future__ import annotations

import argparse
import secrets
import signal
import socket
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

SERVE_PORT = 8765
LOCAL = ("127.0.0.1", "localhost", "::1")
#: Characters of a room's token that is made up here: read aloud, and typed.
_TOKEN_BYTES = 9


def add_serve(commands: Any) -> None:
    """Add the command to a parser's commands."""
    serve = commands.add_parser(
        "serve",
        help="run the embedded engine by itself: for other programs, or a room of students",
        description=(
            "Answers from Python's own reference, or from course notes (--corpus), as the services "
            "do. On this machine only, unless --host says otherwise; then with a token. Ctrl-C "
            "stops it."
        ),
    )
    serve.add_argument("--port", type=port, default=SERVE_PORT, help=f"default: {SERVE_PORT}")
    serve.add_argument(
        "--corpus",
        type=Path,
        metavar="DIR",
        help="answer from this folder of Markdown, text, reStructuredText and notebooks",
    )
    serve.add_argument(
        "--host",
        default="127.0.0.1",
        help="address to listen at; 0.0.0.0 for the whole network, together with --token",
    )
    serve.add_argument(
        "--token", help="what who asks must have as PERPLEXITY_API_KEY; auto makes one up"
    )
    serve.set_defaults(run=run_serve)


def port(text: str) -> int:
    """Return a port.

    Raises
    ------
    ArgumentTypeError
        If it is none.
    """
    if not text.isdecimal() or not 0 <= int(text) <= 65535:
        raise argparse.ArgumentTypeError(f"got {text!r}; allowed: 0 (any free one) to 65535")
    return int(text)


def run_serve(options: argparse.Namespace) -> int:
    """Serve until it is stopped."""
    from ipyperplexity.emulator import Corpus, EmulatorServer

    is_open = options.host not in LOCAL
    if is_open and not options.token:
        return _refuse(
            f"--host {options.host}: other machines can reach it; allowed: together with --token "
            "WORD, or --token auto.",
            2,
        )
    token = secrets.token_urlsafe(_TOKEN_BYTES) if options.token == "auto" else options.token
    if token is not None and (len(token) < 4 or not token.isascii() or " " in token):
        return _refuse("--token: allowed: at least 4 ASCII characters without blanks.", 2)
    corpus = None
    if options.corpus:
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                corpus = Corpus.from_folder(options.corpus)
        except (OSError, ValueError) as error:
            return _refuse(str(error), 1)
        for warning in caught:
            print(f"ipyperplexity serve: {warning.message}", file=sys.stderr)
    try:
        server = EmulatorServer(
            corpus,
            host=options.host,
            port=options.port,
            api_key=token,
            allow_remote=is_open,
        )
        server.start()
    except (OSError, ValueError) as error:
        return _refuse(
            f"{options.host}, port {options.port}: {getattr(error, 'strerror', None) or error}", 1
        )
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    print(_what_to_type(server.url, corpus, options.host, token), flush=True)
    try:
        # In short waits: on some systems a signal does not wake an endless one.
        while not stop.wait(0.2):
            pass
    except KeyboardInterrupt:
        print()
    finally:
        server.stop()
    return 0


def _what_to_type(url: str, corpus: Any, host: str, token: str | None) -> str:
    what = "Python's own reference"
    if corpus is not None:
        what = f"{len(corpus.files):,} note{'' if len(corpus.files) == 1 else 's'}"
    if host in LOCAL:
        key = token or "any"
        return (
            f"The demo engine answers at {url}\n"
            f"From a notebook: client = ipyperplexity.Client(api_key='{key}', base_url='{url}')\n"
            f"It knows {what}. Ctrl-C stops it."
        )
    if host in ("0.0.0.0", "::"):
        url = f"http://{_own_address()}:{url.rpartition(':')[2]}"
    return (
        f"The demo engine answers at {url}\n"
        f"It knows {what}. Before Jupyter starts, students type:\n\n"
        f"  export PERPLEXITY_BASE_URL={url}\n"
        f"  export PERPLEXITY_API_KEY={token}\n"
        "  export IPYPERPLEXITY_ALLOW_HTTP=1\n\n"
        "The connection is not encrypted: use it on a network that you trust. Ctrl-C stops it."
    )


def _own_address() -> str:
    """Return the address by which others reach this machine, as far as it knows."""
    try:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            probe.connect(("192.0.2.1", 9))  # sends nothing: only the route is looked up
            return str(probe.getsockname()[0])
    except OSError:
        return socket.gethostname()


def _refuse(says: str, code: int) -> int:
    print(f"ipyperplexity serve: {says}", file=sys.stderr)
    return code
