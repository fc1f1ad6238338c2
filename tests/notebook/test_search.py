"""``%perplexity -b search``: sources alone, of one query or of several."""

from __future__ import annotations

from typing import Any

import pytest

from ipyperplexity import SearchResults, Sources
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import FAULTS, Behavior
from ipyperplexity.errors import InvalidRequestError, PerplexityWarning
from ipyperplexity.notebook.line import MAGIC_FLAGS, QUESTION_FLAGS, SEARCH_FLAGS
from ipyperplexity.search_query import OTHER_NAMES, SEARCH_OPTIONS
from tests.notebook.conftest import Session
from tests.notebook.test_asking import body
from tests.notebook.test_commands import completions

#: A service that says which query found what.
BY_QUERY = Behavior(search_groups=True)


def paths(server: EmulatorServer) -> list[str]:
    return [request.path for request in server.requests]


# --- what is searched for ---------------------------------------------------------------------


def test_a_line_is_a_query_and_its_value_are_the_sources(
    session: Session, server: EmulatorServer
) -> None:
    found = session.good("%perplexity -b search what's a lambda?").result
    assert isinstance(found, Sources) and found is session["_"]
    assert found[0].domain == "docs.python.org" and found[0].title.startswith("Lambda")
    assert paths(server) == ["/search"] and body(server) == {"query": "what's a lambda?"}


def test_the_lines_of_a_cell_are_queries_and_their_results_are_told_apart(
    session: Session, server: EmulatorServer
) -> None:
    server.next(BY_QUERY)
    found = session.good("%%perplexity -b search --limit 2\nlambda\n\n  a tuple  \n").result
    assert body(server) == {"query": ["lambda", "a tuple"], "max_results": 2}
    assert isinstance(found, SearchResults) and found.queries == ("lambda", "a tuple")
    assert len(found["lambda"]) == len(found["a tuple"]) == 2
    assert found["lambda"][0].url != found["a tuple"][0].url


def test_a_cell_of_one_line_is_one_query(session: Session, server: EmulatorServer) -> None:
    assert isinstance(session.good("%%perplexity -b search\nlambda").result, Sources)
    assert body(server) == {"query": "lambda"}


def test_the_rest_of_the_first_line_is_a_query_too(
    session: Session, server: EmulatorServer
) -> None:
    server.next(BY_QUERY)
    session.good("%%perplexity -b search lambda\ntuple")
    assert body(server)["query"] == ["lambda", "tuple"]


@pytest.mark.parametrize("word", ["status", "login", "jobs"])
def test_a_command_word_is_a_query_there(
    session: Session, server: EmulatorServer, word: str
) -> None:
    session.good(f"%perplexity -b search {word}")
    assert body(server)["query"] == word


def test_variables_are_put_into_each_query(session: Session, server: EmulatorServer) -> None:
    session.good("thing = 'lambda'")
    session.good("%perplexity -b search {{thing}} in {python}")
    assert body(server)["query"] == "lambda in {python}"
    server.next(BY_QUERY)
    session.good("%%perplexity -b search\n{{thing}}\ntuple")
    assert body(server)["query"] == ["lambda", "tuple"]
    session.good("%perplexity -b search --no-vars {{thing}}")
    assert body(server)["query"] == "{{thing}}"


def test_a_variable_that_is_not_there_is_refused_before_anything_is_sent(
    session: Session, server: EmulatorServer
) -> None:
    ran = session.run("%perplexity -b search {{thing}}")
    assert isinstance(ran.error, InvalidRequestError) and "'thing'" in ran.out
    assert not server.requests


@pytest.mark.parametrize(
    "cell",
    ["%perplexity -b search", "%%perplexity -b search\n  \n", "%perplexity -b search {{blank}}"],
)
def test_a_search_for_nothing_is_refused_in_its_own_words(
    session: Session, server: EmulatorServer, cell: str
) -> None:
    session.good("blank = ' '")
    ran = session.run(cell)
    assert isinstance(ran.error, InvalidRequestError) and "query: there is none" in ran.out
    assert "%perplexity -b search" in ran.out and not server.requests


def test_more_queries_than_the_service_takes_are_refused(
    session: Session, server: EmulatorServer
) -> None:
    ran = session.run("%%perplexity -b search\n" + "\n".join("abcdef"))
    assert "got 6 queries; allowed: 1 to 5" in ran.out and not server.requests


# --- where it goes ----------------------------------------------------------------------------


def test_out_keeps_the_sources_and_they_are_shown(session: Session) -> None:
    out = session.good("%perplexity -b search -o found lambda").out
    assert session["found"] is session["_"] and "docs.python.org" in out


def test_quiet_shows_nothing_and_keeps_them(session: Session) -> None:
    ran = session.good("%perplexity -b search -q -o found lambda")
    assert ran.out.strip() == "" and ran.result is session["found"] is session["_"]
    assert "docs.python.org" in session.good("_").out, "a later cell shows them"


