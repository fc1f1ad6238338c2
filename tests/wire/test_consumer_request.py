"""A question to perplexity.ai is sent as its own site would take it, or refused with a reason."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity import Answer, errors
from ipyperplexity.answer_parts import Turn
from ipyperplexity.events import Started
from ipyperplexity.question import Question
from ipyperplexity.wire import consumer_constants as constants
from ipyperplexity.wire.base import WireRequest
from ipyperplexity.wire.consumer import WIRE, cancel, local_timezone, locale, request


def made(text: str = "Why?", *, resume: bool = True, **options: Any) -> WireRequest:
    return request(Question.make(text, **options), resume=resume)


def params(**options: Any) -> dict[str, Any]:
    body = made(**options).body
    assert body is not None
    return dict(body["params"])


def refused(**options: Any) -> errors.InvalidRequestError:
    with pytest.raises(errors.InvalidRequestError) as caught:
        made(**options)
    return caught.value


# --- body and headers ---------------------------------------------------------------------------


def test_the_body_has_exactly_the_fifteen_fields_of_pi_perplexity() -> None:
    sent = made("Why is the sky blue?", recency="week", model="glm_5_2")
    assert sent.method == "POST" and sent.path == "/rest/sse/perplexity_ask"
    assert sent.body is not None and set(sent.body) == {"query_str", "params"}
    fields = dict(sent.body["params"])
    assert sent.body["query_str"] == fields.pop("query_str") == "Why is the sky blue?"
    assert uuid.UUID(fields.pop("frontend_uuid")) != uuid.UUID(fields.pop("frontend_context_uuid"))
    assert isinstance(fields.pop("timezone"), str)
    assert fields == {
        "search_focus": "internet",
        "mode": "copilot",
        "model_preference": "glm_5_2",
        "sources": ["web"],
        "attachments": [],
        "version": "2.18",
        "language": "en-US",
        "search_recency_filter": "week",
        "is_incognito": True,
        "use_schematized_api": True,
        "skip_search_enabled": True,
    }
    assert sent.notices == () and not sent.continues and sent.model == "glm_5_2"


def test_the_headers_are_the_protocols_and_imitate_no_browser() -> None:
    sent = made()
    assert sent.body is not None
    assert sent.headers == {
        "Accept": "text/event-stream",
        "Origin": "https://www.perplexity.ai",
        "Referer": "https://www.perplexity.ai/",
        "X-App-ApiClient": "default",
        "X-App-ApiVersion": "2.18",
        "X-Perplexity-Request-Reason": "submit",
        "X-Request-ID": sent.body["params"]["frontend_uuid"],
    }
    assert sent.headers["X-App-ApiVersion"] == sent.body["params"]["version"]


def test_every_request_has_ids_of_its_own() -> None:
    ids = [params()[name] for name in ("frontend_uuid", "frontend_context_uuid") for _ in range(20)]
    assert len(set(ids)) == 40


def test_requests_share_nothing_that_can_be_changed() -> None:
    first = params()
    first["sources"].append("scholar")
    first["attachments"].append("x")
    assert params()["sources"] == ["web"] and params()["attachments"] == []


def test_incognito_is_the_default_and_can_be_given_up_on_purpose() -> None:
    assert params()["is_incognito"] is True
    assert params(extra={"is_incognito": False})["is_incognito"] is False


def test_extra_fields_win_and_what_is_derived_from_them_follows() -> None:
    sent = made(extra={"frontend_uuid": "f", "query_str": "Q", "model_preference": "gpt54"})
    assert sent.body is not None
    assert sent.headers["X-Request-ID"] == "f" and sent.body["query_str"] == "Q"
    assert sent.model == "gpt54"


def test_without_recency_the_filter_is_null() -> None:
    assert params()["search_recency_filter"] is None


@pytest.mark.parametrize("recency", ["hour", "day", "week", "month", "year"])
def test_recency_is_sent_in_lower_case(recency: str) -> None:
    assert params(recency=recency.upper())["search_recency_filter"] == recency


def test_domains_and_dates_are_sent_with_a_notice_that_they_may_be_ignored() -> None:
    sent = made(domains="docs.rs,-reddit.com", after="2026-03-09", before="2026-12-01")
    assert sent.body is not None
    fields = sent.body["params"]
    assert fields["search_domain_filter"] == ["docs.rs", "-reddit.com"]
    assert fields["search_after_date_filter"] == "3/9/2026"
    assert fields["search_before_date_filter"] == "12/1/2026"
    assert fields["search_recency_filter"] is None
    assert len(sent.notices) == 1 and "ignore" in sent.notices[0]


def test_search_off_is_the_writing_focus() -> None:
    assert params(search=False)["search_focus"] == "writing"


def test_a_forced_search_cannot_be_skipped() -> None:
    fields = params(search="force")
    assert fields["search_focus"] == "internet" and fields["skip_search_enabled"] is False
    assert fields["always_search_override"] is True


def test_limit_and_timeout_are_kept_here() -> None:
    assert params(limit=3, timeout=20).keys() == params().keys()


def test_streaming_or_not_the_body_is_the_same() -> None:
    question = Question("Why?")
    assert request(question, stream=False).body.keys() == request(question).body.keys()  # type: ignore[union-attr]


@settings(max_examples=50, deadline=None)
@given(st.text(min_size=1).filter(str.strip))
def test_any_question_can_be_sent(text: str) -> None:
    sent = request(Question(text))
    assert sent.body is not None
    json.dumps(sent.body).encode()
    assert sent.body["query_str"] == Question(text).text


# --- language and time zone -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("language", "sent"),
    [
        (None, "en-US"),
        ("en", "en-US"),
        ("nl", "nl-NL"),
        ("ja", "ja-JP"),
        ("pt", "pt"),
        ("zh", "zh"),
    ],
)
def test_a_language_gets_its_region_only_where_that_is_beyond_doubt(
    language: str | None, sent: str
) -> None:
    assert locale(language) == sent == params(language=language)["language"]


@pytest.mark.parametrize(
    ("variable", "zone"),
    [
        ("Europe/Brussels", "Europe/Brussels"),
        (":America/Argentina/Ushuaia", "America/Argentina/Ushuaia"),
        ("Etc/GMT+5", "Etc/GMT+5"),
        ("CET-1CEST", "UTC"),
        ("UTC", "UTC"),
        ("/etc/passwd", "UTC"),
        ("Europe/../secret", "UTC"),
    ],
)
def test_the_variable_tz_names_the_zone(variable: str, zone: str, tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    link.symlink_to("/usr/share/zoneinfo/Asia/Tokyo")
    assert local_timezone(variable, link) == zone


def test_without_tz_the_link_of_the_system_names_it(tmp_path: Path) -> None:
    link = tmp_path / "localtime"
    assert local_timezone("", link) == "UTC"
    link.write_bytes(b"TZif2")
    assert local_timezone("", link) == "UTC"
    link.unlink()
    link.symlink_to("../usr/share/zoneinfo/Asia/Tokyo")
    assert local_timezone("", link) == "Asia/Tokyo"


def test_the_environment_is_read_when_nothing_is_handed_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Pacific/Auckland")
    assert params()["timezone"] == "Pacific/Auckland"


# --- models ---------------------------------------------------------------------------------------


def test_the_default_model_is_pro() -> None:
    assert made().model == params()["model_preference"] == "pplx_pro_upgraded"
    assert constants.DEFAULT_MODEL in constants.MODELS


@pytest.mark.parametrize("slug", ["turbo", "gpt56_sol", "some-model.of_2031", "GLM_5_2"])
def test_any_slug_goes_through_unchanged(slug: str) -> None:
    assert params(model=slug)["model_preference"] == slug


@pytest.mark.parametrize(
    "name",
    ["fast", "low", "medium", "high", "xhigh", "wide-research", "deep-research", "sonar-pro"],
)
def test_a_preset_of_the_agent_api_is_refused_and_models_are_named(name: str) -> None:
    error = refused(model=name)
    assert error.field == "model"
    for word in (repr(name), "pplx_pro_upgraded", "pplx_alpha (Deep Research)"):
        assert word in error.message
    assert error.hint is not None and "backend='agent'" in error.hint


def test_a_provider_name_goes_through_with_a_notice() -> None:
    sent = made(model="openai/gpt-6-luna")
    assert sent.model == "openai/gpt-6-luna" and "Agent API" in sent.notices[0]


def test_deep_research_has_ten_minutes_and_other_models_ninety_seconds() -> None:
    assert WIRE.time_limit(made()) == 90.0
    assert WIRE.time_limit(made(model="pplx_alpha")) == 600.0
    assert WIRE.time_limit(made(extra={"model_preference": "pplx_alpha"})) == 600.0


def test_model_council_needs_three_models() -> None:
    assert "three models" in refused(model="pplx_agentic_research").message
    for wrong in (["a", "b"], "abc", None):
        refused(model="pplx_agentic_research", extra={"compare_model_preferences": wrong})
    three = ["gpt54", "claude50sonnet", "gemini30pro"]
    sent = params(model="pplx_agentic_research", extra={"compare_model_preferences": three})
    assert sent["compare_model_preferences"] == three


# --- what it cannot do ----------------------------------------------------------------------------

PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("system", "Be brief."),
        ("images", PIXEL),
        ("tools", "fetch_url"),
        ("schema", {"type": "object", "properties": {"a": {"type": "string"}}}),
        ("max_tokens", 5),
        ("max_steps", 5),
        ("temperature", 0),
        ("reasoning", "high"),
        ("context", "low"),
        ("country", "BE"),
    ],
)
def test_an_option_without_a_place_is_refused_and_never_dropped(name: str, value: Any) -> None:
    error = refused(**{name: value})
    assert error.field == name and error.message.startswith(f"{name}: ")
    assert error.hint is not None and "backend='agent'" in error.hint


# --- follow-ups -----------------------------------------------------------------------------------

THREAD = {"last_backend_uuid": "b-1", "read_write_token": "t-1", "thread_url_slug": "why"}


def earlier(thread: dict[str, str] | None = None, **fields: Any) -> Answer:
    return Answer("Who?", "Ann.", thread=thread or {}, backend="web", **fields)


def test_a_follow_up_goes_on_in_its_thread() -> None:
    sent = made("And then?", follow=earlier(THREAD))
    assert sent.body is not None and sent.continues and sent.notices == ()
    fields = sent.body["params"]
    assert sent.body["query_str"] == fields["query_str"] == "And then?"
    assert fields["last_backend_uuid"] == "b-1" and fields["read_write_token"] == "t-1"
    assert fields["query_source"] == "followup" and fields["followup_source"] == "link"
    assert "frontend_context_uuid" not in fields and "thread_url_slug" not in fields
    assert uuid.UUID(fields["frontend_uuid"])


@pytest.mark.parametrize("thread", [{}, {"last_backend_uuid": "b"}, {"read_write_token": "t"}])
def test_without_a_whole_thread_the_conversation_is_sent_as_text(thread: dict[str, str]) -> None:
    turns = (Turn("What?", "A thing."), Turn("Where?", ""))
    sent = made("And then?", follow=earlier(thread, turns=turns))
    assert sent.body is not None and not sent.continues and len(sent.notices) == 1
    assert (
        sent.body["query_str"]
        == sent.body["params"]["query_str"]
        == ("Q: What?\nA: A thing.\n\nQ: Where?\n\nQ: Who?\nA: Ann.\n\nQ: And then?")
    )
    assert "read_write_token" not in sent.body["params"]
    assert "frontend_context_uuid" in sent.body["params"]


def test_a_thread_that_the_service_forgot_is_not_named_again() -> None:
    sent = made("And then?", resume=False, follow=earlier(THREAD))
    assert sent.body is not None and not sent.continues
    assert "last_backend_uuid" not in sent.body["params"]
    assert sent.body["query_str"].startswith("Q: Who?\nA: Ann.")


# --- stopping -------------------------------------------------------------------------------------


def test_stopping_names_the_entry_and_the_model() -> None:
    sent = cancel(Started("0b3c-1", "gpt54"), 5)
    assert sent is not None and sent.path == "/rest/sse/perplexity_terminate"
    told = {"entry_uuid": "0b3c-1", "model_preference": "gpt54", "terminate_requested_at_ms": 5}
    assert sent.body == told
    whole = cancel(Started("0b3c-1", "gpt54", "c"), 5)
    assert whole is not None and whole.body == {**told, "context_uuid": "c"}


@pytest.mark.parametrize("id", [None, "", "a b", "x" * 300])
def test_without_a_proper_id_there_is_nothing_to_stop(id: str | None) -> None:
    assert cancel(Started(id, "gpt54"), 5) is None
