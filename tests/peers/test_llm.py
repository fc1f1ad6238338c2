"""llm with its plugin llm-perplexity, as a library and on the command line.

The plugin has no option for the address: it stands in an attribute of its class, which is changed
here. Whatever ``llm`` keeps goes to the folder that ``LLM_USER_PATH`` names.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ipyperplexity import Answer, Client
from ipyperplexity.emulator import Behavior, EmulatorServer

from .conftest import KEY, OTHER_QUESTION, QUESTION

llm = pytest.importorskip("llm", reason="the peer llm is not installed")
plugin = pytest.importorskip("llm_perplexity", reason="the peer llm-perplexity is not installed")
click_testing = pytest.importorskip("click.testing")
NO_RETRY = {"x-should-retry": "false"}
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(autouse=True)
def _settings(engine: EmulatorServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(plugin.Perplexity, "base_url", f"{engine.url}/v1")
    monkeypatch.setenv("LLM_PERPLEXITY_KEY", KEY)
    monkeypatch.setenv("LLM_USER_PATH", str(tmp_path))


@pytest.fixture
def model() -> Any:
    return llm.get_model("sonar-pro")


def run(*arguments: str) -> Any:
    from llm.cli import cli

    return click_testing.CliRunner().invoke(cli, list(arguments))


def cited(text: str) -> list[str]:
    """Return the addresses in the list of sources that the plugin puts under an answer."""
    _, _, below = text.partition(plugin.CITATIONS_HEADING)
    return [line.rpartition(" - ")[2] for line in below.splitlines()]


@pytest.mark.parametrize("stream", [True, False])
def test_an_answer_has_its_text_its_sources_and_its_usage(
    model: Any, answer: Answer, stream: bool
) -> None:
    response = model.prompt(QUESTION, stream=stream)
    text = response.text()
    assert plugin.strip_citations(text) == answer.text
    assert set(cited(text)) == set(answer.sources["url"])
    usage = response.usage()
    assert (usage.input, usage.output) == (answer.usage.input_tokens, answer.usage.output_tokens)
    assert usage.details["cost"]["total_cost"] == answer.usage.cost_usd
    assert response.response_json["status"] == "completed"


def test_each_model_is_the_preset_that_took_its_place(engine: EmulatorServer) -> None:
    for name in ("sonar", "sonar-pro", "sonar-reasoning-pro", "sonar-deep-research"):
        assert llm.get_model(name).prompt(QUESTION).text()
        asked = json.loads(engine.requests[-1].body)
        assert asked["preset"] == plugin.PRESETS[name]
        assert engine.requests[-1].headers["x-pplx-integration"].startswith("llm-perplexity/")


def test_an_answer_comes_in_pieces(model: Any) -> None:
    assert len(list(model.prompt(QUESTION))) > 10


def test_a_conversation_goes_on(model: Any, ours: Client) -> None:
    talk = model.conversation()
    first = talk.prompt(QUESTION, system="Be brief.", include_citations=False).text()
    then = talk.prompt("And a context manager?", include_citations=False).text()
    begun = ours.ask(QUESTION, model="low")
    assert first == begun.text
    assert then == begun.follow_up("And a context manager?").text


def test_all_its_options_are_taken(model: Any, tmp_path: Path) -> None:
    picture = tmp_path / "seen.png"
    picture.write_bytes(PNG)
    response = model.prompt(
        QUESTION,
        max_tokens=4000,
        temperature=0.2,
        search_domain_filter="docs.python.org, -example.org",
        search_context_size="high",
        reasoning_effort="low",
        image_path=str(picture),
    )
    assert "cannot see pictures" in response.text()
    assert all(url.startswith("https://docs.python.org/") for url in cited(response.text()))
    none = model.prompt(QUESTION, search_domain_filter="example.org", search_recency_filter="year")
    assert cited(none.text()) == []


def test_an_answer_that_was_cut_is_kept(model: Any) -> None:
    response = model.prompt(QUESTION, max_tokens=16, include_citations=False)
    assert response.text()
    assert response.response_json["status"] == "incomplete"


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize(
    ("status", "says"),
    [(400, "not valid"), (401, "Invalid API key"), (404, "not found"), (429, "rate limit"), (500, "")],
)  # fmt: skip
def test_a_refusal_is_a_model_error(
    model: Any, engine: EmulatorServer, status: int, says: str, stream: bool
) -> None:
    engine.next(Behavior(status=status, headers=NO_RETRY))
    with pytest.raises(llm.ModelError, match=f"{status} - .*{says}"):
        model.prompt(QUESTION, stream=stream).text()


def test_a_wrong_key_is_refused(model: Any) -> None:
    with pytest.raises(llm.ModelError, match="Invalid API key"):
        model.prompt(QUESTION, key="pplx-wrong").text()


@pytest.mark.parametrize("terminal", ["failed-event", "failed-response", "failed-both", "error"])
def test_a_run_that_fails_is_a_model_error(
    model: Any, engine: EmulatorServer, terminal: str
) -> None:
    engine.next(Behavior(terminal=terminal))
    with pytest.raises(llm.ModelError, match="the run failed"):
        model.prompt(QUESTION).text()


def test_a_stream_without_its_end_is_a_model_error(model: Any, engine: EmulatorServer) -> None:
    engine.next(Behavior(terminal="none"))
    with pytest.raises(llm.ModelError, match="without a final response"):
        model.prompt(QUESTION).text()


def test_the_command_answers_and_keeps_a_log(answer: Answer, tmp_path: Path) -> None:
    asked = run("-m", "sonar-pro", QUESTION)
    assert asked.exit_code == 0, asked.output
    assert asked.output.startswith(answer.text)
    (entry,) = json.loads(run("logs", "--json").output)
    assert (entry["model"], entry["prompt"]) == ("sonar-pro", QUESTION)
    assert entry["input_tokens"] == answer.usage.input_tokens
    assert (tmp_path / "logs.db").exists()
    went_on = run("-c", OTHER_QUESTION, "--no-stream")
    assert went_on.exit_code == 0 and "Lambda expressions" in went_on.output


def test_the_command_tells_a_refusal_in_a_line(
    engine: EmulatorServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LLM_PERPLEXITY_KEY", "pplx-wrong")
    asked = run("-m", "sonar-pro", QUESTION)
    assert asked.exit_code == 1
    assert "Error: Perplexity API error: Error code: 401" in asked.output
