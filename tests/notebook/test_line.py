from __future__ import annotations

import pytest

from ipyperplexity.errors import InvalidRequestError
from ipyperplexity.notebook.command_table import COMMANDS, HELP_TOPICS
from ipyperplexity.notebook.help_topics import OF_COMMANDS, TOPICS, error_kinds
from ipyperplexity.notebook.line import FLAGS, help_text, parse


@pytest.mark.parametrize(
    "text",
    [
        "what's the price of {item} under $5?",
        'she said """hi and left :(',
        "{v: k for k, v in d.items()} and print({'foo': 'bar'})",
        "Meet at 12:30, ratio 3:fruit, costs $5?;",
        "-5 degrees: is it cold?",
        "a -- b",
        "  two   blanks\tand a tab".strip(),
        "Où est Zürich? 東京は? 🐍",
    ],
)
def test_a_question_without_options_stays_as_it_is(text: str) -> None:
    assert parse(text).text == text
    assert parse(f"-m fast {text}").text == text


def test_options_stand_before_the_question_in_all_their_spellings() -> None:
    line = parse("-m fast --recency=month --domain a.org --domain -b.com -s 'be brief' -q Why -m?")
    assert line.question == {
        "model": "fast",
        "recency": "month",
        "domains": ["a.org", "-b.com"],
        "system": "be brief",
    }
    assert line.magic == {"quiet": True}
    assert line.text == "Why -m?"


def test_two_dashes_end_the_options() -> None:
    assert parse("-m fast -- -q is an option").text == "-q is an option"
    assert parse("-- status").command is None
    assert parse("-- status").text == "status"


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("status", ("status", "")),
        ("  status  ", ("status", "")),
        ("demo on", ("demo", "on")),
        ("demo  off", ("demo", "off")),
        ("help options", ("help", "options")),
        ("--help", ("help", "")),
        ("-h", ("help", "")),
        ("last", ("last", "")),
        ("login --web --force", ("login", "--web --force")),
        ("config --show", ("config", "--show")),
        ("config recency=month", ("config", "recency=month")),
        ("usage --all", ("usage", "--all")),
    ],
)
def test_a_command_is_a_word_with_its_own_arguments(line: str, command: tuple[str, str]) -> None:
    assert parse(line).command == command


@pytest.mark.parametrize(
    "line",
    [
        "status of Artemis II",
        "demo of a lambda",
        "last week's news",
        "-m fast status",
        "login pages that people like",
        "history of Ghent",
        "models of the atom",
        "record temperatures in Spain",
        "cache invalidation, how?",
        "usage of commas",
    ],
)
def test_a_word_with_more_after_it_is_a_question(line: str) -> None:
    assert parse(line).command is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("--recencyy month Why?", "--recencyy: there is no such option. Did you mean --recency?"),
        ("-z Why?", "-z: there is no such option."),
        ("-m", "-m: a NAME must follow it."),
        ("-m --recency month Why?", "-m: a NAME must follow it."),
        ("-o 1st Why?", "-o: got '1st'; allowed: the name of a variable."),
        ("-o class Why?", "-o: got 'class'; allowed: the name of a variable."),
        ("-q=yes Why?", "-q: it takes no value."),
        ("--continue=nobody Why?", "--continue: got 'nobody'; allowed"),
        ("-s 'be brief Why?", "the quotation mark before 'be' is never closed"),
    ],
)
def test_a_mistake_in_an_option_is_named(line: str, says: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        parse(line)
    assert says in str(caught.value)


def test_continue_takes_a_name_only_if_it_is_an_answers() -> None:
    known = {"a"}.__contains__
    assert (parse("-c a And now?", known).magic, parse("-c a And now?", known).text) == (
        {"follow": "a"},
        "And now?",
    )
    assert (parse("-c And now?", known).magic, parse("-c And now?", known).text) == (
        {"follow": True},
        "And now?",
    )


def test_an_option_in_the_middle_of_a_question_is_noticed_and_sent_as_text() -> None:
    line = parse("What is new? --recency week")
    assert line.text == "What is new? --recency week"
    (notice,) = line.notices
    assert "--recency" in notice and "options go before it" in notice
    assert parse("What does --force do?").notices == ()
    assert parse("-- What does --recency do?").notices == ()


def test_the_help_explains_every_option() -> None:
    text = help_text()
    for flag in FLAGS:
        assert flag.option.help in text
        for spelling in flag.option.flags:
            assert spelling in text


def test_an_option_may_be_spelled_as_in_python() -> None:
    line = parse("--max_tokens 20 --no_stream What is a class?")
    assert line.question == {"max_tokens": "20"} and line.magic == {"no_stream": True}
    assert line.text == "What is a class?"


@pytest.mark.parametrize(
    "line", ["--max-%perplexity x", "--recencyy week x", "--bo_gus x", "-mfast x"]
)
def test_what_begins_like_an_option_is_never_sent_as_text(line: str) -> None:
    with pytest.raises(InvalidRequestError, match="no such option"):
        parse(line)


@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("stauts", "status"),
        ("Status", "status"),
        ("demo of", "demo off"),
    ],
)
def test_a_slip_in_a_command_is_not_paid_for(line: str, meant: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"Did you mean %perplexity {meant}"):
        _ = parse(line).command
    assert parse(f"-- {line}").command is None


