"""A column of questions: from a frame and a template to a table with an answer a row.

What is asked for is checked whole before the first question is sent: a template that names a
missing column, an option that is not allowed, a checkpoint that cannot be written.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ipyperplexity import connect, spending
from ipyperplexity.answer import Answer
from ipyperplexity.backends import BACKENDS
from ipyperplexity.batch.cache_key import cache_key
from ipyperplexity.batch.cost_estimate import CostEstimate
from ipyperplexity.batch.enriched_table import EnrichedTable
from ipyperplexity.batch.kept_answers import KeptAnswers
from ipyperplexity.batch.on_server import ServerBatchRun
from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.batch.plan import Plan, make_plan
from ipyperplexity.batch.progress_bar import ProgressBar
from ipyperplexity.batch.prompt import Prompt
from ipyperplexity.batch.row_asker import RowAsker
from ipyperplexity.batch.run import BatchRun, Limits, own_executor
from ipyperplexity.errors import InvalidRequestError, PerplexityError, PerplexityWarning
from ipyperplexity.net.redact import redact
from ipyperplexity.option_checks import one_of, refuse, whole_number
from ipyperplexity.question import Question
from ipyperplexity.tabular.table_rows import TableRows, read_rows
from ipyperplexity.tapes import deck
from ipyperplexity.tools import Tool

if TYPE_CHECKING:
    import requests

MAX_CONCURRENCY = 256
MAX_RETRIES = 100
ON_ERROR = ("keep", "raise")
MODES = ("client", "server")


@dataclass(frozen=True)
class Asked:
    """Who asks, as it was set up when the batch was called for.

    Attributes
    ----------
    settings : connect.Settings
    make_question : callable
        ``make_question(text, **options)`` returns a checked Question with all defaults.
    timeout : float or None
        Seconds for an answer.
    budget : float or None
        US dollars that this process may spend.
    open_session : callable
        Returns the session to use in this process.
    ask : callable
        Asks a follow-up.
    """

    settings: connect.Settings
    make_question: Callable[..., Question]
    timeout: float | None
    budget: float | None
    open_session: Callable[[], requests.Session]
    ask: Callable[..., Answer]


@dataclass(frozen=True)
class BatchOptions:
    """How a batch is run; see :meth:`ipyperplexity.Client.ask_many`.

    Raises
    ------
    InvalidRequestError
        If a value is not allowed.

    Examples
    --------
    >>> BatchOptions(concurrency=4).concurrency
    4
    """

    concurrency: int = 8
    rpm: float | None = None
    max_cost: float | None = None
    retries: int = 5
    checkpoint: str | Path | None = None
    cache: bool = True
    on_error: str = "keep"
    progress: bool | Literal["auto"] = "auto"
    executor: concurrent.futures.Executor | None = None
    mode: str = "client"

    def __post_init__(self) -> None:
        for name, check in _CHECKS.items():
            object.__setattr__(self, name, check(getattr(self, name), name))


def _amount(value: Any, name: str) -> float | None:
    problem = ""
    try:
        return spending.check_amount(value, name)
    except PerplexityError as error:
        problem = error.message
    raise InvalidRequestError(problem, field=name)


def _rpm(value: Any, name: str) -> float | None:
    amount = None if value is None else _amount(value, name)
    if amount is not None and not amount > 0:
        raise refuse(name, value, "requests a minute, as a number above 0")
    return amount


def _path(value: Any, name: str) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str | Path) or not str(value).strip():
        raise refuse(name, value, "the path of a file, which need not be there yet")
    return Path(value).expanduser()


def _flag(value: Any, name: str) -> bool:
    if not isinstance(value, bool):
        raise refuse(name, value, "True or False")
    return value


def _progress(value: Any, name: str) -> bool | str:
    if isinstance(value, bool) or value == "auto":
        return bool(value) if isinstance(value, bool) else "auto"
    raise refuse(name, value, "True, False or 'auto'")


def _executor(value: Any, name: str) -> Any:
    if value is not None and not callable(getattr(value, "submit", None)):
        raise refuse(name, value, "a concurrent.futures.Executor, or None for threads")
    return value


_CHECKS: dict[str, Callable[[Any, str], Any]] = {
    "concurrency": whole_number(1, MAX_CONCURRENCY),
    "rpm": _rpm,
    "max_cost": _amount,
    "retries": whole_number(0, MAX_RETRIES),
    "checkpoint": _path,
    "cache": _flag,
    "on_error": one_of(ON_ERROR),
    "progress": _progress,
    "executor": _executor,
    "mode": one_of(MODES),
}
BATCH_OPTIONS = tuple(_CHECKS)


class Batch:
    """A batch that is ready to be run: rows, prompt and options are good.

    Parameters
    ----------
    asked : Asked
    data, prompt
        As of :meth:`ipyperplexity.Client.ask_many`.
    options : BatchOptions
    question_options : mapping
        Of each question.

    Raises
    ------
    InvalidRequestError
        If a question could not be asked so.
    """

    def __init__(
        self,
        asked: Asked,
        data: Any,
        prompt: Any,
        options: BatchOptions,
        question_options: Mapping[str, Any],
    ) -> None:
        self._asked, self._options = asked, options
        self._question_options = dict(question_options)
        backend = BACKENDS[asked.settings.backend]
        checked = asked.make_question("check", **self._question_options)
        backend.wire.request(checked)  # a model that there is not, say
        self.schema = checked.schema
        if options.executor is not None and any(isinstance(t, Tool) for t in checked.tools):
            raise refuse("tools", "functions", "none with an executor: they run in this notebook")
        self.table: TableRows = read_rows(data)
        self._prompt = Prompt.of(prompt, self.table.columns)
        self.default_model = backend.default_model
        self._base_url = connect.address(asked.settings)

    def plan(self, rows: Sequence[int] | None = None) -> Plan:
        """Return what is to be asked, for these rows alone if they are given."""
        chosen = self.table.rows if rows is None else [self.table.rows[row] for row in rows]
        return make_plan(chosen, self._question, self._key)

    def _question(self, row: Any) -> Question:
        question = self._prompt.question(row)
        if isinstance(question, Question):
            return self._asked.make_question(question)
        return self._asked.make_question(question, **self._question_options)

    def _key(self, question: Question) -> str | None:
        backend = self._asked.settings.backend
        return cache_key(question, backend, self._base_url, self.default_model)

    def kept(self) -> KeptAnswers:
        """Open the checkpoint and the cache."""
        # What the demo answers depends on what it was given to read, and costs nothing.
        use_cache = self._options.cache and self._asked.settings.backend != "demo"
        if deck.replaying() is not None:  # what is replayed is no answer of the service's
            use_cache = False
        key = self._asked.settings.key
        secrets = (key,) if key else ()
        return KeptAnswers(
            self._options.checkpoint,  # type: ignore[arg-type]
            cache=use_cache,
            hide=lambda text: redact(text, secrets),
        )

    def run(self) -> EnrichedTable:
        """Ask all rows."""
        plan = self.plan()
        outcomes = self._run(plan)
        return self._as_table(outcomes)

    def rerun(self, rows: Sequence[int], changes: Mapping[str, Any]) -> Sequence[RowOutcome]:
        """Ask some rows again, with other options if they are given."""
        again = self
        if changes:
            own = {name: value for name, value in changes.items() if name in BATCH_OPTIONS}
            of_question = {name: value for name, value in changes.items() if name not in own}
            again = Batch.__new__(Batch)
            again.__dict__.update(self.__dict__)
            again._options = dataclasses.replace(self._options, **own)
            again._question_options = {**self._question_options, **of_question}
            checked = again._asked.make_question("check", **again._question_options)
            BACKENDS[again._asked.settings.backend].wire.request(checked)
        outcomes = again._run(again.plan(rows))
        return [
            dataclasses.replace(outcome, row=row)
            for row, outcome in zip(rows, outcomes, strict=True)
        ]

    def estimate(self, n: int) -> CostEstimate:
        """Ask ``n`` questions, and tell from them what all would cost."""
        plan = self.plan()
        kept = self.kept()
        try:
            keys = [(task.key, task.question) for task in plan.tasks if task.key is not None]
            known = kept.find(keys)
        finally:
            kept.close()
        fresh = [task for task in plan.tasks if task.key not in known]
        # From all over the column: its first rows may be like each other.
        step = max(1, len(fresh) // n)
        sample = [task.rows[0] for task in fresh[::step][:n]]
        outcomes = self._run(self.plan(sample)) if sample else []
        return CostEstimate.of(
            outcomes,
            rows=plan.n_rows,
            unique=len(plan.tasks),
            cached=len(plan.tasks) - len(fresh),
            concurrency=self._options.concurrency,
            rpm=self._options.rpm,
        )

    def _run(self, plan: Plan) -> list[RowOutcome]:
        options, asked = self._options, self._asked
        free = asked.settings.backend in spending.FREE_BACKENDS
        model = self._question_options.get("model") or self.default_model
        estimate = 0.0 if free else spending.estimate_cost(model, spending.ledger()).usd
        limits = Limits(
            options.concurrency, options.rpm, options.max_cost, asked.budget, options.retries
        )
        with contextlib.ExitStack() as stack:
            kept = self.kept()
            stack.callback(kept.close)
            bar = ProgressBar(plan.n_rows, options.progress)
            stack.callback(bar.close)

            def on_progress(done: int, errors: int, spent: float, cached: int) -> None:
                bar.update(done, errors=errors, spent=spent, cached=cached)

            run: BatchRun | ServerBatchRun
            if options.mode == "server":
                run = ServerBatchRun(
                    plan,
                    connect.connect(asked.settings, asked.open_session),
                    limits,
                    kept,
                    default_model=self.default_model,
                    on_progress=on_progress,
                    estimate=estimate,
                )
            else:
                run = BatchRun(
                    plan,
                    self._asker(plan, stack),
                    limits,
                    kept,
                    self._executor(stack),
                    default_model=self.default_model,
                    on_progress=on_progress,
                    estimate=estimate,
                    learns=asked.settings.backend != "demo",
                    lookahead=0 if options.executor else min(8, options.concurrency // 4),
                    executor_is_own=options.executor is None,
                )
            outcomes = run.run()
        for outcome in outcomes:
            if outcome.answer is not None:
                outcome.answer.__dict__["_ask"] = asked.ask
        self._say(run, outcomes)
        return outcomes

    def _asker(self, plan: Plan, stack: contextlib.ExitStack) -> RowAsker:
        asked, is_here = self._asked, self._options.executor is None
        if is_here and plan.tasks:
            connect.connect(asked.settings, asked.open_session)  # no key, no question
        asker = RowAsker(asked.settings, asked.timeout, asked.open_session if is_here else None)
        stack.callback(asker.close)
        return asker

    def _executor(self, stack: contextlib.ExitStack) -> concurrent.futures.Executor:
        if self._options.executor is not None:
            return self._options.executor
        executor = own_executor(self._options.concurrency)
        stack.callback(executor.shutdown, wait=False, cancel_futures=True)
        return executor

    def _say(self, run: BatchRun | ServerBatchRun, outcomes: Sequence[RowOutcome]) -> None:
        if run.defect is not None:
            raise run.defect
        failed = next((outcome for outcome in outcomes if outcome.status == "error"), None)
        if self._options.on_error == "raise" and failed is not None and failed.error is not None:
            raise failed.error.with_traceback(None)
        if run.stopped_by:
            done = sum(outcome.status == "ok" for outcome in outcomes)
            warnings.warn(
                f"{done:,} of {len(outcomes):,} rows are done: {run.stopped_by.rstrip('.')}. The "
                "same call goes on from here.",
                PerplexityWarning,
                stacklevel=5,
            )

    def _as_table(self, outcomes: Sequence[RowOutcome]) -> EnrichedTable:
        return EnrichedTable(outcomes, index=self.table.index, schema=self.schema, rerun=self.rerun)
