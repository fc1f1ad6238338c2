"""What the web endpoint will say: the answer, its sources, its ids, before any framing.

Invariant: markers in the answer are 1-based into ``sources``; a ``WebRun`` never changes.
"""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from typing import Any

from .behavior import Behavior
from .engine import Engine, Filters, Plan, Result
from .honest import nothing_allowed
from .related import related_questions
from .web_state import Entry

__all__ = ["ANONYMOUS_MODEL", "RESEARCH_MODEL", "WebRun", "plan_web"]

Json = dict[str, Any]
RESEARCH_MODEL = "pplx_alpha"
ANONYMOUS_MODEL = "turbo"
_DAY = 24 * 3600
_QUESTIONS = ["Which version do you mean?", "How deep should the report go?"]


@dataclass(frozen=True)
class WebRun:
    """An answer of the web endpoint, ready to be sent.

    Attributes
    ----------
    params
        The fields that were given.
    entry
        Its place in a thread.
    model
        The model that answers.
    text
        The answer; of deep research, the report.
    pieces
        What is streamed: the answer in chunks, or the cover note of a report.
    """

    params: Json
    entry: Entry
    behavior: Behavior
    plan: Plan
    model: str
    text: str
    pieces: tuple[str, ...]

    @property
    def is_research(self) -> bool:
        """Whether it is deep research."""
        return self.model == RESEARCH_MODEL

    @property
    def asks_back(self) -> bool:
        """Whether questions take the place of an answer."""
        return self.is_research and self.behavior.web_research == "clarify"

    @property
    def answer(self) -> str:
        """The authoritative answer: of a report, its cover note."""
        return "".join(self.pieces) if self.is_research else self.text

    @property
    def searches(self) -> list[list[Json]]:
        """Sources of each search, as the wire shows them."""
        return [[_source(result) for result in search.results] for search in self.plan.searches]

    @property
    def sources(self) -> list[Json]:
        """All sources, in the order that markers count."""
        return [source for found in self.searches for source in found]

    @property
    def queries(self) -> list[str]:
        """What was searched for."""
        return [query for search in self.plan.searches for query in search.queries]

    def ids(self) -> list[Json]:
        """Return the ids, spread over the first events: no event has all of them."""
        entry = self.entry
        shown = self.behavior.web_model or self.model
        chosen = self.behavior.web_model or (
            self.params["model_preference"] if self.model != ANONYMOUS_MODEL else ANONYMOUS_MODEL
        )
        return [
            {
                "backend_uuid": entry.backend_uuid,
                "uuid": entry.backend_uuid,
                "frontend_uuid": self.params["frontend_uuid"],
                "query_str": self.params["query_str"],
            },
            {
                "context_uuid": entry.context_uuid,
                "thread_url_slug": entry.slug,
                "display_model": shown,
                "mode": "COPILOT" if self.params["mode"] == "copilot" else "CONCISE",
                "search_mode": "RESEARCH" if self.is_research else "SEARCH",
            },
            {"read_write_token": entry.token, "user_selected_model": chosen},
        ]

    def last_fields(self) -> Json:
        """Return what only the last event has."""
        related = list(related_questions(self.plan))
        fields: Json = {
            "thread_title": self.entry.questions[0][:80],
            "related_queries": related,
            "related_query_items": [{"text": text} for text in related],
            "query_language": "en",
            "search_focus": self.params.get("search_focus", "internet"),
        }
        if self.params.get("is_incognito"):
            expires = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time.time() + _DAY))
            fields |= {"privacy_state": "INCOGNITO", "expiry_time": expires}
        return fields

    def search_steps(self, *, with_sources: bool) -> list[Json]:
        """Return the steps up to the answer."""
        found: list[Json] = [_step("INITIAL_QUERY", {"query": self.params["query_str"]})]
        for search, results in zip(self.plan.searches, self.searches, strict=True):
            queries = [{"engine": "web", "query": query} for query in search.queries]
            found.append(_step("SEARCH_WEB", {"goal_id": "0", "queries": queries}))
            if with_sources:
                found.append(_step("SEARCH_RESULTS", {"goal_id": "0", "web_results": results}))
        return found

    def steps(self, *, with_sources: bool) -> list[Json]:
        """Return the steps as ``text`` holds them (consumer-web 2.8)."""
        found = self.search_steps(with_sources=with_sources)
        if self.asks_back:
            return [*found, _step("RESEARCH_CLARIFYING_QUESTIONS", {"questions": _QUESTIONS})]
        whole = {
            "answer": self.answer,
            "web_results": self.sources if with_sources else [],
            "chunks": list(self.pieces),
            "extra_web_results": [],
            "structured_answer": [
                {"type": "markdown", "text": self.answer, "chunks": list(self.pieces)}
            ],
        }
        return [*found, _step("FINAL", {"answer": json.dumps(whole, ensure_ascii=False)})]


def _step(kind: str, content: Json) -> Json:
    return {"step_type": kind, "content": content, "uuid": ""}


def _source(result: Result) -> Json:
    return {
        "name": result.title,
        "url": result.url,
        "snippet": result.snippet,
        "timestamp": f"{result.date.isoformat()}T00:00:00" if result.date else None,
        "meta_data": {"client": "web", "citation_domain_name": result.url.split("/")[2]},
        "is_attachment": False,
        "is_image": False,
    }


def plan_web(
    params: Json, entry: Entry, engine: Engine, behavior: Behavior, *, model: str, chunk_chars: int
) -> WebRun:
    """Search, and compose the answer.

    Parameters
    ----------
    params
        Fields that :func:`~ipyperplexity.emulator.consumer_checks.check_ask` let pass.
    entry
        Its place in a thread, with the questions so far.
    engine
        What answers.
    behavior
        How.
    model
        The model that is to answer.
    chunk_chars
        Characters in a chunk.
    """
    if params.get("search_focus") == "writing" or params.get("sources") == []:
        plan = Plan(nothing_allowed("Set `search_focus` to `internet`."))
    else:
        recency = params.get("search_recency_filter")
        plan = engine.answer(
            entry.questions[-1],
            filters=Filters(recency=recency.lower() if recency else None),
            history=[text for text in entry.questions[:-1] if text.strip()],
        )
    text = plan.text + behavior.extra_text
    if model == RESEARCH_MODEL:
        text = f"# {entry.questions[-1].strip()[:80]}\n\n{text}"
        return WebRun(params, entry, behavior, plan, model, text, ("The report ", "is ready."))
    streamed = text
    if behavior.web_answer == "renumbered":
        streamed = _renumbered(text, len(plan.results))
    pieces = [streamed[at : at + chunk_chars] for at in range(0, len(streamed), chunk_chars)]
    if behavior.web_fault == "half-surrogate":
        text += " 🐍."
        pieces += [" \ud83d", "\udc0d."]
    return WebRun(params, entry, behavior, plan, model, text, tuple(pieces))


def _renumbered(text: str, sources: int) -> str:
    """Count the markers from the last source: the terminal answer counts from the first."""
    return re.sub(r"\[(\d+)\]", lambda found: f"[{sources + 1 - int(found[1])}]", text)
