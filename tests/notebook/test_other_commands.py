"""Commands about models, costs, credentials and defaults; and what is a command at all."""

from __future__ import annotations

import os
from typing import Any

import pytest

from ipyperplexity import Client, Models, UsageTable
from ipyperplexity.auth.key_store import save_key
from ipyperplexity.auth.login_record import WebLogin
from ipyperplexity.auth.token_store import save_login
from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import FAULTS, Behavior
from ipyperplexity.errors import InvalidRequestError, MissingCredentialError
from ipyperplexity.net.redact import Secret
from ipyperplexity.store.ledger import Ledger
from ipyperplexity.store.ledger_entry import LedgerEntry
from ipyperplexity.stored_settings import SETTING_NAMES, load_settings, settings_path
from tests.auth.signing_in import TOKEN
from tests.notebook.conftest import KEY, Session
from tests.notebook.kernels import Kernel
from tests.notebook.test_asking import asked, body
from tests.notebook.test_login import answer
from tests.support.raw_server import RawServer, agent_stream, sse_response

STORED = "pplx-" + "5ecre7" * 8

# --- models -----------------------------------------------------------------------------------


def test_models_lists_what_can_be_asked_with_prices_and_the_last_cost(
    session: Session, server: EmulatorServer
) -> None:
    with RawServer(
        sse_response(agent_stream("It is so."))
    ) as service:  # the engine's own prices are nobody's
        answer = Client(KEY, base_url=service.url).ask("What is a lambda?", model="fast")
    cost = answer.usage.cost_usd
    ran = session.good("%perplexity models")
    models = ran.result
    assert isinstance(models, Models) and models.get("fast").last_cost_usd == cost
    assert models.presets["name"] == ["fast", "low", "medium", "high", "xhigh", "wide-research"]
    assert any(price for price in models["input_usd_per_1m"])
    assert "prices in USD per million tokens" in ran.out and f"{cost:.4g}" in ran.out
    assert [request.path for request in server.requests] == ["/v1/models"]


