"""What ``%perplexity help TOPIC`` says beyond lists of options: the README, in a cell."""

from __future__ import annotations

import inspect
import re

from ipyperplexity import errors

TOPICS: dict[str, str] = {
    "backends": """\
Which backend am I? %perplexity status says it. -b NAME asks another one for one question,
%perplexity config backend=NAME for all notebooks. None ever stands in for another.

  agent  Perplexity's Agent API, with an API key: %perplexity login. The default.
  chat   A server that speaks chat-completions: a gateway, Ollama, vLLM, LM Studio.
         PERPLEXITY_BASE_URL is its address; on this machine it needs no key.
  web    perplexity.ai with your own subscription: %perplexity login --web. Unofficial: it may
         change or refuse any day, and the terms may not allow it for your account.
  demo   The embedded engine: no key, no network. It quotes Python's own reference, and a few
         pages that have aged. %perplexity demo on

-b search gives pages alone, without an answer, from the Search API.""",
    "costs": """\
What does it cost? The line below each answer says it, %perplexity usage adds up this notebook
(--all: every notebook), and %perplexity models lists prices and what each preset cost last.

  fast is the lightest preset and wide-research the dearest, a thousand times dearer. A search
  alone costs less than an answer. The demo costs nothing; web costs your subscription.

%config PerplexityMagics.budget = 2.0 refuses, before it is sent, a question that would pass two
dollars in this kernel. Of a column, pplx.estimate(df, "Who runs {company}?") asks three rows
and tells what all would cost; ask_many(..., max_cost=5) stops before it is passed. An answer
that has begun is never asked for twice, and what had come of a broken one is kept.""",
    "privacy": """\
What leaves the machine: the question, its options, the variables that you put in with {{name}},
and what your functions return. It goes to the address that %perplexity status shows, and
nowhere else. Answers load no images and run nothing.

The key is in no output, traceback, log or notebook. On this machine, for you alone to read:
settings (never a key), the stored key or login, a list of requests (time, model, cost, the
first 80 characters of the question; IPYPERPLEXITY_LEDGER=0 turns it off), background jobs, and
the answers of tables for seven days (%perplexity cache --clear forgets them).
%perplexity logout deletes key and login.""",
}
#: What is worth knowing of a command, below its line in the list.
OF_COMMANDS: dict[str, str] = {
    "status": """\
State, backend, address, model, and where each credential comes from, never its value. Nothing
is asked of the service. The first thing to look at when a question fails.""",
    "demo": """\
On until you say off, or the kernel ends; for all notebooks: %perplexity config backend=demo.""",
    "login": """\
Asks for an API key without showing it, and keeps it in the system's keyring (pip install
keyring) or in a private file. PERPLEXITY_API_KEY in the environment comes first.

  %perplexity login --web            log in to perplexity.ai with your own subscription: by what
                                     PERPLEXITY_SESSION_TOKEN, PERPLEXITY_COOKIE, pi-perplexity
                                     or the macOS app know (PERPLEXITY_NO_BORROW=1: not by
                                     these), else by a code that comes by e-mail
  %perplexity login --web --force    anew, though there is a login
  %perplexity login --web --browser  paste cookies of your browser (a cURL command, a Cookie
                                     header, or the bare token)""",
    "logout": """\
Both, unless told which. What is in the environment stays there, and it says so.""",
    "config": """\
  %perplexity config                 choose the model from a list
  %perplexity config --show          every setting, its value, and where it comes from
  %perplexity config recency=month   a default for all notebooks
  %perplexity config recency=        back to none
  %config PerplexityMagics.recency = "month"    for this kernel

An option of a cell comes first, then %config, the environment, and this file.""",
    "models": """\
Presets, and models with their prices in US dollars per million tokens; what each cost last on
this machine. models = %perplexity models holds it; models.to_pandas() is a frame.""",
    "usage": """\
One row a request, with model, tokens and dollars. usage = %perplexity usage holds it.""",
    "jobs": """\
  %%perplexity --background -m high   leave a long question to the service: the cell is a job
  jobs = %perplexity jobs             after a restart, too: what was left, and how far it is
  jobs[0].wait()                      watch it to its end, and get the answer; interrupting the
                                      waiting leaves the run alone
  jobs[0].cancel()                    stop it at the service
  jobs[0].forget()                    take it off the list""",
    "cache": """\
Answers of tables (--each, ask_many) are kept for seven days, whatever table asked for them. The
key plays no part in it. ask_many(cache=False) asks anew.""",
    "record": """\
  %perplexity record lesson.tape     from now on what comes over the wire is on the tape, too: of
                                     every backend, searches and columns, with its true times
  %perplexity record stop            end it
  with pplx.record("lesson.tape"):   the same in Python

Keys, logins, cookies, tokens and e-mail addresses are not on it. An answer that is stopped is not
recorded. A tape that is there goes on. IPYPERPLEXITY_RECORD=lesson.tape records a whole kernel.""",
    "replay": """\
  %perplexity replay lesson.tape             the same questions are answered as they were, at their
                                             pace, without a key or a network
  %perplexity replay lesson.tape --speed 4   four times as fast; 0: at once
  %perplexity replay lesson.tape --strict    another question is an error that names the nearest
                                             one; else the demo answers it, and a line says so
  %perplexity replay                         what is on it
  %perplexity replay stop                    end it
  with pplx.replay("lesson.tape"):           the same in Python

For a class start Jupyter with IPYPERPLEXITY_REPLAY=lesson.tape: no line of the notebook changes.
What is replayed costs nothing, and is not in %perplexity usage.""",
    "panel": """\
  panel = %perplexity panel   a field, Ask, Stop, pickers for the model and the age of pages, the
  panel                       answer as it is written, "Follow up", and "Keep in notebook", which
                              shows it below as an output that is saved
  panel.answer                the newest answer, in any cell
  panel.close()               stop it, and take it away

Enter asks. Cells can run meanwhile. A saved notebook shows what was kept, not the panel.""",
    "history": """\
history = %perplexity history holds it: history[-1] is the newest answer, history.to_pandas() a
frame. turn counts within a conversation. It is of this kernel, and nowhere else.""",
    "last": """\
answer = %perplexity last gets back what a cell showed and nobody kept, also what had come of an
answer that was stopped.""",
}


def error_help(code: str) -> str:
    """Return what an error means and what to do, by its code or the name of its class.

    Examples
    --------
    >>> error_help("quota").splitlines()[0]
    'QUOTA (QuotaError)'
    """
    wanted = code.casefold()
    for kind in error_kinds():
        if wanted in (kind.code.casefold(), kind.__name__.casefold()):
            about = inspect.getdoc(kind) or ""
            lines = [f"{kind.code} ({kind.__name__})", "", about.partition("\n\n")[0]]
            return "\n".join([*lines, *filter(None, [kind.default_hint])])
    return ""


def error_kinds() -> list[type[errors.PerplexityError]]:
    """Return the errors that a user can meet, in the order of their module."""
    return [
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type)
        and issubclass(kind, errors.PerplexityError)
        and kind is not errors.PerplexityError
    ]


def errors_overview() -> str:
    """Return all error codes, a line each."""
    width = max(len(kind.code) for kind in error_kinds())
    lines = [
        f"  {kind.code:<{width}}  {_brief(inspect.getdoc(kind) or '')}" for kind in error_kinds()
    ]
    return "\n".join(["Something went wrong? %perplexity help CODE says what to do.", "", *lines])


def _brief(text: str) -> str:
    """Return the main clause of a text."""
    return re.split(r"[;:.]| \(", text, maxsplit=1)[0]
