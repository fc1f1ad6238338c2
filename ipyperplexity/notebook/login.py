"""``%perplexity login`` and ``logout``, in a notebook, at a prompt and as shell commands.

What is secret is typed without being shown: in a notebook the kernel asks the front end to hide it,
on a terminal the echo is off. It is never an argument: cells and command lines are saved.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ipyperplexity.errors import (
    Interrupted,
    InvalidRequestError,
    MissingCredentialError,
    PerplexityError,
)

if TYPE_CHECKING:
    import requests

    from ipyperplexity.auth.login import LoggedIn
    from ipyperplexity.auth.login_record import WebLogin
    from ipyperplexity.net.redact import Secret

_T = TypeVar("_T")

LOGIN_USAGE = """\
%perplexity login [--web] [--force] [--browser]

  login             store an API key; it is asked for, hidden, and kept in the system's keyring
                    if the extra ipyperplexity[keyring] is installed, else in a private file
  --web             log in to perplexity.ai with your own subscription instead
  --force           log in anew though there is a login (also --refresh, -f)
  --browser         paste a browser's cookies instead (also --cookie, --manual)

In a shell: ipyperplexity login ..."""
LOGOUT_USAGE = """\
%perplexity logout [--key] [--web]

Deletes what login has stored: both, or only the API key, or only the login to perplexity.ai."""

_ABOUT_WEB = (
    "Ask with %perplexity -b web. It is perplexity.ai's own undocumented address: it may change or "
    "refuse any day, and Perplexity's terms may not allow it; that is for you to judge."
)
_LOGIN_FLAGS = {
    "--web": "web",
    **dict.fromkeys(("--force", "--refresh", "-f"), "force"),
    **dict.fromkeys(("--browser", "--cookie", "--manual"), "browser"),
}
_LOGOUT_FLAGS = {"--key": "key", "--web": "web"}


def run_login(
    arguments: Sequence[str],
    *,
    base_url: str | None = None,
    session: requests.Session | None = None,
) -> None:
    """Log in, and say what has become of it.

    Parameters
    ----------
    arguments : sequence of str
        The words after ``login``.
    base_url : str, optional
        Where to log in; perplexity.ai unless given.
    session : requests.Session, optional

    Raises
    ------
    InvalidRequestError
        If an argument is unknown.
    MissingCredentialError
        If nobody can be asked, or nothing is given.
    PerplexityError
        If the login fails.
    Interrupted
        If the user stops it; nothing has then changed.
    """
    flags = _flags(arguments, _LOGIN_FLAGS, LOGIN_USAGE)
    if flags is None:
        return
    if "web" in flags or "browser" in flags:
        _quietly(lambda: _login_web(flags, base_url, session))
    else:
        _quietly(_login_key)


def run_logout(arguments: Sequence[str]) -> None:
    """Delete what login has stored, and say what is left.

    Raises
    ------
    InvalidRequestError
        If an argument is unknown.
    ConfigurationError
        If something cannot be deleted.
    """
    from ipyperplexity.auth.login import logout

    flags = _flags(arguments, _LOGOUT_FLAGS, LOGOUT_USAGE)
    if flags is None:
        return
    both = not flags
    for sentence in logout(key=both or "key" in flags, web=both or "web" in flags):
        print(sentence)


def _flags(arguments: Sequence[str], known: dict[str, str], usage: str) -> frozenset[str] | None:
    """Return what the arguments ask for, or None if that is the usage, which is then printed."""
    if any(argument in ("-h", "--help") for argument in arguments):
        print(usage)
        return None
    command = usage.split()[1]
    unknown = [argument for argument in arguments if argument not in known]
    if unknown and not unknown[0].startswith("-"):
        # It may well be a key.
        raise InvalidRequestError(
            f"{command}: it takes options only, and no key: a key in a cell is saved with it.",
            field=command,
            hint=f"If that was a key, clear this cell and its output.\n{usage}",
        )
    if unknown:
        raise InvalidRequestError(
            f"{command}: there is no option {unknown[0].partition('=')[0][:20]}.",
            field=command,
            hint=usage,
        )
    return frozenset(known[argument] for argument in arguments)


def _login_key() -> None:
    from ipyperplexity.auth.keys import KEY_VARIABLES, find_key
    from ipyperplexity.auth.login import first_set, login_key, looks_like_ours

    asking = _Asking("PERPLEXITY_API_KEY")
    place = login_key(lambda: asking.hidden("Perplexity API key (hidden): "))
    print(f"The API key is now in {place}; the first question will tell whether it is good.")
    stored = find_key()
    if stored is not None and stored.origin == place and not looks_like_ours(stored.secret):
        print("It does not begin with pplx-, as Perplexity's keys do: is it the right one?")
    if name := first_set(KEY_VARIABLES)[0]:
        print(f"But {name} is set too, and comes first.")


def _login_web(
    flags: frozenset[str], base_url: str | None, session: requests.Session | None
) -> None:
    from ipyperplexity.auth import login, web_calls
    from ipyperplexity.auth.cookies import HOW_TO_COPY

    asking = _Asking("PERPLEXITY_SESSION_TOKEN or PERPLEXITY_COOKIE")
    url = base_url or web_calls.WEB_URL
    prompts = login.Prompts(
        email=lambda: asking.shown("E-mail address of your Perplexity account: "),
        code=lambda address: asking.hidden(f"Code from the e-mail to {address} (hidden): "),
        cookies=lambda: asking.hidden_long("Cookie header or cURL command (hidden): "),
    )
    if "browser" in flags:
        print(HOW_TO_COPY)
    outcome = login.login_web(
        prompts,
        force="force" in flags,
        browser="browser" in flags,
        base_url=url,
        session=session,
    )
    _report(outcome)
    if "browser" in flags:
        print(_checked(outcome.login, url, session))
    if outcome.saved:
        print(_ABOUT_WEB)


def _report(outcome: LoggedIn) -> None:
    from ipyperplexity.auth.token_store import login_file

    login = outcome.login
    who = f" as {login.email}" if login.email else ""
    if outcome.saved:
        # Only a code by e-mail was granted by the site just now.
        done = f"Logged in{who}." if login.email else f"Taken: {login.origin}. It is not checked."
        print(f"{done} The login is in {login_file()}, for you alone to read.")
    else:
        print(
            f"There is a login{who} already: {login.origin}.\n"
            "%perplexity login --web --force logs in anew."
        )


def _checked(login: WebLogin, base_url: str, session: requests.Session | None) -> str:
    """Say what perplexity.ai thinks of pasted cookies; they may be old, or of another browser."""
    from ipyperplexity.auth.web_session import fetch_account

    try:
        account = fetch_account(login, base_url=base_url, session=session)
    except PerplexityError as error:
        return f"It could not be checked. {error.message}"
    except KeyboardInterrupt:
        return "It was not checked."
    if account is None:
        return (
            "But perplexity.ai says that nobody is signed in with it: answers would be those of an "
            "anonymous user. Copy the cookies again, after signing in."
        )
    return f"perplexity.ai knows you as {account.email or account.id}."


def _quietly(run: Callable[[], None]) -> None:
    interrupted = False
    try:
        run()
    except KeyboardInterrupt:
        interrupted = True
    if interrupted:
        raise Interrupted("the login was stopped; nothing has changed")


# --- asking the user --------------------------------------------------------------------------


@dataclass(frozen=True)
class _Asking:
    """Prompts; ``instead`` names what to set where nobody can be asked."""

    instead: str

    def shown(self, prompt: str) -> str:
        return self._answer(lambda: input(prompt))

    def hidden(self, prompt: str) -> Secret:
        return self._answer(lambda: _secret(getpass.getpass if _is_asked() else _line, prompt))

    def hidden_long(self, prompt: str) -> Secret:
        """Ask for what may have many lines, and more than the 4,096 bytes of a terminal's line."""
        ask = _line if not _is_asked() else getpass.getpass if _has_kernel() else _paste
        return self._answer(lambda: _secret(ask, prompt))

    def _answer(self, ask: Callable[[], _T]) -> _T:
        # NotImplementedError: a kernel whose front end answers no questions (`jupyter execute`,
        # papermill). OSError, RuntimeError: there is no input at all.
        try:
            return ask()
        except (EOFError, NotImplementedError, OSError, RuntimeError):
            pass
        raise MissingCredentialError(
            "Nobody can be asked here: this session takes no input.",
            hint=f"Set the environment variable {self.instead}, or log in from a shell, once: "
            "ipyperplexity login",
        )


