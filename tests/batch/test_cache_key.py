"""One key, one answer: the same question is asked once, and another is never mistaken for it."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ipyperplexity.answer import Answer
from ipyperplexity.answer_parts import Turn
from ipyperplexity.batch import cache_key as module
from ipyperplexity.batch.cache_key import cache_key
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.question import OPTIONS, Question
from ipyperplexity.wire import agent, chat

PROJECT = Path(__file__).parents[2]
OFFICIAL = "https://api.perplexity.ai"
PNG = b"\x89PNG\r\n\x1a\n"


def key(
    text: str = "Why?",
    *,
    backend: str = "agent",
    base_url: str = OFFICIAL,
    default_model: str | None = "low",
    **options: Any,
) -> str:
    found = cache_key(Question(text, **options), backend, base_url, default_model)
    assert found is not None
    return found


def add(a: int, b: int) -> int:
    """Add."""
    return a + b


EARLIER = Answer("Who?", "She.", id="resp_1", stored=True)

#: Option -> values that each make another question; the default is one of them.
VALUES: dict[str, list[Any]] = {
    "model": [None, "high", "openai/gpt-6", "openai/gpt-6-sol"],
    "system": [None, "Be brief.", "be brief."],
    "recency": [None, "hour", "month"],
    "after": [None, "2026-01-01", "2026-01-02"],
    "before": [None, "2026-01-01", "2026-01-02"],
    "domains": [(), ["a.org"], ["-a.org"], ["a.org", "b.org"]],
    "context": [None, "low", "high"],
    "country": [None, "BE", "NL"],
    "language": [None, "nl", "be"],
    "limit": [None, 1, 5],
    "search": [True, False, "force"],
    "max_tokens": [None, 1, 5],
    "max_steps": [None, 1, 5],
    "reasoning": [None, "low", "high"],
    "temperature": [None, 0, 0.2, 1],
    "schema": [
        None,
        {"ceo": str},
        {"ceo": int},
        {"ceo": "the chief"},
        {"ceo": str, "since": int},
        {"since": int, "ceo": str},  # a model writes the one before the other
        [{"ceo": str}],
        {"title": "Other", "type": "object", "properties": {"ceo": {"type": "string"}}},
    ],
    "images": [
        (),
        [PNG + b"1"],
        [PNG + b"2"],
        [PNG + b"1", PNG + b"2"],
        [PNG + b"2", PNG + b"1"],  # "the first picture"
        ["https://a.org/1.png"],
    ],
    "tools": [
        (),
        ["fetch_url"],
        ["fetch_url", "sandbox"],
        [{"type": "mcp", "server_url": "https://a.org"}],
        [{"type": "mcp", "server_url": "https://b.org"}],
        [{"type": "web_search", "max_results": 3}],
    ],
    "follow": [
        None,
        EARLIER,
        Answer("Who?", "He."),
        Answer("What?", "She."),
        Answer("Who?", "She.", turns=(Turn("When?", "Now."),)),
        Answer("Who?", "", id="resp_1"),
        Answer("Who?", "", id="resp_2"),
    ],
    "extra": [{}, {"seed": 1}, {"seed": 2}, {"top_p": 1}, {"seed": 1, "top_p": 1}],
}


# --- other questions ------------------------------------------------------------------------------


def test_each_option_is_looked_at_but_how_long_to_wait() -> None:
    assert VALUES.keys() == OPTIONS.keys() - {"timeout"}
    assert module._FORMS.keys() <= OPTIONS.keys()


@pytest.mark.parametrize("name", VALUES)
def test_another_value_of_an_option_is_another_question(name: str) -> None:
    keys = [key(**{name: value}) for value in VALUES[name]]
    assert len(set(keys)) == len(VALUES[name])


def test_the_same_value_of_another_option_is_another_question() -> None:
    keys = [key(**{name: 5}) for name in ("limit", "max_tokens", "max_steps")]
    keys += [key(**{name: "2026-01-01"}) for name in ("after", "before")]
    keys += [key(**{name: "low"}) for name in ("context", "reasoning", "system")]
    assert len(set(keys)) == len(keys)


def test_another_text_backend_address_or_default_model_is_another_question() -> None:
    keys = [
        key(),
        key("why?"),
        key('Why?", "x": "y'),
        key(backend="chat"),
        key(base_url="https://gateway.example"),
        key(default_model="high"),
        key(default_model=None),
    ]
    assert len(set(keys)) == len(keys)


def bodies(question: Question) -> list[str]:
    """Return what is sent for a question: on two wires, each an oracle of its own."""
    found = []
    for wire in (agent.WIRE, chat.WIRE):
        try:
            body = wire.request(question, resume=False).body
        except InvalidRequestError:
            body = None
        found.append(json.dumps(body, sort_keys=True))
    return found


options = st.fixed_dictionaries(
    {}, optional={name: st.sampled_from(values[1:]) for name, values in VALUES.items()}
)


def question_of(text: str, given_options: dict[str, Any]) -> Question | None:
    try:
        return Question(text, **given_options)
    except InvalidRequestError:  # two that cannot stand side by side
        return None


@settings(max_examples=400, deadline=None)
@given(
    texts=st.tuples(st.sampled_from(["a", "b"]), st.sampled_from(["a", "b"])),
    first=options,
    second=options,
    changed=st.sets(st.sampled_from([*VALUES, "timeout"]), max_size=2),
)
def test_questions_with_one_key_are_sent_alike(
    texts: tuple[str, str], first: dict[str, Any], second: dict[str, Any], changed: set[str]
) -> None:
    # The second is the first but for a few options, so that equal ones come up at all.
    others = {name: value for name, value in first.items() if name not in changed}
    others |= {name: value for name, value in second.items() if name in changed}
    one, other = question_of(texts[0], first), question_of(texts[1], others)
    if one is None or other is None:
        return
    keys = [cache_key(question, "agent", OFFICIAL, "low") for question in (one, other)]
    same = texts[0] == texts[1] and all(
        first.get(name, VALUES[name][0]) is others.get(name, VALUES[name][0]) for name in VALUES
    )
    assert (keys[0] == keys[1]) == same
    if keys[0] == keys[1]:
        assert bodies(one) == bodies(other)


@settings(max_examples=200, deadline=None)
@given(st.text(min_size=1), st.text(min_size=1))
def test_two_texts_are_two_questions(one: str, other: str) -> None:
    first, second = question_of(one, {}), question_of(other, {})
    if first is not None and second is not None:
        keys = [cache_key(question, "agent", OFFICIAL, None) for question in (first, second)]
        assert (keys[0] == keys[1]) == (first.text == second.text)


# --- the same question ----------------------------------------------------------------------------


@dataclass
class Company:
    name: str
    kind: Literal["public", "private"]


FULL: dict[str, Any] = {
    "model": "high",
    "system": "Be brief.",
    "recency": "month",
    "domains": ["a.org", "b.org", "-c.org"],
    "context": "low",
    "country": "BE",
    "language": "nl",
    "limit": 5,
    "search": "force",
    "max_tokens": 500,
    "max_steps": 3,
    "reasoning": "low",
    "temperature": 0.2,
    "schema": Company,
    "images": [PNG],
    "tools": ["fetch_url", {"type": "mcp", "server_url": "https://a.org", "server_label": "a"}],
    "follow": EARLIER,
    "timeout": 30,
    "extra": {"seed": 1, "top_p": 1, "metadata": {"a": 1}},
}


def test_the_order_in_which_options_are_given_does_not_matter() -> None:
    expected = key(**FULL)
    for seed in range(20):
        items = list(FULL.items())
        random.Random(seed).shuffle(items)
        assert key(**dict(items)) == expected


@pytest.mark.parametrize(
    ("name", "one", "other"),
    [
        ("domains", ["a.org", "b.org"], ("b.org", "a.org")),
        ("domains", ["a.org", "b.org"], {"b.org", "a.org"}),
        ("domains", ["a.org", "b.org"], "a.org, b.org"),
        ("after", "2026-01-02", dt.date(2026, 1, 2)),
        ("after", "2026-1-2", dt.datetime(2026, 1, 2, 5)),
        ("country", "be", "BE"),
        ("temperature", 1, 1.0),
        ("temperature", 0, -0.0),
        ("limit", 5, "5"),
        ("search", None, True),
        ("search", "no", False),
        ("system", None, "  "),
        ("schema", {"ceo": str}, {"ceo": "str"}),
        ("images", [PNG], PNG),
        ("images", [PNG], ("data:image/png;base64,iVBORw0KGgo=",)),
        ("tools", ["fetch_url", "sandbox"], ("sandbox", {"type": "fetch_url"})),
        ("tools", [{"type": "mcp", "a": 1}], [{"a": 1, "type": "mcp"}]),
        ("extra", {"seed": 1, "top_p": 1}, {"top_p": 1, "seed": 1}),
        ("extra", None, {}),
        ("model", None, "low"),  # which is the default in use
        ("follow", EARLIER, Answer("Who?", "She.", id="resp_2", stored=False)),
        ("timeout", None, 5),
    ],
)
def test_another_spelling_is_the_same_question(name: str, one: Any, other: Any) -> None:
    assert key(**{name: one}) == key(**{name: other})


def test_a_slash_after_the_address_does_not_matter() -> None:
    assert key(base_url=OFFICIAL + "/") == key(base_url=OFFICIAL)


def test_the_demo_is_the_same_wherever_it_listens() -> None:
    ports = [key(backend="demo", base_url=f"http://127.0.0.1:{port}") for port in (4001, 4002)]
    assert ports[0] == ports[1] != key(backend="agent", base_url="http://127.0.0.1:4001")


def test_pictures_are_told_apart_by_what_they_show(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(PNG + b"1")
    before = key(images=[tmp_path / "a.png"])
    assert before == key(images=PNG + b"1")
    (tmp_path / "a.png").write_bytes(PNG + b"2")
    assert key(images=[tmp_path / "a.png"]) != before


ELSEWHERE = """
import enum, sys
from typing import Annotated, Literal, TypedDict
from ipyperplexity.answer import Answer
from ipyperplexity.batch.cache_key import cache_key
from ipyperplexity.question import Question
class Kind(enum.Enum):
    PUBLIC = "public"
    PRIVATE = "private"
