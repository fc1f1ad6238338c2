"""The ``text`` field of a perplexity.ai record, and the steps that it or a plan may hold.

It is absent, the plain answer, an error sentence, a JSON list of steps, or a JSON object; the last
step's answer is JSON in JSON (consumer-web 2.8). Such JSON is read, and is never shown as text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ipyperplexity.wire import values
from ipyperplexity.wire.consumer_constants import ERROR_SENTENCES

CLARIFYING = "RESEARCH_CLARIFYING_QUESTIONS"
_JSON_OF_THEIRS = re.compile(r'\s*(?:\[\s*\{|\{)\s*"')
_ANSWER_KEYS = {"answer", "web_results", "structured_answer", "extra_web_results"}


@dataclass
class Steps:
    """What the steps of an answer say.

    Attributes
    ----------
    answer, report : str
        Text of the last step, and of a research report.
    queries, urls, thoughts, questions : list of str
        Searches, pages read, thinking, and what the service asks back.
    cited, found : list
        Pages of the last step, and those that searches found.
    """

    answer: str = ""
    report: str = ""
    queries: list[str] = field(default_factory=list)
    urls: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    questions: list[str] = field(default_factory=list)
    cited: list[Any] = field(default_factory=list)
    found: list[Any] = field(default_factory=list)


@dataclass(frozen=True)
class TextField:
    """What a ``text`` is: one of plain text, an error sentence, or steps; or none of them yet."""

    plain: str = ""
    error: str = ""
    steps: Steps | None = None


def read_text(text: Any) -> TextField:
    """Return what a ``text`` field holds.

    Examples
    --------
    >>> read_text("Oslo.").plain, read_text('[{"step_type": "FINAL"').plain
    ('Oslo.', '')
    >>> read_text('[{"step_type": "FINAL", "content": {"answer": "Oslo."}}]').steps.answer
    'Oslo.'
    """
    if not isinstance(text, str) or not text.strip():
        return TextField()
    if text.strip().startswith(ERROR_SENTENCES) and len(text) < 200:
        return TextField(error=text.strip())
    if not _JSON_OF_THEIRS.match(text):
        return TextField(plain=text)
    value = values.parse(text)
    if value is None:  # cut: more of it comes, or it is damaged
        is_theirs = '"step_type"' in text or '"answer"' in text
        return TextField(plain="" if is_theirs else text)
    if isinstance(value, list):
        steps = [step for step in values.objects(value) if "step_type" in step]
        # An answer may be JSON because that was asked for.
        return TextField(steps=read_steps(steps)) if steps else TextField(plain=text)
    if "step_type" in value:
        return TextField(steps=read_steps([value]))
    if isinstance(value.get("answer"), str) and _ANSWER_KEYS & value.keys():
        return TextField(steps=read_steps([{"step_type": "FINAL", "content": value}]))
    return TextField(plain=text)


def read_steps(steps: Iterable[Any]) -> Steps:
    """Return what a list of steps says, whether it stood in ``text`` or in a plan."""
    said = Steps()
    for step in steps:
        if not isinstance(step, dict):
            continue
        kind = str(step.get("step_type") or "").upper()
        for content in _contents(step):
            _read_step(said, kind, content)
    return said


def _contents(step: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a step's contents: ``content``, or a member named after its kind."""
    for name, value in step.items():
        if (name == "content" or name.endswith("_content")) and isinstance(value, dict):
            yield value


def _read_step(said: Steps, kind: str, content: dict[str, Any]) -> None:
    if kind == "SEARCH_WEB":
        said.queries += _words(content.get("queries"), "query")
    elif kind == "READ_RESULTS":
        said.urls += _words(content.get("urls"), "url")
    elif kind == "SEARCH_RESULTS":
        said.found += values.items(content.get("web_results"))
    elif kind == "THOUGHT":
        said.thoughts += _words([content.get("thought"), content.get("text")])
    elif kind == CLARIFYING:
        said.questions += _words(content.get("questions"), "question_text", "question", "text")
    elif kind in ("FINAL", "RESEARCH_ANSWER"):
        inner = _unwrapped(content)
        text = _answer_of(inner)
        if kind == "FINAL":
            said.answer = text or said.answer
        else:
            said.report = text or said.report
        said.cited = values.items(inner.get("web_results")) or said.cited


def _unwrapped(content: dict[str, Any]) -> dict[str, Any]:
    answer = content.get("answer")
    if not isinstance(answer, str) or not answer.lstrip().startswith("{"):
        return content
    inner = values.parse(answer)
    if isinstance(inner, dict) and _ANSWER_KEYS & inner.keys():
        return {**content, "answer": None, **inner}
    is_cut = inner is None and '"answer"' in answer
    return {**content, "answer": None} if is_cut else content


def _answer_of(content: dict[str, Any]) -> str:
    if text := values.text(content.get("answer")):
        return text
    for part in values.objects(content.get("structured_answer")):
        if text := values.text(part.get("text")) or _joined(part.get("chunks")):
            return text
    return _joined(content.get("chunks")) or values.text(content.get("text"))


def _joined(chunks: Any) -> str:
    return "".join(chunk for chunk in values.items(chunks) if isinstance(chunk, str))


def _words(found: Any, *names: str) -> list[str]:
    """Return the texts of a list that has them bare, or as members of objects."""
    words: list[str] = []
    for item in values.items(found):
        if isinstance(item, dict):
            item = next((item[name] for name in names if isinstance(item.get(name), str)), None)
        if isinstance(item, str) and item.strip():
            words.append(item.strip())
    return words


def workflow_answer(block: Any) -> list[tuple[str, list[Any]]]:
    """Return the answers in a ``workflow_block`` (consumer-web 2.4): how they came, their pieces.

    Examples
    --------
    >>> payload = {"text_payload": {"chunks": ["Os", "lo"], "variant": "answer"}}
    >>> workflow_answer({"steps": [{"items": [{"payload": payload}]}]})
    [('chunks', ['Os', 'lo'])]
    """
    answers: list[tuple[str, list[Any]]] = []
    for step in values.objects(_member(block, "steps")):
        for item in values.objects(step.get("items")):
            text = _member(item.get("payload"), "text_payload")
            if str(_member(text, "variant")).lower() != "answer":
                continue
            whole, chunks = values.text(text.get("text")), values.items(text.get("chunks"))
            has_chunks = any(isinstance(chunk, str) and chunk.strip() for chunk in chunks)
            if whole.strip() and not (has_chunks and text.get("is_streaming") is True):
                answers.append(("text", [whole]))
            elif has_chunks:
                answers.append(("chunks", chunks))
    return answers


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, dict) else None


def reports_in(value: Any, name: str) -> Iterator[str]:
    """Yield the text of every research report at any depth, in order, patches included.

    A report stands in ``research_report.source_content`` of one block or another
    (consumer-web 2.4); a patch may name it in its path instead.
    """
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += reversed(item)
        elif isinstance(item, dict):
            report = _member(item.get(name), "source_content")
            if f"/{name}/source_content" in str(item.get("path", "")):
                report = item.get("value")
            if isinstance(report, str) and report.strip():
                yield report
            waiting += reversed(item.values())
