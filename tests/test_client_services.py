"""What a client does beside asking: jobs, models, usage, the budget, and defaults of the user's file."""

from __future__ import annotations

import gc
import json
import pickle
import sqlite3
import threading
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import requests

from ipyperplexity import Client, demo_engine, errors, spending, web_notice
from ipyperplexity.emulator import Behavior, EmulatorServer
from ipyperplexity.question import Question
from ipyperplexity.store import ledger as ledger_module
from ipyperplexity.store.folders import state_dir
from ipyperplexity.store.ledger import Ledger
from ipyperplexity.stored_settings import save_setting, settings_path
from ipyperplexity.wire.consumer_constants import MODELS as WEB_MODELS
from tests.auth.signing_in import EMAIL, KEY, TOKEN, shown
from tests.net.asking import eventually
from tests.store.processes import start
from tests.support.raw_server import (
    HoldOpen,
    RawConnection,
    RawRequest,
    RawServer,
    agent_stream,
    http_response,
    in_turn,
    sse_response,
)

QUESTION = "What is a lambda?"
GOOD = sse_response(agent_stream("It is so."))  # costs $0.00125
CHAT = [http_response(200, None, {"choices": [{"message": {"content": "So."}, "finish_reason": "stop"}]})]  # fmt: skip
CREATED = {"id": "resp_1", "object": "response", "status": "queued", "model": "high", "output": []}


@pytest.fixture(autouse=True)
def afresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that has just started, of a user who has never asked."""
    monkeypatch.setattr(ledger_module, "_ledger", Ledger())
    monkeypatch.setattr(spending, "_account", spending._Account())
    notice = web_notice.WebNotice()
    notice.take()
    monkeypatch.setattr(web_notice, "web_notice", notice)


@pytest.fixture
def server() -> Iterator[EmulatorServer]:
    with EmulatorServer(pace=0, api_key=KEY, web_sessions={TOKEN: EMAIL}) as server:
        yield server


@pytest.fixture
def web_login(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PERPLEXITY_SESSION_TOKEN", TOKEN)


def client_for(server: Any, **options: Any) -> Client:
    return Client(**{"api_key": KEY, "base_url": server.url, "max_retries": 0, **options})


def run_in_another_process(code: str, *arguments: object) -> Any:
    """Run code in a Python of its own; return what it printed, as JSON."""
    process = start(f"import json, sys\nfrom ipyperplexity import Client\n{code}", *arguments)
    out, problem = process.communicate(timeout=60)
    assert process.returncode == 0, problem
    return json.loads(out)


class Offline(requests.Session):
    """A user's own session on a machine without a network; keeps where it was to send to."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[str] = []

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        self.sent.append(str(request.url))
        raise requests.ConnectionError("no route to host")


# --- jobs -----------------------------------------------------------------------------------------


def test_a_question_that_is_left_to_the_service_is_answered_as_if_it_was_asked(
    server: EmulatorServer,
) -> None:
    client = client_for(server)
    job = client.submit(QUESTION, model="high", limit=2)
    answer = job.wait()
    assert answer.text == client.ask(QUESTION, model="high", limit=2).text
    assert (answer.status, answer.model, len(answer.sources)) == ("completed", job.model, 2)
    assert client.jobs()[0].answer.text == answer.text
    assert answer.follow_up("And a closure?").status == "completed"
    created, *_, followed = (r.json() for r in server.requests if r.method == "POST")
    assert (created["background"], created["preset"]) == (True, "high")
    assert followed["previous_response_id"] == answer.id == job.id


def test_a_job_is_in_the_ledger_once_however_often_it_is_fetched(server: EmulatorServer) -> None:
    client = client_for(server)
    job = client.submit(QUESTION, model="high")
    cost = job.wait().usage.cost_usd
    for again in (client.jobs(), client_for(server).jobs()):
        again[job.id].wait()
    (entry,) = client.usage()
    assert (entry.kind, entry.asked_model, entry.answer_id) == ("job", "high", job.id)
    assert entry.cost_usd == cost and cost
    assert spending.spent() == pytest.approx(cost)


PICK_UP = """
client = Client(sys.argv[1], base_url=sys.argv[2])
job, = client.jobs()
answer = job.wait()
print(json.dumps([job.id, answer.text, answer.usage.cost_usd, len(client.usage())]))
"""