class Person(TypedDict, total=False):
    name: str
    born: int
    place: Annotated[str, "city"]
class Company(TypedDict):
    boss: Person
    kind: Kind
    size: Literal["small", "large"]
    others: list[Person]
options = {
    "model": "high", "recency": "month", "schema": list[Company], "limit": 5,
    "domains": {"a.org", "b.org", "c.org", "d.org", "e.org"},
    "tools": {"fetch_url", "sandbox", "image_search", "people_search"},
    "extra": {name: 1 for name in {"seed", "top_p", "metadata", "user"}},
    "images": [bytes([137]) + b"PNG\\r\\n" + bytes([26]) + b"\\n"],
    "follow": Answer("Who?", "She."), "temperature": 0.2, "country": "be",
}
for name in {*options}:  # in an order of this process alone
    options[name] = options.pop(name)
print(cache_key(Question("Why \\N{EARTH GLOBE EUROPE-AFRICA}?", **options), "agent", "https://x.org", "low"))
"""


def test_another_process_finds_the_same_key() -> None:
    keys = set()
    for seed in ("0", "1", "2", "77"):
        environment = {**os.environ, "PYTHONPATH": str(PROJECT), "PYTHONHASHSEED": seed}
        command = [sys.executable, "-c", ELSEWHERE]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        keys.add(done.stdout.strip())
    assert len(keys) == 1
    assert len(keys.pop()) == 64


def test_the_key_of_a_question_stays_what_it_is_from_version_to_version() -> None:
    # An answer that was paid for is found by it: it may change only together with VERSION.
    assert module.VERSION == 1
    assert key() == "ceeb4a199ca67ce750d829787ee8b84847590d3a486c293399f4d61cf854cbb2"
    assert (
        key(**{**FULL, "schema": {"ceo": str}})
        == "875ae94d817e45922bf3833639d296e6019080a1db4cf012ddc6e84734ef7627"
    )


# --- what cannot be known, and what must not be ---------------------------------------------------


@pytest.mark.parametrize("tools", [[add], add, ["fetch_url", add]])
def test_what_a_function_answers_cannot_be_known(tools: Any) -> None:
    assert cache_key(Question("Why?", tools=tools), "agent", OFFICIAL, "low") is None


def test_no_credential_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    before = key(**FULL)
    monkeypatch.setenv("PERPLEXITY_API_KEY", "pplx-" + "another" * 4)
    assert key(**FULL) == before


def test_a_key_tells_nothing_of_the_question() -> None:
    found = key("Is pplx-5ecre75ecre7 mine?", extra={"secret": "5ecre7"})
    assert len(found) == 64
    assert set(found) <= set("0123456789abcdef")


def test_half_a_character_in_an_address_is_no_reason_to_fail() -> None:
    odd = [key(images=f"data:image/png;base64,{half}") for half in ("\ud800", "\udc00")]
    assert len(set(odd)) == 2


def test_all_values_here_do_make_questions() -> None:
    pairs = itertools.chain.from_iterable(
        ((name, value) for value in values) for name, values in VALUES.items()
    )
    assert all(question_of("Why?", {name: value}) for name, value in pairs)
