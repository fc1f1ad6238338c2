"""Every error that a user can meet, in one tree.

::

    PerplexityError
    ├── ConfigurationError        MISCONFIGURED       something here is set up wrongly
    │   ├── MissingCredentialError MISSING_CREDENTIAL  there is no key to ask with
    │   └── BudgetError           BUDGET              the question would pass your budget
    ├── AuthenticationError       AUTH                the service does not accept the key
    ├── EndpointRetiredError      RETIRED             the address has stopped answering such calls
    ├── QuotaError                QUOTA               the account has no credit left
    ├── RateLimitError            RATE_LIMIT          too many requests; try again later
    ├── InvalidRequestError       INVALID_REQUEST     the question or an option is not valid
    │   └── NotOnTapeError        NOT_ON_TAPE         the tape that is replayed has no answer to it
    ├── ServerError               SERVER              the service failed
    ├── NetworkError              NETWORK             the service could not be reached
    │   └── RequestTimeout        TIMEOUT             it was reached, and took too long
    ├── ChallengeError            CHALLENGE           a bot check stands in front of the service
    ├── StreamError               STREAM              the answer broke off, or made no sense
    ├── EmptyAnswerError          EMPTY               a finished answer without text and sources
    └── AbortedError              ABORTED             somebody stopped it

Each says what happened (``message``) and what to do next (``hint``). Text that arrived before a
failure is kept: ``error.answer`` is the partial :class:`~ipyperplexity.Answer`. In a notebook an
error shows as its own few lines, without frames: frames hold headers, and headers hold the key.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer


class PerplexityError(Exception):
    """Root of all errors of this package.

    Parameters
    ----------
    message : str
        What happened, in a sentence.
    hint : str, optional
        What to do next; a class has its own default.
    field : str, optional
        The option or request field that is at fault.
    status_code : int, optional
        HTTP status, when the service answered.
    request_id : str, optional
        The service's ``x-request-id``, to quote to its support.
    retry_after : float, optional
        Seconds that the service asked to wait.
    answer : Answer, optional
        What had arrived before the failure.

    Attributes
    ----------
    code : str
        A constant name for the cause, such as ``"RATE_LIMIT"``.

    Examples
    --------
    >>> error = RateLimitError("the service asked to slow down", retry_after=3.0)
    >>> error.code, error.retry_after
    ('RATE_LIMIT', 3.0)
    """

    code: ClassVar[str] = "ERROR"
    default_hint: ClassVar[str | None] = None

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        field: str | None = None,
        status_code: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        answer: Answer | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint if hint is not None else self.default_hint
        self.field = field
        self.status_code = status_code
        self.request_id = request_id
        self.retry_after = retry_after
        self.answer = answer

    def __str__(self) -> str:
        return self.message if not self.hint else f"{self.message}\n{self.hint}"

    def __reduce__(self) -> tuple[Any, ...]:
        # Keyword-only arguments and the partial answer survive pickling (worker processes send
        # their errors home). They are state, not arguments: the answer refers back to its error.
        return (_rebuild, (type(self), self.args), self.__dict__.copy())

    def _render_traceback_(self) -> list[str]:
        """What IPython shows instead of a traceback: in one piece, as some modes join pieces."""
        lines = [f"{type(self).__name__}: {self.message}"]
        facts = [f"HTTP {self.status_code}"] if self.status_code else []
        if self.request_id:
            facts.append(f"request {self.request_id}")
        if facts:
            lines[0] += f" ({', '.join(facts)})"
        if self.hint:
            lines += self.hint.splitlines()
        if self.answer is not None and self.answer.text:
            lines.append(
                f"The {len(self.answer.text):,} characters that had arrived are kept: "
                "%perplexity last, or error.answer."
            )
        return ["\n".join(map(_printable, lines))]


def _rebuild(cls: type[PerplexityError], args: tuple[Any, ...]) -> PerplexityError:
    return cls.__new__(cls, *args)


def _printable(line: str) -> str:
    # A message may quote the service, and a terminal obeys what it is sent.
    return "".join(char if char.isprintable() else " " for char in line)


class ConfigurationError(PerplexityError):
    """Something on this machine is set up wrongly; nothing was sent."""

    code = "MISCONFIGURED"


class MissingCredentialError(ConfigurationError):
    """There is no API key; nothing was sent."""

    code = "MISSING_CREDENTIAL"
    default_hint = (
        "Store one with %perplexity login (in a shell: ipyperplexity login), or set the "
        "environment variable PERPLEXITY_API_KEY. To try it without a key, on the offline demo: "
        "%perplexity demo on, in Python demo()"
    )


class BudgetError(ConfigurationError):
    """The question would pass the budget that was set; nothing was sent."""

    code = "BUDGET"
    default_hint = "Raise it (%config PerplexityMagics.budget = 2.0) or ask a lighter preset."


class AuthenticationError(PerplexityError):
    """The service does not accept the key (HTTP 401), or this key may not do it (403)."""

    code = "AUTH"
    default_hint = "Check PERPLEXITY_API_KEY: a project key from perplexity.ai > API settings."


class EndpointRetiredError(PerplexityError):
    """The service no longer answers this kind of call; it is not the key that is bad."""

    code = "RETIRED"
    default_hint = (
        "Perplexity retired chat-completions on 2026-09-27. "
        "Use the Agent API: backend='agent' (the default)."
    )


class QuotaError(PerplexityError):
    """The account has no credit left; asking again does not help."""

    code = "QUOTA"
    default_hint = "Add credit in the API settings of your Perplexity account."


class RateLimitError(PerplexityError):
    """Too many requests in a short time (HTTP 429); such a request is not billed."""

    code = "RATE_LIMIT"
    default_hint = "Wait a moment and ask again, or ask fewer questions at once."


class InvalidRequestError(PerplexityError):
    """The question or an option is not valid: refused here, or by the service (400, 404, 422)."""

    code = "INVALID_REQUEST"


class NotOnTapeError(InvalidRequestError):
    """A tape is replayed strictly, and this question is not on it; nothing was sent."""

    code = "NOT_ON_TAPE"
    default_hint = (
        "Ask a question of the tape (%perplexity replay lists them), replay without --strict, or "
        "end it: %perplexity replay stop"
    )


class ServerError(PerplexityError):
    """The service failed (HTTP 5xx, or a run that ended as failed)."""

    code = "SERVER"
    default_hint = "This is usually brief. Ask again in a moment."


class NetworkError(PerplexityError):
    """The service could not be reached, or the connection broke before an answer began."""

    code = "NETWORK"
    default_hint = "Check the network, the proxy, and PERPLEXITY_BASE_URL."


class RequestTimeout(NetworkError):
    """The service took longer than the time limit (``timeout``, in seconds)."""

    code = "TIMEOUT"
    default_hint = (
        "Give it more time (timeout=..., in seconds) or a lighter preset. "
        "The run may go on at the service, and be billed."
    )


class ChallengeError(PerplexityError):
    """A page that checks for bots answered in place of the service."""

    code = "CHALLENGE"
    default_hint = (
        "Something between this machine and the service asks for a browser check (Cloudflare). "
        "Try another network, or ask its administrator; nothing here goes round it."
    )


class StreamError(PerplexityError):
    """The answer broke off before its end, or could not be understood."""

    code = "STREAM"
    default_hint = "Ask again. The broken answer may have been billed."


class EmptyAnswerError(PerplexityError):
    """The service says that it has finished, and there is neither text nor a source."""

    code = "EMPTY"
    default_hint = "Rephrase the question, or loosen its filters (domains, recency, dates)."


class AbortedError(PerplexityError):
    """Somebody stopped the request: ``stream.cancel()`` or a Stop button."""

    code = "ABORTED"


class MissingLibrary(ImportError):
    """An optional library is not installed; the message names the extra that brings it.

    It is an ``ImportError`` and costs nothing; in a notebook it shows as its one line.
    """

    def _render_traceback_(self) -> list[str]:
        return [f"{type(self).__name__}: {self.msg}"]


class Interrupted(KeyboardInterrupt):
    """A kernel interrupt (or Ctrl-C) that has been dealt with: the partial answer is kept.

    It is a ``KeyboardInterrupt``, so that "Run All" stops here, and it shows as one quiet line.
    """

    def __init__(self, message: str = "stopped", *, answer: Answer | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.answer = answer

    def _render_traceback_(self) -> list[str]:
        return [f"Interrupted: {self.message}"]


class PerplexityWarning(UserWarning):
    """Something worth a look that is not a failure: a cut answer, a model name that was mapped."""