def test_another_process_picks_a_job_up_and_both_know_its_answer(server: EmulatorServer) -> None:
    client = client_for(server)
    job = client.submit(QUESTION, model="high")
    id, text, cost, n_rows = run_in_another_process(PICK_UP, KEY, server.url)
    asked = len(server.requests)
    assert (id, n_rows) == (job.id, 1)
    answer = job.wait()
    assert answer.text == text and "lambda" in text
    assert client.jobs()["status"] == ["completed"] and client.jobs()["cost_usd"] == [cost]
    assert len(server.requests) == asked, "what is on this machine is not fetched again"
    assert len(client.usage()) == 0, "it is the other's to count"
    assert [entry.kind for entry in client.usage(everything=True)] == ["job"]


LEAVE = """
job = Client(sys.argv[1], base_url=sys.argv[2]).submit("What is a lambda?", model="high", limit=2)
print(json.dumps(job.id))
"""


def test_a_job_of_a_process_that_has_ended_is_picked_up(server: EmulatorServer) -> None:
    id = run_in_another_process(LEAVE, KEY, server.url)
    client = client_for(server)
    assert client.jobs()["id"] == [id]
    job = client.jobs()[id]
    assert (job.question, job.model) == (QUESTION, "high")
    answer = job.wait()
    assert (answer.status, len(answer.sources)) == ("completed", 2)
    assert client.last is answer
    assert client.usage()["kind"] == ["job"]


def test_a_job_of_another_address_is_not_looked_at_and_the_key_stays(
    server: EmulatorServer,
) -> None:
    client_for(server).submit(QUESTION)
    asked = len(server.requests)
    with RawServer([http_response(200, {}, CREATED)]) as other:
        (job,) = client_for(other).jobs()
        for look in (job.refresh, job.wait, job.cancel, lambda: list(job.stream())):
            with pytest.raises(errors.ConfigurationError) as raised:
                look()
            assert raised.value.field == "base_url" and server.url in raised.value.message
            assert KEY not in shown(raised.value)
        assert other.requests == []
    assert len(server.requests) == asked
    assert client_for(server).jobs()[0].refresh().id == job.id, "it was not harmed"


def test_who_can_write_the_list_of_jobs_does_not_get_the_key(server: EmulatorServer) -> None:
    client = client_for(server)
    client.submit(QUESTION)
    with RawServer([http_response(200, {}, CREATED)]) as thief:
        with sqlite3.connect(state_dir() / "jobs.db") as database:
            assert database.execute("UPDATE jobs SET base_url = ?", [thief.url]).rowcount == 1
        database.close()
        (job,) = client.jobs()
        with pytest.raises(errors.ConfigurationError, match="another address"):
            job.refresh()
        assert thief.requests == []


