"""One row of the ledger: what was asked, of whom, and what it cost.

Whatever a service says, a row is something that sqlite takes: what cannot be counted or is no price
is left out.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import math
import os
import uuid
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from ipyperplexity.secret_patterns import hide_secrets

if TYPE_CHECKING:
    from ipyperplexity.answer import Answer

KINDS = ("ask", "search", "job", "batch")
#: Characters of a question that are kept.
QUESTION_LENGTH = 80
#: This process and the processes that it forks: in a notebook, the kernel's session.
SESSION = uuid.uuid4().hex


def notebook_name() -> str:
    """Return the name that Jupyter gives this kernel's notebook, mostly its path; or nothing."""
    return os.environ.get("JPY_SESSION_NAME", "")


@dataclass(frozen=True)
class LedgerEntry:
    r"""One request that has ended.

    Attributes
    ----------
    kind : str
        ``ask``, ``search``, ``job`` or ``batch``.
    asked_model : str
        Preset or model that was asked for.
    model : str
        The one that answered, as the service names it.
    backend, status : str
        As those of the answer.
    input_tokens, output_tokens, reasoning_tokens, total_tokens, searches : int or None
        As the service counts them.
    cost_usd : float or None
        US dollars; None where the service did not say.
    elapsed_s : float or None
        Seconds from asking to the end.
    answer_id : str
        The service's id.
    question : str
        Its first 80 characters, on one line; what looks like a key is masked.
    at : datetime.datetime
        When it was asked; aware, UTC.
    session : str
        Of which kernel: :data:`SESSION`.
    notebook : str
        Of which notebook, if Jupyter says so.
    key : str
        Random, different for each row.

    Examples
    --------
    >>> LedgerEntry("ask", asked_model="low", question="What is\n a lambda?").question
    'What is a lambda?'
    """

    kind: str
    asked_model: str = ""
    model: str = ""
    backend: str = ""
    status: str = ""
    input_tokens: int | None = None
    output_tokens: int | None = None
    reasoning_tokens: int | None = None
    total_tokens: int | None = None
    searches: int | None = None
    cost_usd: float | None = None
    elapsed_s: float | None = None
    answer_id: str = ""
    question: str = ""
    at: dt.datetime = field(default_factory=lambda: dt.datetime.now(dt.UTC))
    session: str = field(default_factory=lambda: SESSION)
    notebook: str = field(default_factory=notebook_name)
    uid: str = field(default_factory=lambda: uuid.uuid4().hex, repr=False)

    def __post_init__(self) -> None:
        for name in _TEXTS:
            object.__setattr__(self, name, _text(getattr(self, name)))
        for name in COUNTS:
            object.__setattr__(self, name, _count(getattr(self, name)))
        for name in AMOUNTS:
            object.__setattr__(self, name, amount(getattr(self, name)))
        object.__setattr__(self, "question", _shortened(self.question))

    @classmethod
    def of_answer(cls, answer: Answer, kind: str = "ask", asked_model: str = "") -> LedgerEntry:
        """Return the row of an answer; one of the demo costs nothing."""
        usage = answer.usage
        return cls(
            kind,
            asked_model=asked_model,
            model=answer.model or "",
            backend=answer.backend,
            status=answer.status,
            input_tokens=usage.input_tokens,
            output_tokens=usage.output_tokens,
            reasoning_tokens=usage.reasoning_tokens,
            total_tokens=usage.total_tokens,
            searches=usage.searches,
            cost_usd=0.0 if answer.backend == "demo" else usage.cost_usd,
            elapsed_s=answer.elapsed,
            answer_id=answer.id or "",
            question=answer.question,
            at=answer.created,
        )


COUNTS = ("input_tokens", "output_tokens", "reasoning_tokens", "total_tokens", "searches")
AMOUNTS = ("cost_usd", "elapsed_s")
_TEXTS = (
    *("kind", "asked_model", "model", "backend", "status"),
    *("answer_id", "question", "session", "notebook", "uid"),
)


def _text(value: object) -> str:
    # Half of a surrogate pair fits into no file.
    return str(value or "").encode("utf-8", "replace").decode()


def _count(value: object) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63
    return value if good else None  # type: ignore[return-value]


def amount(value: object) -> float | None:
    """Return a number that can be a price or a time; None for anything else."""
    good = isinstance(value, int | float) and not isinstance(value, bool)
    try:
        number = float(value) if good else math.nan  # type: ignore[arg-type]
    except OverflowError:
        return None
    return number if 0 <= number < math.inf else None


def _shortened(question: str) -> str:
    # A key is masked before it could be cut to something that is not recognized.
    words = hide_secrets(" ".join(question[:2000].split()))
    return words if len(words) <= QUESTION_LENGTH else words[: QUESTION_LENGTH - 1] + "…"


# --- as a row of a database ---------------------------------------------------------------------

COLUMNS = tuple(entry_field.name for entry_field in fields(LedgerEntry))
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_MICROSECOND = dt.timedelta(microseconds=1)


def to_row(entry: LedgerEntry) -> tuple[object, ...]:
    """Return the values of an entry in the order of :data:`COLUMNS`."""
    values = {name: getattr(entry, name) for name in COLUMNS}
    values["at"] = microseconds(entry.at)
    return tuple(values.values())


def from_row(row: tuple[Any, ...]) -> LedgerEntry:
    """Return the entry that :func:`to_row` has written."""
    values = dict(zip(COLUMNS, row, strict=True))
    values["at"] = time_of(values["at"])
    return LedgerEntry(**values)


def microseconds(time: dt.datetime) -> int:
    """Return a time as microseconds since 1970; local time if it names no zone."""
    if time.tzinfo is None:
        time = time.astimezone()
    return (time - _EPOCH) // _MICROSECOND


def time_of(since_epoch: object) -> dt.datetime:
    """Return the time so many microseconds after 1970, aware, UTC; 1970 for what is no time."""
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        return _EPOCH + _MICROSECOND * int(since_epoch)  # type: ignore[call-overload,no-any-return]
    return _EPOCH
