"""What a user meets when something fails: the cause, what to do next, and what had arrived."""

from __future__ import annotations

import copy
import pickle
import traceback
import warnings
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell

from ipyperplexity import errors
from ipyperplexity.answer import Answer
from ipyperplexity.errors import (
    ConfigurationError,
    Interrupted,
    InvalidRequestError,
    MissingCredentialError,
    NetworkError,
    PerplexityError,
    PerplexityWarning,
    RateLimitError,
    RequestTimeout,
    ServerError,
)

CODES = {
    "ConfigurationError": "MISCONFIGURED",
    "MissingCredentialError": "MISSING_CREDENTIAL",
    "BudgetError": "BUDGET",
    "AuthenticationError": "AUTH",
    "EndpointRetiredError": "RETIRED",
    "QuotaError": "QUOTA",
    "RateLimitError": "RATE_LIMIT",
    "InvalidRequestError": "INVALID_REQUEST",
    "NotOnTapeError": "NOT_ON_TAPE",
    "ServerError": "SERVER",
    "NetworkError": "NETWORK",
    "RequestTimeout": "TIMEOUT",
    "ChallengeError": "CHALLENGE",
    "StreamError": "STREAM",
    "EmptyAnswerError": "EMPTY",
    "AbortedError": "ABORTED",
}
KINDS: list[type[PerplexityError]] = [getattr(errors, name) for name in CODES]
EACH = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)


def family(kind: type[PerplexityError]) -> set[type[PerplexityError]]:
    return {kind}.union(*(family(child) for child in kind.__subclasses__()))


def test_the_tree_is_the_one_that_is_documented_and_each_cause_has_its_code() -> None:
    assert {
        kind.__name__: kind.code for kind in family(PerplexityError) - {PerplexityError}
    } == CODES
    drawn = str(errors.__doc__)
    for name, code in CODES.items():
        assert name in drawn and f" {code} " in drawn
    assert issubclass(MissingCredentialError, ConfigurationError)
    assert issubclass(RequestTimeout, NetworkError)
    assert issubclass(Interrupted, KeyboardInterrupt)
    assert not issubclass(Interrupted, Exception)
    assert issubclass(PerplexityWarning, UserWarning)


@EACH
def test_an_error_carries_its_facts_and_shows_its_message_and_hint(kind: Any) -> None:
    answer = Answer("Why?", "Half")
    error = kind(
        "it broke",
        hint="Do this.",
        field="model",
        status_code=500,
        request_id="req_1",
        retry_after=3.0,
        answer=answer,
    )
    assert str(error) == "it broke\nDo this."
    assert (error.message, error.hint, error.field) == ("it broke", "Do this.", "model")
    assert (error.status_code, error.request_id, error.retry_after) == (500, "req_1", 3.0)
    assert error.answer is answer
    assert isinstance(error, PerplexityError)


@EACH
def test_an_error_that_a_user_can_mend_says_how(kind: type[PerplexityError]) -> None:
    error = kind("it broke")
    assert error.hint == kind.default_hint
    needs_no_hint = {"ConfigurationError", "InvalidRequestError", "AbortedError"}
    assert error.hint or kind.__name__ in needs_no_hint
    assert kind("it broke", hint="").hint == ""
    assert str(kind("it broke", hint="")) == "it broke"


@EACH
@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_an_error_comes_home_from_another_process_whole(kind: Any, copied: Any) -> None:
    error = kind("it broke", field="model", retry_after=1.5, answer=Answer("Why?", "Half"))
    error.add_note("row 7")
    twin = copied(error)
    assert type(twin) is kind
    assert str(twin) == str(error)
    assert twin.args == error.args
    assert (twin.field, twin.retry_after, twin.answer.text) == ("model", 1.5, "Half")
    assert twin.__notes__ == ["row 7"]


def test_who_has_no_key_is_told_how_to_store_one() -> None:
    assert "%perplexity login" in str(MissingCredentialError("no key"))


def test_an_interrupt_comes_home_with_its_answer() -> None:
    twin = pickle.loads(pickle.dumps(Interrupted("stopped", answer=Answer("Why?", "Half"))))
    assert twin.answer.text == "Half"
    assert twin._render_traceback_() == ["Interrupted: stopped"]


def test_a_notebook_shows_a_few_lines_and_no_frames() -> None:
    error = RateLimitError(
        "slow down", status_code=429, request_id="req_1", answer=Answer("Why?", "Half an answer")
    )
    (shown,) = error._render_traceback_()
    lines = shown.splitlines()
    assert lines[0] == "RateLimitError: slow down (HTTP 429, request req_1)"
    assert lines[1] == RateLimitError.default_hint
    assert "14 characters" in lines[2] and "error.answer" in lines[2]
    assert len(lines) == 3
    assert (
        ServerError("x", answer=Answer("Why?", ""))
        ._render_traceback_()[0]
        .startswith("ServerError: x\n")
    )


def test_nothing_that_the_service_says_reaches_a_terminal_as_a_command() -> None:
    error = ServerError("down \x1b[31mred\x07\u202e", hint="one\ntwo \x9b0m", request_id="\x1b]0;x")
    lines = error._render_traceback_()[0].split("\n")
    assert all(line.isprintable() for line in lines)
    assert [line.strip() for line in lines[1:]] == ["one", "two  0m"]


@pytest.mark.parametrize("mode", ["Plain", "Context", "Verbose", "Minimal"])
def test_no_traceback_mode_shows_what_stands_in_the_frames(
    mode: str, capsys: pytest.CaptureFixture[str]
) -> None:
    shell = InteractiveShell.instance()
    shell.run_line_magic("xmode", mode)
    try:
        shell.run_cell(
            "from ipyperplexity.errors import ServerError\n"
            "def ask(headers):\n"
            "    raise ServerError('down')\n"
            "ask({'Authorization': 'pplx-secret'})\n"
        )
    finally:
        shell.run_line_magic("xmode", "Context")
    shown = capsys.readouterr()
    assert "pplx-secret" not in shown.out + shown.err
    assert "ServerError: down" in shown.out + shown.err


def test_outside_a_notebook_an_error_prints_as_any_other() -> None:
    try:
        raise InvalidRequestError("limit: got 99; allowed: 1 to 50.", field="limit")
    except InvalidRequestError as error:
        printed = "".join(traceback.format_exception(error))
    assert printed.rstrip().endswith("InvalidRequestError: limit: got 99; allowed: 1 to 50.")


def test_a_warning_can_be_turned_off_by_its_class() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.simplefilter("ignore", PerplexityWarning)
        warnings.warn("cut short", PerplexityWarning, stacklevel=1)
    assert caught == []