def test_a_job_keeps_its_backend_whatever_the_client_asks_now(
    server: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = client_for(server).submit(QUESTION)
    monkeypatch.setenv("IPYPERPLEXITY_BACKEND", "chat")
    assert client_for(server, backend="chat").jobs()[job.id].wait().backend == "agent"
    assert client_for(server).jobs()[job.id].answer.status == "completed"


def test_a_job_needs_its_key_like_a_question(server: EmulatorServer) -> None:
    client_for(server).submit(QUESTION)
    (job,) = Client(base_url=server.url).jobs()
    with pytest.raises(errors.MissingCredentialError):
        job.refresh()


def test_a_demo_job_whose_engine_has_ended_says_so_and_starts_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(demo_engine, "shared", demo_engine.DemoEngine())
    job = Client(backend="demo").submit(QUESTION)
    assert job.refresh().id == job.id
    server = demo_engine.shared._server
    assert server is not None
    server.stop()
    monkeypatch.setattr(demo_engine, "shared", demo_engine.DemoEngine())  # as after a restart
    (later,) = Client(backend="demo").jobs()
    if not later.done:
        with pytest.raises(errors.ConfigurationError, match="demo engine that has ended"):
            later.refresh()
    assert demo_engine.shared.url is None


def test_a_demo_job_lives_in_its_process_only() -> None:
    assert run_in_another_process(
        'job = Client(backend="demo").submit("What is a lambda?"); print(json.dumps(job.id))'
    )
    (job,) = Client(backend="demo").jobs()
    with pytest.raises(errors.ConfigurationError, match="demo engine that has ended"):
        job.wait()


@pytest.mark.parametrize("backend", ["chat", "web"])
@pytest.mark.usefixtures("web_login")
def test_a_backend_without_background_runs_says_which_have_them(
    backend: str, server: EmulatorServer
) -> None:
    with pytest.raises(errors.ConfigurationError, match="allowed: agent, demo") as raised:
        client_for(server, backend=backend).submit(QUESTION)
    assert raised.value.field == "backend"
    assert server.requests == []


def test_what_cannot_be_left_to_a_service_is_refused_before_it_is_sent(
    server: EmulatorServer,
) -> None:
    client = client_for(server, budget=1.0)
    for options in ({"tools": [len]}, {"extra": {"store": False}}, {"recency": "dayy"}):
        with pytest.raises(errors.InvalidRequestError):
            client.submit(QUESTION, model="high", **options)
    assert server.requests == [] and spending.spent() == 0.0
    assert client.submit(QUESTION, model="high").id, "nothing is set aside for what was refused"


def test_neither_a_record_nor_a_failure_of_a_job_tells_the_key() -> None:
    repeated = http_response(200, {}, {"error": {"message": f"no such key: {KEY}", "code": KEY}})

    def script(request: RawRequest, connection: RawConnection) -> None:
        created = {**CREATED, "id": f"resp_{len(server.requests)}"}
        connection.send(http_response(200, {}, created) if request.method == "POST" else repeated)

    with RawServer(script) as server, client_for(server) as client:
        client.submit(f"Whose is {KEY}?")
        job = client.submit("Why?")
        with pytest.raises(errors.PerplexityError, match=r"no such key: \*\*\*") as raised:
            job.refresh()
        assert KEY not in shown(raised.value)
        told: list[str] = []
        with pytest.raises(errors.PerplexityError) as raised:
            job.wait(timeout=0.1, on_progress=lambda progress: told.append(repr(progress)))
        assert KEY not in shown(raised.value) + repr(told) + repr(client.jobs())
        assert any("no such key" in line for line in told)
        assert client.jobs()["question"] == ["Why?", "Whose is ***?"]
    for path in state_dir().iterdir():
        assert KEY.encode() not in path.read_bytes(), path


# --- models -----------------------------------------------------------------------------------------


def test_the_models_of_the_agent_api_come_with_prices_and_what_each_cost_last(
    server: EmulatorServer,
) -> None:
    client = client_for(server)
    with RawServer(GOOD) as service:
        cost = client_for(service).ask(QUESTION, model="low").usage.cost_usd
    client.ask(QUESTION, model="fast")  # by the engine, whose prices are nobody's
    models = client.models()
    request = server.requests[-1]
    assert (request.method, request.path, request.authorized) == ("GET", "/v1/models", True)
    assert models["name"][:3] == ["fast", "low", "medium"]
    low, sol = models.get("low"), models.get("openai/gpt-6-sol")
    assert low is not None and sol is not None
    assert (low.kind, sol.kind, sol.output_usd_per_1m) == ("preset", "model", 10.0)
    frame = models.to_pandas().set_index("name")
    assert frame["last_cost_usd"]["low"] == cost
    assert frame["last_cost_usd"].drop("low").isna().all()


@pytest.mark.parametrize("tail", ["", "/v1", "/api/v1"])
@pytest.mark.parametrize("key", [KEY, None])
def test_the_models_of_a_gateway_are_its_own_without_presets(tail: str, key: str | None) -> None:
    listed = {"object": "list", "data": [{"id": "llama4:8b", "owned_by": "library"}]}
    with RawServer([http_response(200, {}, listed)]) as server:
        models = client_for(
            server, backend="chat", api_key=key, base_url=server.url + tail
        ).models()
    (request,) = server.requests
    assert request.path == tail.removesuffix("/v1") + "/v1/models"
    assert request.headers["Authorization"] == (f"Bearer {KEY}" if key else None)
    assert models["name"] == ["llama4:8b"]


def test_the_models_of_the_site_are_those_that_are_known_and_nobody_is_asked() -> None:
    with Offline() as session:
        models = Client(backend="web", session=session).models()
        assert session.sent == []
    assert models["name"] == list(WEB_MODELS)
    assert (models["name"][0], models["label"][0]) == ("pplx_pro_upgraded", "Pro (auto)")


@pytest.mark.parametrize("status", [200, 401, 500])
def test_a_list_of_models_that_does_not_come_is_an_error_without_the_key(status: int) -> None:
    body = {"error": {"message": f"no such key: {KEY}"}}
    with (
        RawServer([http_response(status, {"x-request-id": KEY}, body)]) as server,
        pytest.raises(errors.PerplexityError, match=r"no such key: \*\*\*") as raised,
    ):
        client_for(server).models()
    assert KEY not in shown(raised.value)


def test_a_list_of_models_from_some_other_server_is_an_error() -> None:
    with (
        RawServer([http_response(200, {}, {"hello": "world"})]) as server,
        pytest.raises(errors.StreamError, match="no list of models"),
    ):
        client_for(server).models()


# --- usage ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("web_login")
def test_the_usage_has_a_row_for_each_question_of_each_backend(server: EmulatorServer) -> None:
    client = client_for(server)
    first = client.ask(QUESTION, model="low")
    client_for(server, backend="chat").ask(QUESTION, model="sonar")
    client_for(server, backend="web").ask(QUESTION, model="gpt54")
    with pytest.raises(errors.AuthenticationError):
        client_for(server, api_key="pplx-another").ask(QUESTION)
    table = client.usage()
    assert table["backend"] == ["agent", "chat", "web", "agent"]
    assert table["asked_model"] == ["low", "sonar", "gpt54", "low"]
    assert table["status"] == ["completed"] * 3 + ["failed"]
    assert table["total_tokens"][0] == first.usage.total_tokens
    assert table["cost_usd"][0] == first.usage.cost_usd and table["cost_usd"][2] is None
    assert set(table["question"]) == {QUESTION}
    assert len(table.to_pandas()) == 4


def test_other_processes_count_when_everything_is_asked_for(server: EmulatorServer) -> None:
    client = client_for(server)
    client.ask(QUESTION)
    ask = 'Client(sys.argv[1], base_url=sys.argv[2]).ask("Elsewhere?"); print(0)'
    run_in_another_process(ask, KEY, server.url)
    assert client.usage()["question"] == [QUESTION]
    assert client.usage(everything=True)["question"] == [QUESTION, "Elsewhere?"]


# --- the budget -------------------------------------------------------------------------------------


def test_a_question_that_would_pass_the_budget_is_not_sent(server: EmulatorServer) -> None:
    client = client_for(server, budget=0.5)
    client.ask(QUESTION, model="low")
    with pytest.raises(errors.BudgetError) as raised:
        client.ask(QUESTION, model="high")
    assert len(server.requests) == 1
    assert raised.value.code == "BUDGET" and "Client(budget=" in (raised.value.hint or "")
    with pytest.raises(errors.BudgetError):
        client.submit(QUESTION, model="high")
    assert len(server.requests) == 1
    assert client.ask(QUESTION, model="low").status == "completed"


def test_ten_threads_at_once_cannot_pass_it() -> None:
    decided, refused = threading.Event(), threading.Semaphore(0)
    outcomes: list[str] = []

    def script(request: RawRequest, connection: RawConnection) -> None:
        assert decided.wait(20)  # nothing is known of any cost before all have decided
        for step in GOOD:
            connection.play(step)

    with RawServer(script) as server:
        clients = [client_for(server, budget=0.014) for _ in range(10)]  # three and a half
        begin = threading.Barrier(10)

        def ask(client: Client) -> None:
            begin.wait(20)
            try:
                client.ask("Why?", model="low")
                outcomes.append("asked")
            except errors.BudgetError:
                outcomes.append("refused")
                refused.release()

        with ThreadPoolExecutor(10) as pool:
            futures = [pool.submit(ask, client) for client in clients]
            for _ in range(7):
                assert refused.acquire(timeout=20)
            assert server.wait_for_requests(3)
            decided.set()
            for future in futures:
                future.result(20)
        assert len(server.requests) == 3
    assert sorted(outcomes) == ["asked"] * 3 + ["refused"] * 7
    assert spending.spent() == pytest.approx(3 * 0.00125)


def test_the_budget_of_the_file_counts_and_an_argument_comes_before_it() -> None:
    save_setting("budget", 0.0)
    with RawServer(GOOD) as server:
        with pytest.raises(errors.BudgetError):
            client_for(server).ask("Why?")
        assert server.requests == []
        assert client_for(server, budget=1.0).ask("Why?").text == "It is so."
        save_setting("budget", 1.0)  # counts from the next question on
        assert client_for(server).ask("Why?").text == "It is so."
        with pytest.raises(errors.BudgetError):
            client_for(server, budget=0.0).ask("Why?")


def test_a_damaged_budget_lets_nothing_be_spent() -> None:
    settings_path().parent.mkdir(parents=True)
    settings_path().write_text('{"budget": "ten"}')
    with RawServer(GOOD) as server:
        with (
            pytest.warns(errors.PerplexityWarning, match="nothing may be spent"),
            pytest.raises(errors.BudgetError),
        ):
            client_for(server).ask("Why?")
        assert server.requests == []


@pytest.mark.usefixtures("web_login")
def test_what_is_not_billed_by_the_question_needs_no_budget(server: EmulatorServer) -> None:
    save_setting("budget", 0.0)
    assert Client(backend="demo").ask(QUESTION).status == "completed"
    assert Client(backend="demo").submit(QUESTION).id
    assert client_for(server, backend="web").ask(QUESTION).status == "completed"
    assert client_for(server, backend="chat").ask(QUESTION).status == "completed"
    assert spending.spent() == pytest.approx(client_for(server).usage()["cost_usd"][-1] or 0.0)


@pytest.mark.parametrize("backend", ["agent", "chat"])
def test_a_gateway_elsewhere_is_billed_and_needs_one(backend: str) -> None:
    with Offline() as session:
        client = Client(KEY, backend, "https://gateway.example/v1", session=session, budget=0.0)
        with pytest.raises(errors.BudgetError):
            client.ask("Why?")
        assert session.sent == []


def test_a_question_that_was_refused_or_given_up_takes_nothing_of_it() -> None:
    with RawServer(in_turn([http_response(401, {}, {})], GOOD)) as server:
        client = client_for(server, budget=0.004)
        with pytest.raises(errors.InvalidRequestError):
            client.stream("Why?", model="low", search=False, tools=[{"type": "web_search"}])
        with pytest.raises(errors.AuthenticationError):
            client.ask("Why?", model="low")
        client.stream("Why?", model="low")  # is never read, and nobody holds it
        gc.collect()
        assert client.ask("Why?", model="low").text == "It is so."


def test_a_model_that_does_not_exist_is_told_before_its_price() -> None:
    with RawServer(GOOD) as server:
        client = client_for(server, budget=0.01)
        for use in (client.stream, client.submit):
            with pytest.raises(errors.InvalidRequestError, match="high"):
                use("Why?", model="hihg")
        assert server.requests == []


def test_a_stream_that_runs_holds_its_part_until_it_ends() -> None:
    with RawServer(GOOD) as server:
        client = client_for(server, budget=0.0055)
        with client.stream("Why?", model="low") as stream:
            next(iter(stream))
            with pytest.raises(errors.BudgetError, match="set aside for running questions"):
                client.ask("Why?", model="low")
            assert stream.answer.usage.cost_usd == 0.00125
        assert client.ask("Why?", model="low").text == "It is so."


SUBMISSIONS: dict[str, tuple[list[Any], type[BaseException], float]] = {
    "refused": ([http_response(401, {}, {})], errors.AuthenticationError, 0.0),
    "no reply": ([HoldOpen()], errors.RequestTimeout, 0.9),
    "behind an edge": ([http_response(502, {}, {})], errors.ServerError, 0.9),
    "no id": ([http_response(200, {}, {"hello": "world"})], errors.StreamError, 0.9),
}


@pytest.mark.parametrize("case", SUBMISSIONS.values(), ids=SUBMISSIONS)
def test_a_submission_that_may_run_counts_and_a_refused_one_does_not(
    case: tuple[list[Any], type[BaseException], float], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, kind, usd = case
    monkeypatch.setattr("ipyperplexity.jobs.submission.CALL_TIMEOUT", 0.3)
    with RawServer(script) as server, pytest.raises(kind):
        client_for(server, budget=1.0).submit("Why?", model="high")
    assert spending.spent() == pytest.approx(usd)


def test_a_running_job_holds_its_part_of_the_budget(server: EmulatorServer) -> None:
    server.behavior = Behavior(queued_polls=2)
    client = client_for(server, budget=1.0)
    job = client.submit(QUESTION, model="high")
    with pytest.raises(errors.BudgetError, match="set aside"):
        client.submit(QUESTION, model="high")
    assert eventually(lambda: job.refresh().done)
    assert client.submit(QUESTION, model="high").id != job.id


# --- the defaults of the file -----------------------------------------------------------------------

#: Setting -> values of the file, the variable and the argument; and how each is seen.
VARIABLES = {"model": "IPYPERPLEXITY_MODEL", "base_url": "PERPLEXITY_BASE_URL", "backend": "IPYPERPLEXITY_BACKEND"}  # fmt: skip
LEVELS = {
    "model": ("fast", "medium", "xhigh"),
    "base_url": ("https://file.example", "https://variable.example", "https://argument.example"),
    "backend": ("chat", "demo", "web"),
}


@pytest.mark.parametrize("name", LEVELS)
def test_argument_then_variable_then_file_then_default(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_file, of_variable, of_argument = LEVELS[name]

    def seen(**arguments: Any) -> str:
        found = getattr(Client(KEY, **arguments).status(), name)
        assert isinstance(found, str)
        return found

    default = {"model": "low", "base_url": "https://api.perplexity.ai", "backend": "agent"}[name]
    assert seen() == default
    save_setting(name, of_file)
    assert seen() == of_file
    monkeypatch.setenv(VARIABLES[name], of_variable)
    assert seen() == of_variable
    assert seen(**{name: of_argument}) == of_argument
    monkeypatch.setenv(VARIABLES[name], "")
    assert seen() == of_file
    save_setting(name, None)
    assert seen() == default


def test_the_same_order_decides_what_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer(GOOD) as server:
        save_setting("model", "fast")
        save_setting("base_url", server.url)
        client = Client(KEY)
        client.ask("Why?")
        client.ask(Question("Why?"))  # names no model: the default counts
        monkeypatch.setenv("IPYPERPLEXITY_MODEL", "medium")
        client.ask("Why?")
        Client(KEY, model="xhigh").ask("Why?")
        Client(KEY, model="xhigh").ask("Why?", model="high")
        Client(KEY).ask(Question("Why?", model="low"))
        sent = [request.json["preset"] for request in server.requests]
    assert sent == ["fast", "fast", "medium", "xhigh", "high", "low"]


def test_each_backend_has_its_own_model_in_the_file(
    server: EmulatorServer, web_login: None
) -> None:
    for name, model in {"model": "medium", "chat_model": "sonar-pro", "web_model": "gpt54"}.items():
        save_setting(name, model)
    for backend in ("agent", "chat", "web"):
        client = client_for(server, backend=backend)
        client.ask(QUESTION)
        assert client.status().model == {"agent": "medium", "chat": "sonar-pro", "web": "gpt54"}[backend]  # fmt: skip
    agent, chat, web = (request.json() for request in server.requests)
    assert (agent["preset"], chat["model"]) == ("medium", "sonar-pro")
    assert web["params"]["model_preference"] == "gpt54"


def test_the_model_of_one_backend_is_not_asked_of_another(
    server: EmulatorServer, web_login: None
) -> None:
    save_setting("model", "medium")  # no name that perplexity.ai or a gateway knows
    for backend in ("chat", "web"):
        client_for(server, backend=backend).ask(QUESTION)
    chat, web = (request.json() for request in server.requests)
    assert chat["model"] == "sonar"
    assert web["params"]["model_preference"] == "pplx_pro_upgraded"
    save_setting("model", None)
    save_setting("web_model", "gpt54")
    client_for(server).ask(QUESTION)
    assert server.requests[-1].json()["preset"] == "low"


def test_a_stored_address_moves_neither_the_demo_nor_the_site(web_login: None) -> None:
    save_setting("base_url", "https://file.example")
    assert Client(backend="demo").ask(QUESTION).status == "completed"
    with Offline() as session:
        for backend in ("web", "agent", "chat"):
            with pytest.raises(errors.NetworkError):
                Client(KEY, backend, session=session, max_retries=0).ask("Why?")
    assert [url.split("/")[2] for url in session.sent] == ["www.perplexity.ai", "file.example", "file.example"]  # fmt: skip


def test_stored_options_hold_for_questions_that_do_not_say_otherwise() -> None:
    for name, value in {
        "recency": "week",
        "system": "Be brief.",
        "limit": 2,
        "stream": "no",
    }.items():
        save_setting(name, value)
    with RawServer(GOOD) as server:
        client = client_for(server)
        first = client.question("Why?")
        assert (first.recency, first.system, first.limit) == ("week", "Be brief.", 2)
        other = client.question("Why?", system="Be long.", limit=None)
        assert (other.recency, other.system, other.limit) == ("week", "Be long.", 2)
        dated = client.question("Why?", after="2026-01-01")
        assert (dated.recency, str(dated.after)) == (None, "2026-01-01")
        client.ask("Why?")
        client.ask(Question("Why?", system="Mine."))  # is taken as it is
    systems = [request.json["input"][0]["content"] for request in server.requests]
    assert systems == ["Be brief.", "Mine."]
    assert all(request.json["stream"] for request in server.requests), "that is the notebook's"


def test_stored_retries_count_unless_the_client_has_its_own() -> None:
    save_setting("max_retries", 1)
    busy = [http_response(503, {"retry-after-ms": "1"}, {})]
    for options, tries in (({}, 2), ({"max_retries": 0}, 1), ({"max_retries": 2}, 3)):
        with RawServer(busy) as server:
            with pytest.raises(errors.ServerError):
                Client(KEY, base_url=server.url, **options).ask("Why?")
            assert len(server.requests) == tries


@pytest.mark.parametrize(
    ("record", "field"),
    [({"backend": "agnet"}, "backend"), ({"base_url": "gateway.example"}, "base_url")],
)
def test_a_wrong_backend_or_address_in_the_file_asks_nobody(
    record: dict[str, str], field: str
) -> None:
    settings_path().parent.mkdir(parents=True)
    settings_path().write_text(json.dumps(record))
    with Offline() as session, warnings.catch_warnings():
        warnings.simplefilter("ignore", errors.PerplexityWarning)
        client = Client(KEY, session=session)
        for use in (client.ask, client.search, client.submit):
            with pytest.raises(errors.ConfigurationError) as raised:
                use("Why?")
            assert raised.value.field == field
        status = client.status()
        assert status.state == "misconfigured" and record[field] in status.problem
        if field == "backend":
            assert str(settings_path()) in status.problem
        assert session.sent == []


def test_a_damaged_file_is_a_warning_and_the_question_is_asked() -> None:
    settings_path().parent.mkdir(parents=True)
    settings_path().write_text("{'model':")
    with RawServer(GOOD) as server:
        with pytest.warns(errors.PerplexityWarning):
            assert client_for(server).ask("Why?").text == "It is so."
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            client_for(server).ask("Why?")


# --- what is told of it all ---------------------------------------------------------------------------


@pytest.mark.usefixtures("web_login")
def test_the_status_names_where_each_credential_comes_from() -> None:
    agent = Client(KEY).status()
    assert agent.key == "set, from the api_key argument"
    assert dict(agent.others) == {"web login": "PERPLEXITY_SESSION_TOKEN"}
    web = Client(KEY, "web").status()
    assert web.key == "set, from PERPLEXITY_SESSION_TOKEN"
    assert web.base_url == "https://www.perplexity.ai"
    assert KEY not in repr((agent, web)) and TOKEN not in repr((agent, web))


def test_a_client_arrives_elsewhere_with_its_budget_and_without_its_key() -> None:
    dumped = pickle.dumps(Client(KEY, budget=0.0))
    assert KEY.encode() not in dumped
    with RawServer(GOOD) as server, pytest.MonkeyPatch.context() as patched:
        patched.setenv("PERPLEXITY_API_KEY", KEY)
        patched.setenv("PERPLEXITY_BASE_URL", server.url)
        with pytest.raises(errors.BudgetError):
            pickle.loads(dumped).ask("Why?")
        assert server.requests == []


def test_the_backend_of_the_next_question_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client(KEY)
    assert client.backend == "agent"
    save_setting("backend", "demo")
    assert client.backend == "demo"
    monkeypatch.setenv("IPYPERPLEXITY_BACKEND", "chat")
    assert client.backend == "chat"
    monkeypatch.setenv("IPYPERPLEXITY_BACKEND", "nope")
    with pytest.raises(errors.ConfigurationError, match="IPYPERPLEXITY_BACKEND"):
        client.backend  # noqa: B018


def test_files_of_a_client_are_private(server: EmulatorServer) -> None:
    client = client_for(server)
    client.submit(QUESTION).wait()
    client.ask(QUESTION)
    save_setting("model", "low")
    files = [path for path in Path(state_dir()).parent.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"jobs.db", "ledger.db", "config.json"}
    assert {path.stat().st_mode & 0o077 for path in files} == {0}