def test_assigned_sources_are_not_shown(session: Session) -> None:
    assert session.good("found = %perplexity -b search lambda").out == ""
    assert len(session["found"])


def test_the_sources_are_a_table_for_pandas(session: Session) -> None:
    session.good("import pandas as pd\nfound = %perplexity -b search --limit 3 lambda")
    session.good("frame = pd.DataFrame(found)")
    assert list(session["frame"]["domain"]) == ["docs.python.org"] * 3


# --- options ----------------------------------------------------------------------------------

#: Option of a line -> the field of the request, and its value.
LINES: dict[str, tuple[str, Any]] = {
    "--limit 3": ("max_results", 3),
    "--domain python.org --domain w3.org": ("search_domain_filter", ["python.org", "w3.org"]),
    "--domain=-x.com": ("search_domain_filter", ["-x.com"]),
    "--recency month": ("search_recency_filter", "month"),
    "--after 2026-01-31": ("search_after_date_filter", "01/31/2026"),
    "--before 2026-01-31": ("search_before_date_filter", "01/31/2026"),
    "--updated-after 2026-01-31": ("last_updated_after_filter", "01/31/2026"),
    "--updated-before 2026-01-31": ("last_updated_before_filter", "01/31/2026"),
    "--country be": ("country", "BE"),
    "--language nl": ("search_language_filter", ["nl"]),
    "--context high": ("search_context_size", "high"),
    "--max-tokens 700": ("max_tokens", 700),
    "--max-tokens-per-page 300": ("max_tokens_per_page", 300),
    "--mode academic": ("search_mode", "academic"),
    "--search-type fast": ("search_type", "fast"),
}


@pytest.mark.parametrize("options", LINES)
def test_an_option_of_the_line_reaches_the_service(
    session: Session, server: EmulatorServer, options: str
) -> None:
    field, value = LINES[options]
    for line in (f"{options} -b search", f"-b search {options}"):
        session.good(f"%perplexity {line} lambda")
        assert body(server) == {"query": "lambda", field: value}


def test_every_option_with_a_spelling_is_in_that_table() -> None:
    tested = {word.partition("=")[0] for word in " ".join(LINES).split()} | {"--timeout"}
    for name, option in SEARCH_OPTIONS.items():
        assert not option.flags or set(option.flags) & tested, name


def test_a_time_limit_bounds_the_search(session: Session, server: EmulatorServer) -> None:
    server.next(Behavior(delay=30))
    ran = session.run("%perplexity -b search --timeout 0.3 lambda")
    assert type(ran.error).__name__ == "RequestTimeout"


@pytest.mark.parametrize("flag", SEARCH_FLAGS, ids=lambda flag: flag.name)
def test_an_option_that_only_a_search_has_is_refused_on_a_question(
    session: Session, server: EmulatorServer, flag: Any
) -> None:
    spelling = flag.option.flags[0]
    for cell in (f"%perplexity {spelling} 5 Why?", f"%%perplexity {spelling} 5\nWhy?"):
        ran = session.run(cell)
        assert isinstance(ran.error, InvalidRequestError)
        assert f"{spelling}: only a search has it" in ran.out
        assert f"%perplexity -b search {spelling}" in ran.out
    assert not server.requests


FOREIGN = [
    *(f for f in QUESTION_FLAGS if OTHER_NAMES.get(f.name, f.name) not in SEARCH_OPTIONS),
    *(f for f in MAGIC_FLAGS if f.name in ("follow", "new", "background", "no_stream", "raw")),
]


@pytest.mark.parametrize("flag", FOREIGN, ids=lambda flag: flag.name)
def test_an_option_that_a_search_has_not_is_refused_on_it(
    session: Session, server: EmulatorServer, flag: Any
) -> None:
    value = " low" if flag.takes == "value" else ""
    ran = session.run(f"%perplexity {flag.option.flags[0]}{value} -b search lambda")
    assert isinstance(ran.error, InvalidRequestError)
    assert f"{flag.option.flags[-1]}: a search has no such option" in ran.out
    assert "%perplexity help search" in ran.out and not server.requests