def test_on_the_web_models_are_those_of_the_site_and_nobody_is_asked(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%config PerplexityMagics.backend = 'web'")
    ran = session.good("%perplexity models")
    assert "pplx_alpha" in ran.result["name"] and "Deep Research" in ran.out
    assert not server.requests


def test_models_that_cannot_be_listed_are_a_few_lines(
    session: Session, server: EmulatorServer
) -> None:
    server.next(FAULTS["unauthorized"])
    ran = session.run("%perplexity models")
    assert type(ran.error).__name__ == "AuthenticationError" and len(ran.out.splitlines()) <= 3


# --- usage ------------------------------------------------------------------------------------


def test_usage_is_what_this_notebook_asked_and_all_what_anybody_did(
    session: Session, server: EmulatorServer
) -> None:
    another = LedgerEntry("ask", question="Of another notebook", cost_usd=1.0, session="another")
    Ledger().record(another)
    cost = session.good("%perplexity -q What is a lambda?").result.usage.cost_usd
    session.good("%perplexity -b search -q tuple")
    ran = session.good("%perplexity usage")
    table = ran.result
    assert isinstance(table, UsageTable) and len(server.requests) == 2
    assert table["question"] == ["What is a lambda?", "tuple"]
    assert table["kind"] == ["ask", "search"]
    assert table["cost_usd"] == [cost, 0.005] and table["total_tokens"][0] > 0
    assert "2 requests" in ran.out and "Of another notebook" not in ran.out
    everything = session.good("%perplexity usage --all")
    assert set(everything.result["question"]) == {*table["question"], another.question}
    assert "3 requests" in everything.out and "Of another notebook" in everything.out


def test_usage_names_its_columns(session: Session, server: EmulatorServer) -> None:
    assert session.good("%perplexity usage").out.strip().endswith("0 requests, 0 tokens, $0.00)")
    session.good("%perplexity -q What is a lambda?")
    heads = session.good("%perplexity usage").out.strip().splitlines()[2]
    assert heads.split() == [
        *("asked", "kind", "model", "status", "tokens", "cost", "(USD)", "question")
    ]


def test_what_failed_or_was_stopped_is_in_the_usage_too(
    session: Session, server: EmulatorServer
) -> None:
    server.next(FAULTS["server-error"], Behavior(cut_after=30, chunk_chars=3))
    for _ in range(2):
        assert session.run("%perplexity What is a lambda?").error is not None
    assert session.good("%perplexity usage").result["status"] == ["failed", "failed"]


def test_usage_goes_into_a_frame(session: Session, server: EmulatorServer) -> None:
    session.good("%perplexity -q What is a lambda?")
    session.good("import pandas as pd\nu = %perplexity usage\nframe = pd.DataFrame(u)")
    assert session["frame"]["question"].tolist() == ["What is a lambda?"]


# --- status -----------------------------------------------------------------------------------


def status(session: Session) -> dict[str, str]:
    """Run ``status``; return its facts by name, having looked for secrets."""
    ran = session.good("%perplexity status")
    for secret in (KEY, STORED, TOKEN):
        assert secret not in ran.out + repr(ran.result) + str(vars(ran.result))
    facts: dict[str, str] = ran.result.lines()
    assert all(name in ran.out for name in facts)
    return facts


def test_status_says_where_the_key_comes_from_and_never_what_it_is(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert status(session)["key"] == "set, from PERPLEXITY_API_KEY"
    monkeypatch.delenv("PERPLEXITY_API_KEY")
    monkeypatch.setenv("PPLX_API_KEY", KEY)
    assert status(session)["key"] == "set, from PPLX_API_KEY"
    monkeypatch.delenv("PPLX_API_KEY")
    assert status(session)["key"] == "not set"
    place = save_key(Secret(STORED))
    assert status(session)["key"] == f"set, from {place}"


def test_status_says_where_the_login_comes_from_too(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert status(session)["web login"] == "none"
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", TOKEN)
    assert "PERPLEXITY_SESSION_TOKEN" in status(session)["web login"]
    monkeypatch.delenv("PERPLEXITY_SESSION_TOKEN")
    save_login(WebLogin(Secret(TOKEN), email="me@example.org", origin="a code by e-mail"))
    assert status(session)["web login"] == "the stored login: a code by e-mail, me@example.org"
    session.good("%config PerplexityMagics.backend = 'web'")
    now = status(session)
    assert now["login"].endswith("from the stored login: a code by e-mail")
    assert now["API key"] == "PERPLEXITY_API_KEY" and now["status"] == "ready"


def test_status_shows_the_defaults_that_are_set(session: Session) -> None:
    assert "options" not in status(session)
    session.good("%config PerplexityMagics.recency = 'month'\n%perplexity config budget=2")
    options = status(session)["options"]
    assert "recency=month" in options and "budget=2.0" in options


# --- config -----------------------------------------------------------------------------------


def test_a_default_is_set_for_all_notebooks_and_counts_at_once(
    session: Session, server: EmulatorServer
) -> None:
    assert "recency is now month" in session.good("%perplexity config recency=month").out
    assert "budget is now 2.0" in session.good("%perplexity config budget 2").out
    assert load_settings() == {"recency": "month", "budget": 2.0}
    session.good("%perplexity -q What is a lambda?")
    assert body(server)["tools"][0]["filters"] == {"search_recency_filter": "month"}
    assert "recency: month (file)" in session.good("%perplexity config recency").out
    session.good("%perplexity config recency=")
    session.good("%perplexity -q What is a tuple?")
    assert "tools" not in body(server)


def test_config_shows_all_settings_and_where_they_come_from(session: Session) -> None:
    session.good("%perplexity config recency=month\n%config PerplexityMagics.limit = 5")
    lines = session.good("%perplexity config --show").out.splitlines()
    origins = {line.split()[0]: line.split()[1:] for line in lines if line[:1].islower()}
    assert set(SETTING_NAMES) <= set(origins)
    assert origins["recency"] == ["month", "file"] and origins["limit"] == ["5", "%config"]
    assert f"The file is {settings_path()}." in lines


def test_a_setting_that_there_is_not_is_refused_and_not_asked(
    session: Session, server: EmulatorServer
) -> None:
    for line in ("config recencey=day", "config recencey", "config recency=fortnight"):
        assert isinstance(session.run(f"%perplexity {line}").error, InvalidRequestError)
    assert not server.requests and load_settings() == {}


# --- what is a command ------------------------------------------------------------------------


@pytest.mark.parametrize("line", [
    "models of the atom", "jobs in Ghent", "usage of commas", "config files in Python",
    "login pages that people like", "logout buttons, where do they go?", "status of Artemis II",
    "status quo", "a config=b in INI files", "config --show and its meaning",
])  # fmt: skip
def test_a_sentence_that_begins_like_a_command_is_asked(
    session: Session, server: EmulatorServer, line: str
) -> None:
    session.good(f"%perplexity -q {line}")
    session.good(f"%perplexity {line}")
    assert [request.path for request in server.requests] == ["/v1/responses"] * 2
    assert asked(server) == line and load_settings() == {}


@pytest.mark.parametrize("line", [
    f"login {STORED}", f"login --force {STORED}", f"login {STORED} --web", "login pplx-abcdef",
    f"login my key is {STORED}", "login eyJhbGciOiJkaXIifQ..abc", f"Login {STORED}",
    "Login pplx-abcdefgh", f"logn {STORED}", f"log in {STORED}", "log in pplx-abcdefgh",
    f"login: {STORED}", f"logout {STORED}", f"config {STORED}", f"config api_key {STORED}",
    f"config api_key={STORED}", f"status {STORED}", STORED, "pplx-abcdefgh", f"-- {STORED}",
    f"-m fast login {STORED}", f"Is {STORED} a valid key of the Agent API?", f"use {KEY}",
    f"-b search {STORED}", f"--background {STORED}", f"-s {STORED} Why?", "Why? {{variable}}",
])  # fmt: skip
def test_a_key_is_sent_nowhere_and_shown_nowhere(
    session: Session, server: EmulatorServer, line: str
) -> None:
    session.good(f"variable = {STORED!r}")
    ran = session.run(f"%perplexity {line}")
    assert isinstance(ran.error, InvalidRequestError | MissingCredentialError), ran.out
    assert not server.requests
    assert STORED not in ran.out and "pplx-abcdef" not in ran.out and KEY not in ran.out


def test_a_key_in_a_cell_is_not_sent_either(session: Session, server: EmulatorServer) -> None:
    for cell in (
        f"%%perplexity\nWhat is wrong with this?\n\nclient = Client('{STORED}')",
        f"%%perplexity login {STORED}\nplease",
        f"%%perplexity -b search\nlambda\n{STORED}",
    ):
        ran = session.run(cell)
        assert isinstance(ran.error, InvalidRequestError) and STORED not in ran.out
        assert "looks like an API key" in ran.out and "%perplexity login" in ran.out
    assert not server.requests


@pytest.mark.parametrize("line", [
    "What was the model pplx-70b-online good for?", "-- pplx-70b-online", "What does pplx- mean?",
])  # fmt: skip
def test_a_name_that_only_begins_like_a_key_can_be_asked_about(
    session: Session, server: EmulatorServer, line: str
) -> None:
    session.good(f"%perplexity {line}")
    assert asked(server) == line.removeprefix("-- ")


def test_login_where_nobody_can_be_asked_says_what_to_set(
    session: Session, server: EmulatorServer
) -> None:
    ran = session.run("%perplexity login")
    assert isinstance(ran.error, MissingCredentialError) and "PERPLEXITY_API_KEY" in ran.out
    assert len(ran.out.strip().splitlines()) <= 3 and not server.requests


def test_logout_forgets_what_is_stored_and_names_what_is_left(session: Session) -> None:
    save_key(Secret(STORED))
    out = session.good("%perplexity logout").out
    assert "The stored API key is deleted." in out and "PERPLEXITY_API_KEY is still set" in out


# --- in a kernel ------------------------------------------------------------------------------


@pytest.fixture
def kernel(running_kernel: Kernel, server: EmulatorServer) -> Kernel:
    running_kernel.start_over(server.url, KEY)
    home = os.environ["IPYPERPLEXITY_HOME"]
    running_kernel.run(
        f"os.environ['IPYPERPLEXITY_HOME'] = {home!r}\n"
        "os.environ['PYTHON_KEYRING_BACKEND'] = 'keyring.backends.fail.Keyring'"
    )
    return running_kernel


def test_a_kernel_asks_which_model_and_keeps_it(kernel: Kernel, server: EmulatorServer) -> None:
    cell = answer(kernel, "%perplexity config", ("4", False))
    assert cell.reply["status"] == "ok", cell.reply
    assert "Models of the agent backend:" in cell.printed
    assert "The default model of agent is now high" in cell.printed
    assert load_settings() == {"model": "high"}
    kernel.run("%perplexity -q What is a lambda?")
    assert body(server)["preset"] == "high"
    assert "high" in kernel.run("%perplexity status").outputs[0]["data"]["text/plain"]


def test_a_kernel_that_nobody_watches_says_how_to_set_it(kernel: Kernel) -> None:
    cell = kernel.run("%perplexity config", allow_stdin=False)
    assert cell.reply["status"] == "ok" and "%perplexity config model=NAME" in cell.printed
    assert load_settings() == {}


def test_a_key_that_is_logged_in_with_in_a_kernel_is_used_by_the_next_question(
    kernel: Kernel, server: EmulatorServer
) -> None:
    kernel.run("del os.environ['PERPLEXITY_API_KEY']")
    assert kernel.run("%perplexity Why?").error["ename"] == "MissingCredentialError"
    cell = answer(kernel, "%perplexity login", (KEY, True))
    assert "the first question will tell" in cell.printed
    assert kernel.run("%perplexity What is a lambda?").reply["status"] == "ok"
    assert server.requests[-1].authorized
    shown = kernel.run("%perplexity status").outputs[0]["data"]["text/plain"]
    assert "set, from the file" in shown and KEY not in shown
    kernel.run("%perplexity logout")
    assert kernel.run("%perplexity Why?").error["ename"] == "MissingCredentialError"


def test_what_commands_show_is_in_the_notebook_for_later(kernel: Kernel) -> None:
    kernel.run("%perplexity -q What is a lambda?")
    for command in ("models", "usage", "jobs"):
        (output,) = kernel.run(f"%perplexity {command}").outputs
        assert output["output_type"] == "execute_result"
        assert set(output["data"]) == {"text/plain", "text/html"}
        assert "<table>" in output["data"]["text/html"]


def test_a_warning_is_a_line_without_a_place_in_our_code(kernel: Kernel) -> None:
    kernel.run("import warnings")
    for _ in range(2):
        cell = kernel.run("%perplexity -b search -q lambda --limit 3")
        (stream,) = cell.outputs
        assert stream["name"] == "stderr" and stream["text"] == (
            "PerplexityWarning: --limit was sent as part of the question: options go before it.\n"
        )
    others = kernel.run("warnings.warn('mine', stacklevel=1)").printed
    assert "UserWarning: mine" in others and "ipykernel" in others


def test_warnings_are_as_they_were_after_unloading(session: Session) -> None:
    import warnings

    ours: Any = warnings.formatwarning
    session.good("%reload_ext ipyperplexity\n%unload_ext ipyperplexity")
    assert warnings.formatwarning is not ours
    assert "ipyperplexity" not in warnings.formatwarning.__module__
