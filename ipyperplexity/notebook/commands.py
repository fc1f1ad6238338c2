"""What each command of ``%perplexity`` does: one function a command, in one table."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ipyperplexity.errors import ConfigurationError
from ipyperplexity.notebook.line import help_text
from ipyperplexity.notebook.settings import given_settings

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer
    from ipyperplexity.backends import Status
    from ipyperplexity.history_table import HistoryTable
    from ipyperplexity.jobs import Jobs
    from ipyperplexity.models_table import Models
    from ipyperplexity.notebook.magic import PerplexityMagics
    from ipyperplexity.spending import UsageTable


def run_command(magics: PerplexityMagics, name: str, arguments: str) -> Any:
    """Run a command of the table and return its value, to be the value of the line."""
    return _RUN[name](magics, arguments)


def _status(magics: PerplexityMagics, arguments: str) -> Status:
    problem: ConfigurationError | None = None
    from ipyperplexity.notebook.in_effect import in_effect

    try:
        client = magics.client()
    except ConfigurationError as error:
        problem = error
    else:
        options = given_settings(magics, beside={})
        own = {setting.name: setting for setting in in_effect(magics)}
        for name in ("conversation", "budget"):
            if own[name].origin != "default":
                options[name] = own[name].value
        options.pop("model", None)  # shown on a line of its own
        shown = ", ".join(f"{name}={value}" for name, value in options.items())
        return dataclasses.replace(client.status(), options=shown)
    from ipyperplexity.backends import Status

    return Status(
        "misconfigured",
        magics.backend or "agent",
        magics.base_url,
        magics.model or "",
        "",
        problem.message,
        "%config PerplexityMagics shows the settings.",
    )


def _demo(magics: PerplexityMagics, arguments: str) -> None:
    magics.backend = "" if arguments == "off" else "demo"
    if magics.backend:
        print(
            "Questions now go to the offline demo engine: it answers from Python's own docs.\n"
            "%perplexity demo off goes back."
        )
    else:
        print("The demo is off. " + repr(_status(magics, "")).splitlines()[1].strip())


def _login(magics: PerplexityMagics, arguments: str) -> None:
    from ipyperplexity.notebook.login import run_login

    run_login(arguments.split())
    if magics.backend == "demo" and "-h" not in arguments.split() and "--help" not in arguments:
        print("Questions still go to the demo: %perplexity demo off goes back.")


def _logout(magics: PerplexityMagics, arguments: str) -> None:
    from ipyperplexity.notebook.login import run_logout

    run_logout(arguments.split())


def _config(magics: PerplexityMagics, arguments: str) -> None:
    from ipyperplexity.notebook.config_command import run_config

    run_config(arguments.split(), magics)


def _models(magics: PerplexityMagics, arguments: str) -> Models:
    return magics.client().models()


def _usage(magics: PerplexityMagics, arguments: str) -> UsageTable:
    return magics.client().usage(everything=arguments == "--all")


def _jobs(magics: PerplexityMagics, arguments: str) -> Jobs:
    from ipyperplexity import demo_engine

    jobs = magics.client().jobs()
    for job in jobs.running:
        if job.backend != "demo" or job.base_url == demo_engine.shared.url:
            type(jobs)([job]).refresh()
    return jobs


def _cache(magics: PerplexityMagics, arguments: str) -> None:
    from ipyperplexity.batch.kept_answers import CACHE_MAX_AGE, CACHE_MAX_BYTES, open_cache

    store = open_cache()
    try:
        if arguments == "--clear":
            print(f"{_count_answers(store.clear())} forgotten.")
            return
        info = store.info()
        print(
            f"{_count_answers(info.rows)}, {info.bytes / 1e6:.1f} MB, in {info.path}\n"
            f"Kept for {CACHE_MAX_AGE.days} days, up to {CACHE_MAX_BYTES / 2**20:.0f} MiB; "
            "ask_many(cache=False) asks anew."
        )
    finally:
        store.close()


def _count_answers(count: int) -> str:
    return f"{count:,} answer{'' if count == 1 else 's'}"


def _record(magics: PerplexityMagics, arguments: str) -> None:
    from ipyperplexity.notebook.tape_commands import run_record

    run_record(arguments)


def _replay(magics: PerplexityMagics, arguments: str) -> None:
    from ipyperplexity.notebook.tape_commands import run_replay

    run_replay(arguments)


def _panel(magics: PerplexityMagics, arguments: str) -> Any:
    from ipyperplexity.notebook.panel import Panel

    return Panel(magics.client(), **given_settings(magics, beside={}))


def _history(magics: PerplexityMagics, arguments: str) -> HistoryTable:
    from ipyperplexity.history_table import HistoryTable

    return HistoryTable(magics.answers)


def _last(magics: PerplexityMagics, arguments: str) -> Answer | None:
    answers = magics.newest_answers()
    if not answers:
        print("There is no answer yet.")
        return None
    return max(answers, key=lambda answer: answer.created.timestamp() + answer.elapsed)


def _help(magics: PerplexityMagics, arguments: str) -> None:
    print(help_text("" if arguments.startswith("-") else arguments))


_RUN: dict[str, Callable[[Any, str], Any]] = {
    "status": _status,
    "demo": _demo,
    "login": _login,
    "logout": _logout,
    "config": _config,
    "models": _models,
    "usage": _usage,
    "jobs": _jobs,
    "cache": _cache,
    "panel": _panel,
    "record": _record,
    "replay": _replay,
    "history": _history,
    "last": _last,
    "help": _help,
}