def _secret(ask: Callable[[str], str], prompt: str) -> Secret:
    from ipyperplexity.net.redact import Secret

    return Secret(ask(prompt))


def _shell() -> Any:
    interactive = sys.modules.get("IPython")
    return interactive.get_ipython() if interactive is not None else None


def _has_kernel() -> bool:
    return hasattr(_shell(), "kernel")


def _is_asked() -> bool:
    """Whether there is somebody at a front end or a terminal, rather than a pipe or a file."""
    return _has_kernel() or (sys.stdin is not None and sys.stdin.isatty())


def _line(prompt: str) -> str:
    """Read from a pipe, without the prompt: ``ipyperplexity login < key.txt``."""
    # To a shell without a terminal, what can be read are the cells that follow.
    if sys.stdin is None or _shell() is not None or not (text := sys.stdin.read()):
        raise EOFError
    return text


def _paste(prompt: str) -> str:
    # A terminal cuts a long line, and getpass ends at the first line: the rest of a pasted command,
    # cookies and all, would go to the shell. This reads a paste as one.
    from prompt_toolkit import PromptSession
    from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput

    class Hidden(Processor):
        def apply_transformation(self, given: TransformationInput) -> Transformation:
            size = len(given.document.text)
            return Transformation([("", f"({size:,} characters)" if size else "")])

    session: PromptSession[str] = PromptSession(input_processors=[Hidden()])
    return session.prompt(prompt)
