"""What a cell sends: every option, every character, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest

from ipyperplexity.emulator import EmulatorServer
from ipyperplexity.emulator.faults import FAULTS
from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.question import OPTIONS
from tests.notebook.conftest import Session


def body(server: EmulatorServer) -> Any:
    return server.requests[-1].json()


def asked(server: EmulatorServer) -> str:
    content = body(server)["input"][-1]["content"]
    assert isinstance(content, str)
    return content


def searching(server: EmulatorServer) -> Any:
    (tool,) = body(server)["tools"]
    return tool


#: Option of a line -> what it must be in the request.
LINES = {
    "-m fast": lambda b: b["preset"] == "fast",
    "--model openai/gpt-5.2": lambda b: b["model"] == "openai/gpt-5.2",
    "-s 'be brief'": lambda b: b["input"][0] == {"role": "system", "content": "be brief"},
    "--recency month": lambda b: _filters(b) == {"search_recency_filter": "month"},
    "--after 2026-01-31": lambda b: _filters(b) == {"search_after_date_filter": "01/31/2026"},
    "--before 2026-01-31": lambda b: _filters(b) == {"search_before_date_filter": "01/31/2026"},
    "--domain docs.python.org --domain peps.python.org": lambda b: (
        _filters(b) == {"search_domain_filter": ["docs.python.org", "peps.python.org"]}
    ),
    "--domain -x.com": lambda b: _filters(b) == {"search_domain_filter": ["-x.com"]},
    "--context high": lambda b: b["tools"][0]["search_context_size"] == "high",
    "--country be": lambda b: b["tools"][0]["user_location"] == {"country": "BE"},
    "--language nl": lambda b: b["language_preference"] == "nl",
    "--limit 3": lambda b: b["tools"][0]["max_results"] == 3,
    "--search no": lambda b: b["tool_choice"] == "none",
    "--search force": lambda b: b["tool_choice"] == {"type": "web_search"},
    "--max-tokens 700": lambda b: b["max_output_tokens"] == 700,
    "--max-steps 4": lambda b: b["max_steps"] == 4,
    "--reasoning high": lambda b: b["reasoning"] == {"effort": "high"},
    "--temperature 0.5": lambda b: b["temperature"] == 0.5,
    "--schema Named": lambda b: b["response_format"]["type"] == "json_schema",
    "--timeout 30": lambda b: "timeout" not in b,
    "--no-stream": lambda b: "stream" not in b,
    "": lambda b: set(b) == {"preset", "input", "stream"},
}


def _filters(b: Any) -> Any:
    return b["tools"][0]["filters"]


@pytest.mark.parametrize("options", LINES)
def test_an_option_of_the_line_reaches_the_service(
    session: Session, server: EmulatorServer, options: str
) -> None:
    session.good("Named = {'name': str}")
    session.good(f"%%perplexity {options}\nWhat is a lambda?")
    assert LINES[options](body(server)), body(server)
    session.good(f"a = %perplexity {options} What is a lambda?")
    assert LINES[options](body(server)), body(server)
    assert asked(server) == "What is a lambda?"


def test_every_option_with_a_spelling_is_in_that_table() -> None:
    tested = " ".join(LINES).split()
    for name, option in OPTIONS.items():
        assert not option.flags or set(option.flags) & set(tested), name


PROSE = [
    "What is a lambda?",
    "What's a lambda?",
    "Why am I sad :( today",
    'She said """hi',
    "{ open",
    'f"{x',
    "explain {v: k for k, v in d.items()} and print({'foo': 'bar'})",
    "Meet at 12:30, ratio 3:fruit, costs $5 or $HOME?",
    "hello;",
    "does it end with a backslash \\n here?",
    "Où est Zürich? 東京は? 🐍",
    "#hashtag, what is it?",
    "100 % sure? a = %perplexity b?",
    "what does ?? do??",
    "<b>&amp;</b> !ls",
    "{{ }} {{1a}} {{a b}} {{f()}} {{%raw%}}",
    "long " * 5000 + "end",
]