@pytest.mark.parametrize(
    "line", ["help me understand tuples", "last year", "demo of a lambda", "static"]
)
def test_a_sentence_that_begins_like_a_command_is_a_question(line: str) -> None:
    assert parse(line).command is None


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("last.sources", "value = %perplexity last   and then   value.sources"),
        ("search python news", "%perplexity -b search python news"),
    ],
)
def test_what_is_meant_as_a_command_is_refused_with_the_way_to_say_it(line: str, hint: str) -> None:
    with pytest.raises(
        InvalidRequestError, match=r"there is no such command|has no parts"
    ) as raised:
        _ = parse(line).command
    assert hint in (raised.value.hint or "")
    assert parse(f"-- {line}").command is None


@pytest.mark.parametrize("name", ["serch", "agents", "openai"])
def test_a_backend_that_there_is_not_is_refused_with_those_there_are(name: str) -> None:
    with pytest.raises(InvalidRequestError, match="agent, chat, web, demo, search") as raised:
        parse(f"-b {name} What is a lambda?")
    assert name in str(raised.value)


def test_help_on_what_there_is_none_of_says_so_and_shows_all() -> None:
    assert parse("help nosuch").command == ("help", "nosuch")
    text = help_text("nosuch")
    assert text.startswith("There is no help on 'nosuch'.") and "--recency" in text


@pytest.mark.parametrize("topic", [*HELP_TOPICS, *(kind.code for kind in error_kinds())])
def test_each_topic_has_a_help_of_its_own_that_fits_the_page(topic: str) -> None:
    text = help_text(topic)
    assert text and not text.startswith("There is no help")
    assert text != help_text() and len(text.splitlines()) < 40
    if topic in TOPICS or topic in OF_COMMANDS:
        assert max(map(len, text.splitlines())) < 110


@pytest.mark.parametrize("topic", ["RATE_LIMIT", "rate_limit", "RateLimitError"])
def test_an_error_is_explained_by_its_code_or_its_class(topic: str) -> None:
    assert parse(f"help {topic}").command == ("help", topic)
    text = help_text(topic)
    assert text.startswith("RATE_LIMIT (RateLimitError)") and "not billed" in text


def test_all_commands_say_more_than_their_line() -> None:
    assert set(OF_COMMANDS) == set(COMMANDS) - {"help"}


def test_help_explains_one_option() -> None:
    assert "--recency" in help_text("recency") and "--after" not in help_text("recency")
    assert "Python" in help_text("images")
