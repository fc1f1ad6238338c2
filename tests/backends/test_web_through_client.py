"""perplexity.ai with one's own subscription: logins, every form of an answer, and what stays here."""

from __future__ import annotations

import json
import os
import pickle
import re
import signal
import stat
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from ipyperplexity import Answer, Client, errors, spending, web_notice
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.token_store import load_login, login_file, save_login
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.net.redact import Secret
from ipyperplexity.web_notice import WEB_NOTICE
from tests.auth.signing_in import EMAIL, KEY, NEW, SESSION, TOKEN, shown, write_pi_login
from tests.net.asking import eventually
from tests.support.raw_server import (
    HoldOpen,
    RawServer,
    Script,
    http_response,
    in_turn,
    sse_response,
)
from tests.wire.consumer_streams import completed, frames, page, pending, source_block, text_block

QUESTION = "What is a lambda?"
COOKIES = f"theme=dark-and-quite-long-for-a-color; {SESSION}={TOKEN}"
ASK = "/rest/sse/perplexity_ask"
TERMINATE = "/rest/sse/perplexity_terminate"
GOOD = sse_response([frames([completed(text_block(["It is so."], 0))])])


@pytest.fixture(autouse=True)
def notice_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """The warnings of a test are its own: the notice of the first use has been given."""
    notice = web_notice.WebNotice()
    notice.take()
    monkeypatch.setattr(web_notice, "web_notice", notice)


@pytest.fixture
def logged_in() -> WebLogin:
    return save_login(WebLogin(Secret(TOKEN), origin="a code by e-mail", email=EMAIL))


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, web_sessions={TOKEN: EMAIL}) as server:
        yield server


def client_for(server: Any, **options: Any) -> Client:
    return Client(**{"backend": "web", "base_url": server.url, "max_retries": 0, **options})


def ask(script: Script, **options: Any) -> Answer:
    with RawServer(script) as server, client_for(server) as client:
        return client.ask("Why?", **options)


def token_on_disk() -> str:
    login = load_login()
    assert login is not None and login.token is not None
    return login.token.reveal()