def test_a_search_takes_several_languages_and_a_question_one(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%perplexity -b search --language nl --language en lambda")
    assert body(server)["search_language_filter"] == ["nl", "en"]
    ran = session.run("%perplexity --language nl --language en What is a lambda?")
    assert isinstance(ran.error, InvalidRequestError) and "language: got 'nl, en'" in ran.out
    assert paths(server) == ["/search"]


def test_a_wrong_value_is_refused_before_anything_is_sent(
    session: Session, server: EmulatorServer
) -> None:
    for options, says in (
        ("--mode funny", "allowed: web, academic, sec"),
        ("--recency day --after 2026-01-01", "after"),
        ("--limit 0", "allowed: a whole number from 1"),
    ):
        ran = session.run(f"%perplexity -b search {options} lambda")
        assert isinstance(ran.error, InvalidRequestError) and says in ran.out, ran.out
    assert not server.requests


def test_an_option_after_the_query_is_remarked_on_each_time(
    session: Session, server: EmulatorServer
) -> None:
    for _ in range(2):
        with pytest.warns(PerplexityWarning, match="--limit was sent as part"):
            session.good("%perplexity -b search lambda --limit 3")
    assert body(server) == {"query": "lambda --limit 3"}


def test_help_search_lists_the_options_of_a_search(session: Session) -> None:
    out = session.good("%perplexity help search").out
    assert all(flag in out for option in SEARCH_OPTIONS.values() for flag in option.flags)
    assert "--reasoning" not in out


# --- settings ---------------------------------------------------------------------------------


def test_settings_that_a_search_knows_apply_and_the_others_do_not(
    session: Session, server: EmulatorServer
) -> None:
    session.good(
        "%config PerplexityMagics.limit = 3\n"
        "%config PerplexityMagics.recency = 'month'\n"
        "%config PerplexityMagics.domains = ['docs.python.org']\n"
        "%config PerplexityMagics.language = 'en'\n"
        "%config PerplexityMagics.model = 'high'\n"
        "%config PerplexityMagics.system = 'be brief'\n"
        "%config PerplexityMagics.reasoning = 'high'\n"
        "%config PerplexityMagics.max_tokens = 300\n"
        "%config PerplexityMagics.conversation = True"
    )
    session.good("%perplexity -b search lambda")
    assert body(server) == {
        "query": "lambda",
        "max_results": 3,
        "search_domain_filter": ["docs.python.org"],
        "search_recency_filter": "month",
        "search_language_filter": ["en"],
    }


def test_the_line_wins_over_settings_and_over_those_that_cannot_stand_beside_it(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%config PerplexityMagics.limit = 3\n%config PerplexityMagics.recency = 'month'")
    session.good("%perplexity -b search --limit 2 --updated-after 2026-01-31 lambda")
    assert body(server) == {
        "query": "lambda",
        "max_results": 2,
        "last_updated_after_filter": "01/31/2026",
    }


def test_defaults_for_all_notebooks_apply(session: Session, server: EmulatorServer) -> None:
    session.good("%perplexity config limit=4\n%perplexity config model=high")
    session.good("%perplexity -b search lambda")
    assert body(server) == {"query": "lambda", "max_results": 4}
    session.good("%config PerplexityMagics.limit = 2")
    session.good("%perplexity -b search lambda")
    assert body(server) == {"query": "lambda", "max_results": 2}


@pytest.mark.parametrize("how", ["%config", "environment", "file"])
def test_where_the_web_backend_is_set_the_search_api_is_asked_with_the_key(
    session: Session, server: EmulatorServer, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if how == "environment":
        monkeypatch.setenv("IPYPERPLEXITY_BACKEND", "web")
    elif how == "file":
        session.good("%perplexity config backend=web")
    else:
        session.good("%config PerplexityMagics.backend = 'web'")
    assert len(session.good("%perplexity -b search -q lambda").result)
    assert paths(server) == ["/search"] and server.requests[-1].authorized


def test_in_the_demo_the_demo_is_searched(session: Session, server: EmulatorServer) -> None:
    session.good("%perplexity demo on")
    assert session.good("%perplexity -b search -q lambda").result[0].domain == "docs.python.org"
    assert not server.requests


# --- failures and completion ------------------------------------------------------------------


def test_a_failure_is_a_few_lines(session: Session, server: EmulatorServer) -> None:
    server.next(FAULTS["unauthorized"])
    ran = session.run("%perplexity -b search -o found lambda")
    assert type(ran.error).__name__ == "AuthenticationError"
    assert len(ran.out.strip().splitlines()) <= 3 and "found" not in session.shell.user_ns


def test_a_search_leaves_the_conversation_alone(session: Session, server: EmulatorServer) -> None:
    first = session.good("%perplexity -q What is a lambda?").result
    session.good("%perplexity -b search -q tuple")
    session.good("%perplexity -q -c And why?")
    assert body(server)["previous_response_id"] == first.id


def test_tab_offers_the_search_and_its_options(session: Session) -> None:
    assert "search" in completions(session, "%perplexity -b se")
    assert completions(session, "%perplexity --mo") == {"--mode", "--model"}
    for spelling in ("-b search", "--backend search", "--backend=search"):
        assert completions(session, f"%perplexity {spelling} --mo") == {"--mode"}
    assert completions(session, "%%perplexity -b search --mode a") == {"academic"}
    assert completions(session, "%perplexity -b search --search-type ") >= {"fast", "people"}
    assert completions(session, "x = %perplexity -b search --updated-") == {
        "--updated-after",
        "--updated-before",
    }