@pytest.mark.parametrize("text", PROSE, ids=lambda text: text[:20])
def test_prose_is_sent_character_for_character(
    session: Session, server: EmulatorServer, text: str
) -> None:
    session.good("x, HOME = 'wrong', 'wrong'")
    session.good(f"%%perplexity\n{text}")
    assert asked(server) == text
    session.good(f"%perplexity {text}")
    assert asked(server) == text
    session.good(f"if True:\n    a = %perplexity -m fast {text}\nb = 1")
    assert asked(server) == text and session["a"].question == text and session["b"] == 1
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    "text",
    [
        "Line one\n  indented: {x}\n\n\tand a tab\n%time and %%html",
        "x\n!ls\n?what",
        "  starts with blanks",
        "a\nb   ",
    ],
)
def test_the_lines_of_a_cell_are_sent_as_they_are(
    session: Session, server: EmulatorServer, text: str
) -> None:
    session.good(f"%%perplexity\n{text}\n")
    assert asked(server) == text


def test_the_rest_of_the_first_line_goes_before_the_cell(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%%perplexity -m fast Explain this:\nlambda x: x")
    assert asked(server) == "Explain this:\n\nlambda x: x"


def test_help_on_the_magic_still_works(session: Session, server: EmulatorServer) -> None:
    pages: list[Any] = []
    session.shell.set_hook("show_in_pager", lambda shell, data, **rest: pages.append(data))
    for line in ("%perplexity?", "%%perplexity?", "?%perplexity", "?%%perplexity"):
        session.good(line)
    assert len(pages) == 4 and not server.requests
    for page in pages:
        text = page["text/plain"] if isinstance(page, dict) else page
        for name, option in OPTIONS.items():
            assert not option.flags or option.help in text, name


def test_help_on_other_things_still_works(session: Session, server: EmulatorServer) -> None:
    pages: list[Any] = []
    session.shell.set_hook("show_in_pager", lambda shell, data, **rest: pages.append(data))
    session.good("perplexity = 3\nlen?")
    session.good("b = 7\nb % perplexity")
    assert len(pages) == 1 and session["_"] == 1


def test_a_string_that_looks_like_our_line_is_left_alone(
    session: Session, server: EmulatorServer
) -> None:
    session.good('doc = """\n%perplexity What is a lambda?\n"""')
    assert session["doc"] == "\n%perplexity What is a lambda?\n" and not server.requests


@pytest.mark.parametrize("cell", ["%perplexity", "%%perplexity -m fast\n   \n", "%perplexity -q"])
def test_nothing_to_ask_is_said_and_nothing_is_sent(
    session: Session, server: EmulatorServer, cell: str
) -> None:
    ran = session.run(cell)
    assert isinstance(ran.error, InvalidRequestError) and "question: there is none" in ran.out
    assert not server.requests


def test_a_question_may_be_asked_from_inside_a_function(
    session: Session, server: EmulatorServer
) -> None:
    session.good(
        "def ask(topic):\n"
        "    answer = %perplexity -q What is {{topic}}?\n"
        "    return answer\n"
        "found = [ask(topic).question for topic in ('a lambda', 'a tuple')]"
    )
    assert session["found"] == ["What is a lambda?", "What is a tuple?"]


# --- going on from an answer ------------------------------------------------------------------


def test_continue_goes_on_from_the_last_answer(session: Session, server: EmulatorServer) -> None:
    first = session.good("%perplexity -q What is a lambda?").result
    session.good("%perplexity -q -c And a tuple?")
    assert body(server)["previous_response_id"] == first.id
    assert session["_"].turns[0].question == "What is a lambda?"


def test_continue_with_a_name_goes_on_from_that_answer(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%perplexity -q -o one -m fast What is a lambda?")
    session.good("%perplexity -q What is a tuple?")
    session.good("%%perplexity -q -c one\nAnd why?")
    assert body(server)["previous_response_id"] == session["one"].id
    assert body(server)["preset"] == "fast", "the model of the conversation holds on"


def test_continue_with_a_name_that_is_no_answer_is_refused_in_a_cell(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%perplexity -q -o one What is a lambda?")
    ran = session.run("%%perplexity -c onne\nAnd why?")
    assert isinstance(ran.error, InvalidRequestError) and "onne" in ran.out
    assert len(server.requests) == 1


def test_continue_without_an_answer_is_refused(session: Session, server: EmulatorServer) -> None:
    ran = session.run("%perplexity -c And why?")
    assert "there is no answer yet to go on from" in ran.out and not server.requests


def test_new_starts_afresh_in_a_conversation(session: Session, server: EmulatorServer) -> None:
    session.good("%config PerplexityMagics.conversation = True")
    first = session.good("%perplexity -q What is a lambda?").result
    second = session.good("%perplexity -q And a tuple?").result
    assert body(server)["previous_response_id"] == first.id
    session.good("%perplexity -q --new What is a set?")
    assert "previous_response_id" not in body(server)
    assert second.turns and not session["_"].turns


def test_a_conversation_goes_on_after_a_question_that_failed(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%config PerplexityMagics.conversation = True")
    first = session.good("%perplexity -q What is a lambda?").result
    server.next(FAULTS["server-error"])
    assert session.run("%perplexity -q And a tuple?").error is not None
    session.good("%perplexity -q And a tuple?")
    assert body(server)["previous_response_id"] == first.id


def test_an_answer_of_another_service_is_continued_with_its_whole_conversation(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%perplexity -q -b demo What is a lambda?")
    session.good("%perplexity -q -c And a tuple?")
    roles = [item["role"] for item in body(server)["input"]]
    assert roles == ["user", "assistant", "user"] and "previous_response_id" not in body(server)


# --- settings ---------------------------------------------------------------------------------


def test_a_setting_is_a_default_that_the_line_overrides(
    session: Session, server: EmulatorServer
) -> None:
    session.good(
        "%config PerplexityMagics.model = 'medium'\n"
        "%config PerplexityMagics.recency = 'month'\n"
        "%config PerplexityMagics.domains = ['docs.python.org']\n"
        "%config PerplexityMagics.system = 'be brief'"
    )
    session.good("%perplexity -q What is a lambda?")
    assert body(server)["preset"] == "medium"
    assert searching(server)["filters"] == {
        "search_recency_filter": "month",
        "search_domain_filter": ["docs.python.org"],
    }
    session.good("%perplexity -q -m fast --recency day What is a lambda?")
    assert body(server)["preset"] == "fast"
    assert searching(server)["filters"]["search_recency_filter"] == "day"


def test_a_setting_gives_way_to_an_option_that_cannot_stand_beside_it(
    session: Session, server: EmulatorServer
) -> None:
    session.good("%config PerplexityMagics.recency = 'month'")
    session.good("%perplexity -q --after 2026-01-01 What is a lambda?")
    assert searching(server)["filters"] == {"search_after_date_filter": "01/01/2026"}
    session.good("%perplexity -q --search no What is a lambda?")
    assert "tools" not in body(server)
    session.good("%perplexity -q --country BE What is a lambda?")
    session.good("%perplexity -q -c --search no And why?")
    assert "tools" not in body(server)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("recency", "'fortnight'"),
        ("limit", "99"),
        ("domains", "['https://x.com']"),
        ("country", "'Belgium'"),
        ("base_url", "'http://example.org'"),
        ("base_url", "'https://me:secret@example.org'"),
        ("backend", "'web3'"),
        ("max_retries", "-1"),
        ("stream", "'maybe'"),
    ],
)
def test_a_setting_with_a_wrong_value_is_refused_and_the_old_one_stays(
    session: Session, setting: str, value: str, caplog: pytest.LogCaptureFixture
) -> None:
    magics = session.shell.magics_manager.registry["PerplexityMagics"]
    before = getattr(magics, setting)
    ran = session.run(f"%config PerplexityMagics.{setting} = {value}")
    assert getattr(magics, setting) == before
    (refusal,) = caplog.messages
    assert setting in refusal and "secret" not in refusal + ran.out
    session.good("%config PerplexityMagics.context = 'high'")
    assert magics.context == "high"


def test_a_wrong_setting_shows_what_is_allowed(
    session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    session.run("%config PerplexityMagics.recency = 'fortnight'")
    assert "allowed: hour, day, week, month, year" in caplog.text


def test_a_wrong_setting_of_a_profile_is_said_in_one_line_when_the_extension_is_loaded(
    bare_shell: Any,
) -> None:
    bare_shell.config.PerplexityMagics.recency = "fortnight"
    session = Session(bare_shell)
    ran = session.run("%load_ext ipyperplexity")
    assert ran.error is not None and "allowed: hour, day, week, month, year" in ran.out
    assert len(ran.out.strip().splitlines()) == 1, ran.out
    del bare_shell.config.PerplexityMagics.recency
    session.good("%load_ext ipyperplexity")


def test_config_lists_the_settings_with_their_help_and_no_key(session: Session) -> None:
    out = session.good("%config PerplexityMagics").out
    for name in ("recency", "model", "backend", "conversation"):
        assert f"PerplexityMagics.{name}" in out
    assert OPTIONS["recency"].help in " ".join(out.split()) and "api_key" not in out