class Watched(requests.Session):
    """A user's own session that keeps what it is asked to send."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[tuple[str, Any]] = []

    def request(self, method: Any, url: Any, *rest: Any, **options: Any) -> Any:
        self.sent.append((str(url), options.get("timeout")))
        return super().request(method, url, *rest, **options)


class Offline(Watched):
    """The same on a machine without a network."""

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        raise requests.ConnectionError("no route to host")


# --- the login ------------------------------------------------------------------------------------


def by_variable(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", TOKEN)


def by_cookie_variable(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("PERPLEXITY_COOKIE", COOKIES)


def by_the_other_name(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("PI_PERPLEXITY_TOKEN", f"Bearer {TOKEN}")


def by_store(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", NEW)  # the store comes first
    save_login(WebLogin(Secret(TOKEN), origin="a code by e-mail"))


def by_pi_perplexity(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    monkeypatch.setenv("HOME", str(home / "home"))
    write_pi_login(home, {"type": "oauth", "access": TOKEN})


LOGINS = {
    "variable": by_variable,
    "cookies": by_cookie_variable,
    "pi-perplexity's name": by_the_other_name,
    "store": by_store,
    "pi-perplexity's file": by_pi_perplexity,
}


@pytest.mark.parametrize("log_in", LOGINS.values(), ids=LOGINS)
def test_each_login_asks_as_its_account(
    log_in: Any, server: EmulatorServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    log_in(monkeypatch, tmp_path)
    with client_for(server) as client, warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client.status().state == "ready"
        answer = client.ask(QUESTION, model="gpt54")
    assert (answer.status, answer.model, answer.backend) == ("completed", "gpt54", "web")
    (request,) = server.requests
    assert request.cookies[SESSION] == TOKEN
    assert (request.path, request.json()["params"]["model_preference"]) == (ASK, "gpt54")
    assert TOKEN not in repr(client.status()) and TOKEN not in repr(client)


def test_cookies_are_sent_as_they_are_and_without_authorization(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PERPLEXITY_COOKIE", COOKIES)
    with RawServer(GOOD) as server:
        client_for(server).ask("Why?")
    assert server.requests[0].headers["Cookie"] == COOKIES
    assert server.requests[0].headers["Authorization"] is None


def test_a_login_that_changes_counts_for_the_next_question(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with RawServer(GOOD) as server, client_for(server) as client:
        for token in (TOKEN, NEW):
            monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", token)
            client.ask("Why?")
    assert [r.headers["Authorization"] for r in server.requests] == [f"Bearer {TOKEN}", f"Bearer {NEW}"]  # fmt: skip


def test_without_a_login_nothing_is_sent_and_it_says_how(
    server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)  # of another service
    client = client_for(server)
    assert client.status().state == "missing-credential"
    with pytest.raises(errors.MissingCredentialError) as raised:
        client.ask(QUESTION)
    assert "%perplexity login --web" in (raised.value.hint or "")
    assert server.requests == []


def test_an_unusable_login_is_named_before_anything_is_sent(
    server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PERPLEXITY_COOKIE", "a=b; cf_clearance=c")
    client = client_for(server)
    with pytest.raises(errors.ConfigurationError, match="PERPLEXITY_COOKIE"):
        client.ask(QUESTION)
    status = client.status()
    assert not status and "PERPLEXITY_COOKIE" in status.problem
    assert server.requests == []


# --- one answer, whatever form it comes in ----------------------------------------------------------

FORMS: dict[str, dict[str, Any]] = {
    "diff": {"web_form": "diff"},
    "diff, odd patches": {"web_form": "diff", "web_odd_patches": True},
    "diff, in chunks": {"web_form": "diff", "web_chunks": "partial", "web_answer": "chunks"},
    "workflow": {"web_form": "workflow"},
    "workflow in patches": {"web_form": "workflow-diff"},
    "chunks half finished": {"web_chunks": "partial"},
    "chunks sent again": {"web_chunks": "resend"},
    "chunks from the first": {"web_chunks": "whole"},
    "chunks alone": {"web_answer": "chunks"},
    "numbers that change at the end": {"web_answer": "renumbered"},
    "plain text beside it": {"web_text": "plain"},
    "sources in the other block": {"web_sources": "sources_answer_mode"},
    "sources in both blocks": {"web_sources": "both"},
    "sources in a list": {"web_sources": "sources_list"},
    "sources at the top": {"web_sources": "top_level"},
    "sources in the steps": {"web_sources": "steps"},
    "nulls": {"nulls": True},
    "no event names, [DONE]": {"event_names": False, "done_marker": True, "newline": "\n"},
    "single bytes": {"framing": "dribbled", "piece_bytes": 1, "bom": True},
    "compressed, with comments": {"framing": "gzip", "keepalives": True},
    "never closed": {"keep_open": True},
}


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_each_form_gives_the_same_answer(form: dict[str, Any], server: EmulatorServer) -> None:
    with client_for(server) as client:
        server.next(Behavior(web_form="snapshot"), Behavior(**form))
        first = client.ask(QUESTION, model="claude50sonnet")
        answer = client.ask(QUESTION, model="claude50sonnet")
    assert first.text and len(first.sources) > 1 and first.related
    assert answer.text == first.text
    assert answer.sources.to_dicts() == first.sources.to_dicts()
    assert (answer.model, answer.status) == ("claude50sonnet", "completed")
    assert answer.citations == first.citations
    assert answer.related == first.related
    assert not answer.warnings


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize("form", ["snapshot", "diff", "workflow", "workflow-diff"])
def test_text_comes_as_it_is_written_in_each_form(form: str, server: EmulatorServer) -> None:
    server.next(Behavior(web_form=form))
    with client_for(server).stream(QUESTION) as stream:
        seen = {stream.text for _ in stream}
    assert len(seen) > 5
    assert all(stream.answer.text.startswith(text) for text in seen)


@pytest.mark.usefixtures("logged_in")
def test_the_report_of_deep_research_is_the_text(server: EmulatorServer) -> None:
    with client_for(server) as client, pytest.warns(errors.PerplexityWarning, match="report"):
        answer = client.ask(QUESTION, model="pplx_alpha")
    assert answer.text.startswith(f"# {QUESTION}")
    assert answer.reasoning.endswith("The report is ready.")


# --- the end of a stream ----------------------------------------------------------------------------


@pytest.mark.usefixtures("logged_in")
def test_an_early_final_does_not_cut_the_answer() -> None:
    records = [
        pending(text_block(["He"], 0)),
        pending(final=True, final_sse_message=False, text_completed=True),
        completed(text_block(answer="Hello.[1]"), source_block(page("https://a.test/")), related_queries=["And?"]),
    ]  # fmt: skip
    answer = ask(sse_response([frames([record], end=False) for record in records]))
    assert (answer.text, answer.related, answer.status) == ("Hello.[1]", ("And?",), "completed")
    assert answer.sources["url"] == ["https://a.test/"]


@pytest.mark.usefixtures("logged_in")
def test_a_final_is_the_end_when_nothing_follows(server: EmulatorServer) -> None:
    with client_for(server) as client:
        whole = client.ask(QUESTION)
        server.next(Behavior(web_fault="pending-final-only"))
        answer = client.ask(QUESTION)
        assert (answer.status, answer.text) == ("completed", whole.text)


@pytest.mark.usefixtures("logged_in")
def test_the_connection_is_let_go_after_the_last_event() -> None:
    with RawServer([*GOOD[:-1], HoldOpen()]) as running, client_for(running) as client:
        assert client.ask("Why?").text == "It is so."
        assert running.wait_for_disconnect()


# --- what goes wrong inside a good reply ------------------------------------------------------------

FAULTS: dict[str, tuple[type[errors.PerplexityError], bool, str]] = {
    "rate-limited": (errors.RateLimitError, False, "FREE_TIER_RATE_LIMITED"),
    "quota-exhausted": (errors.RateLimitError, True, "You have used your quota"),
    "generic-failed": (errors.StreamError, True, "try later"),
    "error-message": (errors.StreamError, True, "something went wrong"),
    "failed-status": (errors.StreamError, True, "the answer failed"),
    "failed-lower-case": (errors.StreamError, True, "the answer failed"),
    "blocked": (errors.StreamError, True, "blocked"),
    "error-sentence": (errors.StreamError, False, "Error in processing query"),
    "error-sentence-completed": (errors.StreamError, False, "Error in processing query"),
    "json-error": (errors.StreamError, False, "the service is being rebuilt"),
    "json-detail": (errors.StreamError, False, "the service is being rebuilt"),
    "empty": (errors.EmptyAnswerError, False, "without text"),
    "no-end": (errors.StreamError, True, "ended before"),
}


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize(("fault", "facts"), FAULTS.items(), ids=FAULTS)
def test_a_failure_inside_a_good_reply_is_that_failure(
    fault: str, facts: tuple[type[errors.PerplexityError], bool, str], server: EmulatorServer
) -> None:
    kind, has_text, words = facts
    server.next(Behavior(web_fault=fault))
    with client_for(server, max_retries=5) as client:
        with pytest.raises(errors.PerplexityError) as raised:
            client.ask(QUESTION, model="glm_5_2")
        failed = raised.value.answer
        assert type(raised.value) is kind and words in raised.value.message
        assert raised.value.hint
        assert failed is not None and failed is client.last
        assert (failed.status, bool(failed.text)) == ("failed", has_text)
        assert "Error in processing" not in failed.text
        if kind is not errors.EmptyAnswerError and fault != "no-end":
            assert "glm_5_2" in raised.value.message, "the model may be why"
        assert len(server.requests) == 1, "it is not asked again"
        entry = client.usage()[-1]
        assert (entry.status, entry.backend, entry.asked_model) == ("failed", "web", "glm_5_2")


ODDITIES = {
    "bad-frame": "made no sense",
    "non-object": "made no sense",
    "huge-frame": "",
    "half-surrogate": "",
    "no-end-of-stream": "",
}


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize(("fault", "warned"), ODDITIES.items(), ids=ODDITIES)
def test_an_odd_event_costs_no_text(fault: str, warned: str, server: EmulatorServer) -> None:
    with client_for(server) as client:
        whole = client.ask(QUESTION)
        server.next(Behavior(web_fault=fault))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            answer = client.ask(QUESTION)
    assert answer.status == "completed"
    assert answer.text == whole.text + (" 🐍." if fault == "half-surrogate" else "")
    assert [warned in str(warning.message) for warning in caught] == ([True] if warned else [])


@pytest.mark.usefixtures("logged_in")
def test_sources_without_text_are_an_answer(server: EmulatorServer) -> None:
    server.next(Behavior(web_fault="sources-only"))
    answer = client_for(server).ask(QUESTION)
    assert (answer.status, answer.text, bool(answer.sources)) == ("completed", "", True)


@pytest.mark.usefixtures("logged_in")
def test_an_answer_that_the_site_stopped_is_incomplete(server: EmulatorServer) -> None:
    server.next(Behavior(web_fault="terminated"))
    with pytest.warns(errors.PerplexityWarning, match="before it was complete"):
        answer = client_for(server).ask(QUESTION)
    assert answer.status == "incomplete" and answer.text


@pytest.mark.usefixtures("logged_in")
def test_deep_research_that_asks_back_is_an_error_with_its_questions(
    server: EmulatorServer,
) -> None:
    server.next(Behavior(web_research="clarify"))
    with client_for(server, max_retries=5) as client:
        with pytest.raises(errors.InvalidRequestError) as raised:
            client.ask(QUESTION, model="pplx_alpha")
        assert "- Which version do you mean?" in (raised.value.hint or "")
        assert len(server.requests) == 1


# --- not signed in ----------------------------------------------------------------------------------


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize("unknown", [True, False], ids=["unknown login", "known login"])
def test_an_answer_for_a_stranger_is_warned_of(unknown: bool, server: EmulatorServer) -> None:
    if unknown:
        server.web_sessions.clear()
    else:
        server.next(Behavior(web_fault="anonymous"))
    with pytest.warns(errors.PerplexityWarning, match="turbo answered, not glm_5_2") as caught:
        answer = client_for(server).ask(QUESTION, model="glm_5_2")
    assert (answer.status, answer.model) == ("completed", "glm_5_2")
    assert "perhaps you are not logged in" in answer.warnings[0]
    assert "%perplexity login --web --force" in answer.warnings[0]
    assert len(caught) == 1 and token_on_disk() == TOKEN


@pytest.mark.usefixtures("logged_in")
def test_who_asks_for_turbo_is_not_warned_of_it(server: EmulatorServer) -> None:
    server.web_sessions.clear()
    answer = client_for(server).ask(QUESTION, model="turbo")
    assert (answer.model, answer.warnings) == ("turbo", ())


# --- threads ----------------------------------------------------------------------------------------


@pytest.mark.usefixtures("logged_in")
def test_a_follow_up_shows_the_token_of_its_thread(server: EmulatorServer) -> None:
    with client_for(server) as client:
        first = client.ask(QUESTION, model="gpt54")
        second = first.follow_up("And a closure?").follow_up("And a class?")
    entries = [server.web.entry(answer or "") for answer in (first.id, second.id)]
    assert entries[0] is not None and entries[1] is not None
    assert entries[1].questions == (QUESTION, "And a closure?", "And a class?")
    begun, *went_on = (request.json()["params"] for request in server.requests)
    assert "frontend_context_uuid" in begun
    for params in went_on:
        assert params["read_write_token"] == entries[0].token
        assert params["query_source"] == "followup"
        assert "frontend_context_uuid" not in params
        assert params["model_preference"] == "gpt54"
    assert len({request.json()["params"]["frontend_uuid"] for request in server.requests}) == 3


@pytest.mark.usefixtures("logged_in")
def test_an_answer_of_another_backend_is_told_not_named() -> None:
    earlier = Answer("Who?", "Ann.", id="resp_1", backend="agent", stored=True)
    with RawServer(GOOD) as server, pytest.warns(errors.PerplexityWarning, match="were sent along"):
        client_for(server).ask("And why?", follow=earlier)
    sent = server.requests[0].json
    assert sent["query_str"] == "Q: Who?\nA: Ann.\n\nQ: And why?"
    assert not {"last_backend_uuid", "read_write_token"} & sent["params"].keys()


# --- the login is renewed, and stays ----------------------------------------------------------------


@pytest.mark.usefixtures("logged_in")
def test_a_renewed_session_is_stored_and_used_from_then_on(server: EmulatorServer) -> None:
    server.next(Behavior(rotate_session=NEW))
    with client_for(server) as client:
        client.ask(QUESTION)
        assert token_on_disk() == NEW
        assert stat.S_IMODE(login_file().stat().st_mode) == 0o600
        del server.web_sessions[TOKEN]  # the old one is of no more use
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # such as: perhaps you are not logged in
            client.ask(QUESTION, model="gpt54")
    assert [request.cookies[SESSION] for request in server.requests] == [TOKEN, NEW]
    assert [request.bearer for request in server.requests] == [TOKEN, NEW]
    login = load_login()
    assert login is not None and login.email == EMAIL


def test_the_other_cookies_stay_when_the_session_is_renewed(server: EmulatorServer) -> None:
    cookies = (("theme", Secret("dark")), (SESSION, Secret(TOKEN)))
    save_login(WebLogin(Secret(TOKEN), cookies, origin="cookies of a browser"))
    server.next(Behavior(rotate_session=NEW))
    with client_for(server) as client:
        client.ask(QUESTION)
        client.ask(QUESTION)
    assert server.requests[1].cookies == {"theme": "dark", SESSION: NEW}
    assert server.requests[1].bearer is None


@pytest.mark.parametrize("name", ["PERPLEXITY_SESSION_TOKEN", "PERPLEXITY_COOKIE"])
def test_a_renewed_session_of_a_variable_is_written_nowhere(
    name: str, server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, TOKEN if "TOKEN" in name else COOKIES)
    server.next(Behavior(rotate_session=NEW))
    with client_for(server) as client:
        client.ask(QUESTION)
        client.ask(QUESTION)
    assert not login_file().exists()
    assert [request.cookies[SESSION] for request in server.requests] == [TOKEN, TOKEN]
    assert os.environ[name].endswith(TOKEN)


@pytest.mark.parametrize("fault", ["challenge-200", "challenge-403", "unauthorized", "forbidden"])
def test_no_refusal_takes_the_login_away(
    fault: str, logged_in: WebLogin, server: EmulatorServer
) -> None:
    before = login_file().read_bytes()
    server.next(Behavior(web_fault=fault))
    with client_for(server, max_retries=5) as client:
        with pytest.raises(errors.PerplexityError) as raised:
            client.ask(QUESTION)
        assert login_file().read_bytes() == before
        assert len(server.requests) == 1
        assert client.ask(QUESTION).status == "completed"
    is_challenge = fault.startswith("challenge")
    assert raised.value.code == ("CHALLENGE" if is_challenge else "AUTH")
    if is_challenge:
        assert "Cloudflare" in raised.value.message
        assert "login" not in str(raised.value), "logging in anew does not help"
        assert "nothing here goes round it" in (raised.value.hint or "")
    assert TOKEN not in shown(raised.value)


# --- one line at the first use ------------------------------------------------------------------------


@pytest.mark.usefixtures("logged_in")
def test_the_first_use_in_a_process_says_that_it_is_unofficial(
    server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_notice, "web_notice", web_notice.WebNotice())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Client(KEY, base_url=server.url).ask(QUESTION)  # another backend
        assert client_for(server).status()
        with pytest.raises(errors.InvalidRequestError):
            client_for(server).ask(QUESTION, model="low")  # was never sent
    with pytest.warns(errors.PerplexityWarning, match=re.escape(WEB_NOTICE)):
        first = client_for(server).ask(QUESTION)
    assert first.warnings == (WEB_NOTICE,) and "\n" not in WEB_NOTICE
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert client_for(server).ask(QUESTION).warnings == ()


@pytest.mark.usefixtures("logged_in")
def test_of_ten_first_uses_at_once_one_says_so(
    server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web_notice, "web_notice", web_notice.WebNotice())
    begin = threading.Barrier(10)

    def use(number: int) -> Answer:
        begin.wait(10)
        with client_for(server).stream(QUESTION) as stream:
            return stream.answer

    with ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(use, range(10)))
    assert sum(WEB_NOTICE in answer.warnings for answer in answers) == 1


@pytest.mark.usefixtures("logged_in")
def test_a_question_that_failed_has_not_shown_the_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web_notice, "web_notice", web_notice.WebNotice())
    with RawServer(in_turn([http_response(500, None, "busy")], GOOD)) as server:
        with pytest.raises(errors.ServerError):
            client_for(server).ask(QUESTION)
        with pytest.warns(errors.PerplexityWarning, match=re.escape(WEB_NOTICE)):
            assert client_for(server).ask(QUESTION).warnings == (WEB_NOTICE,)


# --- time limits, stops -------------------------------------------------------------------------------


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({}, 90),
        ({"model": "gpt54_thinking"}, 90),
        ({"model": "pplx_alpha"}, 600),
        ({"model": "pplx_alpha", "timeout": 30}, 30),
        ({"timeout": 1000}, 1000),
    ],
)
@pytest.mark.filterwarnings("ignore::ipyperplexity.errors.PerplexityWarning")
def test_deep_research_has_ten_minutes_and_other_questions_90_seconds(
    options: dict[str, Any], seconds: float, server: EmulatorServer
) -> None:
    with Watched() as session:
        client_for(server, session=session).ask(QUESTION, **options)
        client_for(server, session=session, timeout=45).ask(QUESTION, model="pplx_alpha")
        limits = [timeout[1] for _, timeout in session.sent]
    assert limits == [pytest.approx(seconds, abs=5), pytest.approx(45, abs=5)]


@pytest.mark.usefixtures("logged_in")
def test_what_takes_too_long_is_a_timeout_that_keeps_its_text(server: EmulatorServer) -> None:
    server.next(Behavior(stall_after=8))
    with pytest.raises(errors.RequestTimeout) as raised:
        client_for(server).ask(QUESTION, timeout=0.5)
    assert raised.value.answer is not None and raised.value.answer.text


@pytest.mark.usefixtures("logged_in")
def test_an_interrupted_question_is_stopped_at_the_site_with_the_same_login(
    server: EmulatorServer,
) -> None:
    server.next(Behavior(stall_after=8))
    with client_for(server) as client:

        def interrupt() -> None:
            assert eventually(lambda: any(stream.text for stream in list(client._running)))
            os.kill(os.getpid(), signal.SIGINT)

        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(errors.Interrupted) as raised:
            client.ask(QUESTION)
        thread.join()
        answer = raised.value.answer
        assert answer is not None and answer.status == "stopped" and answer.text
        assert isinstance(answer.error, errors.AbortedError)
        assert client.last is answer
        assert eventually(lambda: server.terminated)
    assert server.terminated == [answer.id]
    told = server.requests[-1]
    assert (told.path, told.cookies[SESSION]) == (TERMINATE, TOKEN)


# --- nothing falls back to it, nor it to anything -----------------------------------------------------


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize("status", [0, 401, 403, 404, 429, 500])
def test_a_failure_here_asks_no_other_backend(status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    script: Script = [http_response(status, {}, {})] if status else [b"no http\r\n\r\n"]
    with RawServer(script) as failing, RawServer(GOOD) as other, Watched() as session:
        monkeypatch.setenv("PERPLEXITY_API_KEY", KEY)
        monkeypatch.setenv("PERPLEXITY_BASE_URL", other.url)
        with pytest.raises(errors.PerplexityError):
            client_for(failing, session=session).ask("Why?")
        assert [url for url, _ in session.sent] == [failing.url + ASK]
        assert other.requests == []
        assert all(KEY not in str(request.headers) for request in failing.requests)


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize("backend", ["agent", "chat"])
@pytest.mark.parametrize("status", [0, 401, 402, 403, 404, 429, 500])
def test_a_failure_of_another_backend_does_not_ask_here(status: int, backend: str) -> None:
    script: Script = [http_response(status, {}, {})] if status else [b"no http\r\n\r\n"]
    with RawServer(script) as failing, Watched() as session:
        client = Client(KEY, backend, failing.url, session=session, max_retries=0)
        with pytest.raises(errors.PerplexityError):
            client.ask("Why?")
        assert all(url.startswith(failing.url) for url, _ in session.sent)
        assert len(failing.requests) == 1
        assert TOKEN not in str(failing.requests[0].headers)


@pytest.mark.usefixtures("logged_in")
def test_a_login_does_not_stand_in_for_a_missing_key() -> None:
    with Offline() as session, pytest.raises(errors.MissingCredentialError):
        Client(session=session).ask("Why?")
    assert session.sent == []


# --- where the login goes -------------------------------------------------------------------------------

STRANGERS = [
    "https://evil.example",
    "https://perplexity.ai.evil.example",
    "https://evilperplexity.ai",
    "https://perplexity.ai@evil.example",
    "http://10.0.0.1",
    "http://localhost.evil.example",
]


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize("address", STRANGERS)
@pytest.mark.parametrize("allow_http", [False, True])
def test_another_site_is_never_sent_the_login(address: str, allow_http: bool) -> None:
    with Offline() as session:
        with pytest.raises(errors.ConfigurationError) as raised:
            Client(backend="web", base_url=address, session=session, allow_http=allow_http).ask(
                "Why?"
            )
        assert session.sent == []
    assert raised.value.field == "base_url"
    assert TOKEN not in shown(raised.value)


@pytest.mark.usefixtures("logged_in")
def test_a_variable_or_a_stored_address_of_the_api_does_not_move_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from ipyperplexity.stored_settings import save_setting

    save_setting("base_url", "https://stored.example")
    monkeypatch.setenv("PERPLEXITY_BASE_URL", "https://gateway.example")
    with Offline() as session:
        client = Client(backend="web", session=session, max_retries=0)
        with pytest.raises(errors.NetworkError):
            client.ask("Why?")
    assert [url for url, _ in session.sent] == [f"https://www.perplexity.ai{ASK}"]
    assert client.status().base_url == "https://www.perplexity.ai"


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with RawServer(GOOD) as other:
        moved = http_response(status, {"Location": other.url + ASK})
        with pytest.raises(errors.NetworkError, match="redirect"):
            ask([moved])
    assert other.requests == []


# --- what is sent ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("logged_in")
def test_the_request_names_us_and_imitates_no_browser() -> None:
    with RawServer(GOOD) as server:
        client_for(server).ask("Why?\n", recency="week", model="any_new-slug.2")
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", ASK)
    headers = {name.lower(): value for name, value in request.headers.items()}
    params = request.json["params"]
    assert re.fullmatch(r"ipyperplexity/[\w.]+", headers["user-agent"])
    assert headers["x-request-id"] == params["frontend_uuid"]
    assert headers["x-app-apiversion"] == params["version"] == "2.18"
    assert headers["accept"] == "text/event-stream"
    assert headers["content-type"] == "application/json"
    assert headers["cookie"] == f"{SESSION}={TOKEN}"
    assert headers["authorization"] == f"Bearer {TOKEN}"
    # No sec-fetch-*, no sec-ch-ua*, no accept-language: nothing that a browser adds.
    assert set(headers) == {
        "accept", "accept-encoding", "authorization", "cache-control", "connection", "content-length",
        "content-type", "cookie", "host", "origin", "referer", "user-agent", "x-app-apiclient",
        "x-app-apiversion", "x-perplexity-request-reason", "x-pplx-integration", "x-request-id",
    }  # fmt: skip
    assert not re.search(r"mozilla|chrome|safari|cfnetwork|darwin", str(headers).lower())
    assert request.json["query_str"] == params["query_str"] == "Why?\n"
    assert (params["mode"], params["is_incognito"]) == ("copilot", True)
    assert params["search_recency_filter"] == "week"
    assert params["model_preference"] == "any_new-slug.2"
    ids = (params["frontend_uuid"], params["frontend_context_uuid"])
    assert all(re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", id) for id in ids)
    assert len(set(ids)) == 2


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize(
    ("option", "field"),
    [
        ({"system": "Be brief."}, "system"),
        ({"tools": [len]}, "tools"),
        ({"schema": {"a": int}}, "schema"),
        ({"model": "low"}, "model"),
        ({"max_tokens": 5}, "max_tokens"),
    ],
)
def test_what_the_site_has_no_place_for_is_refused_before_anything_is_sent(
    option: dict[str, Any], field: str
) -> None:
    with RawServer(GOOD) as server, client_for(server) as client:
        with pytest.raises(errors.InvalidRequestError) as raised:
            client.stream("Why?", **option)
        assert raised.value.field == field
        with pytest.raises(errors.ConfigurationError, match="background"):
            client.submit("Why?")
        assert server.requests == []


@pytest.mark.usefixtures("logged_in")
def test_a_limit_cuts_the_sources_and_says_so(server: EmulatorServer) -> None:
    with client_for(server) as client:
        whole = client.ask(QUESTION)
        cut = client.ask(QUESTION, limit=1)
    assert len(whole.sources) > 1 and not whole.truncated
    assert (len(cut.sources), cut.truncated, cut.text) == (1, True, whole.text)


# --- secrets ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("logged_in")
@pytest.mark.parametrize("status", [200, 400, 401, 403, 429, 500])
def test_a_site_that_repeats_the_login_does_not_make_us_show_it(status: int) -> None:
    echo = {"error": f"bad session {TOKEN}", "error_code": TOKEN}
    with RawServer([http_response(status, {"x-request-id": TOKEN}, echo)]) as server:
        client = client_for(server)
        with pytest.raises(errors.PerplexityError) as raised:
            client.ask(f"Is {TOKEN} mine?")
        told = "bad session" in raised.value.message
        rest = b"".join(pickle.dumps(value) for value in (raised.value, client, client.last))
        # The question is the user's own words; nobody else's show it.
        question = f"Is {TOKEN} mine?".encode()
        rest = rest.replace(question, b"")
        assert told and TOKEN not in raised.value.message
        assert TOKEN.encode() not in rest
        assert TOKEN not in shown(raised.value).replace(question.decode(), "")
        assert TOKEN not in repr(client.usage().to_dicts())


@pytest.mark.usefixtures("logged_in")
def test_neither_login_nor_thread_token_is_in_anything_but_the_store(
    server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.behavior = Behavior(rotate_session=NEW)
    with client_for(server) as client:
        answer = client.ask(QUESTION)
        spending.ledger().close()  # all of it is in its file now
    entry = server.web.entry(answer.id or "")
    assert entry is not None
    for secret in (TOKEN, NEW):
        assert secret.encode() not in pickle.dumps(answer) + pickle.dumps(client)
        assert secret not in repr(answer) + json.dumps(answer.raw) + repr(client)
    assert entry.token not in json.dumps(answer.raw) + repr(answer) + json.dumps(answer.row(), default=str)  # fmt: skip
    kept = [path for path in Path(os.environ["IPYPERPLEXITY_HOME"]).rglob("*") if path.is_file()]
    assert any(path.suffix == ".db" for path in kept)
    for path in kept:
        data = path.read_bytes()
        assert entry.token.encode() not in data, path
        assert path == login_file() or not any(s.encode() in data for s in (TOKEN, NEW)), path
