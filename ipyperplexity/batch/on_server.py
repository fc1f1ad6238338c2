"""``mode="server"``: what is not kept is left to the service as a whole, and comes back by row."""

from __future__ import annotations

from collections.abc import Callable

from ipyperplexity import spending
from ipyperplexity.answer import Answer
from ipyperplexity.batch.kept_answers import KeptAnswers
from ipyperplexity.batch.outcome import RowOutcome
from ipyperplexity.batch.plan import Plan, Task
from ipyperplexity.batch.run import Limits, outcomes_of
from ipyperplexity.batch.server_mode import run_on_server
from ipyperplexity.errors import AbortedError, BudgetError, PerplexityError
from ipyperplexity.service import Service


class ServerBatchRun:
    """A batch that the service works off.

    Parameters
    ----------
    plan : Plan
    service : Service
    limits : Limits
        ``max_cost`` and ``budget`` are looked at once, before it is left: the service takes a
        column as a whole.
    kept : KeptAnswers
    default_model : str
    on_progress : callable
        ``on_progress(rows_done, errors, spent_usd, rows_cached)``.
    estimate : float
        US dollars that a question may cost.

    Attributes
    ----------
    spent_usd : float
    stopped_by : str
    """

    def __init__(
        self,
        plan: Plan,
        service: Service,
        limits: Limits,
        kept: KeptAnswers,
        *,
        default_model: str,
        on_progress: Callable[[int, int, float, int], object],
        estimate: float,
    ) -> None:
        self._plan, self._service, self._limits, self._kept = plan, service, limits, kept
        self._default_model, self._on_progress = default_model, on_progress
        self._estimate = estimate
        self._outcomes: dict[int, RowOutcome] = {}
        self._errors = self._cached = 0
        self.spent_usd = 0.0
        self.stopped_by = ""
        self.defect: BaseException | None = None

    def run(self) -> list[RowOutcome]:
        """Leave it, wait, and return an outcome for each row, in order.

        Raises
        ------
        BudgetError
            If the column may pass ``max_cost`` or the budget: nothing was left then.
        PerplexityError
            If it could not be left at all.
        """
        for row, error in self._plan.refused.items():
            self._outcomes[row] = RowOutcome(row, "", "error", error=error)
            self._errors += 1
        tasks = self._find_kept()
        if tasks:
            self._check_cost(len(tasks))
            run_on_server(
                self._service,
                [task.question for task in tasks],
                default_model=self._default_model,
                on_outcome=lambda place, outcome: self._take(tasks[place], outcome),
            )
        for task in tasks:  # those that a stop has left
            if any(row not in self._outcomes for row in task.rows):
                self._take(task, AbortedError("The waiting was stopped; the service goes on."))
        return [self._outcomes[row] for row in range(self._plan.n_rows)]

    def _find_kept(self) -> list[Task]:
        asked = [(task.key, task.question) for task in self._plan.tasks if task.key is not None]
        known = self._kept.find(asked)
        left = []
        for task in self._plan.tasks:
            answer = known.get(task.key) if task.key is not None else None
            if answer is None:
                left.append(task)
                continue
            self._note(outcomes_of(task, answer, None, None, cached=True))
        self._tell()
        return left

    def _check_cost(self, count: int) -> None:
        most = count * self._estimate
        cap = self._limits.max_cost
        if cap is not None and most > cap + 1e-9:
            raise BudgetError(
                f"max_cost: {count:,} questions may cost ${most:.4g}, and ${cap:.4g} is allowed. "
                "Nothing was sent.",
                field="max_cost",
                hint="Raise max_cost, or leave fewer rows to it.",
            )
        with spending.reserve(self._limits.budget, self._default_model, price=most):
            pass  # each answer is counted as it comes

    def _take(self, task: Task, outcome: Answer | PerplexityError) -> None:
        answer = outcome if isinstance(outcome, Answer) else outcome.answer
        error = answer.error if isinstance(outcome, Answer) and answer is not None else None
        if isinstance(outcome, PerplexityError):
            error = outcome
        task.attempts += 1
        if error is None and answer is not None and task.key is not None:
            self._kept.keep([(task.key, answer)])
        if answer is not None:
            spending.reserve(None, self._default_model).finish(answer, "batch")
            self.spent_usd += answer.usage.cost_usd or 0.0
        if isinstance(error, AbortedError):
            self.stopped_by = error.message
        self._note(outcomes_of(task, answer, error, None))
        self._tell()

    def _note(self, outcomes: list[RowOutcome]) -> None:
        for outcome in outcomes:
            self._outcomes[outcome.row] = outcome
            self._errors += outcome.status == "error"
            self._cached += outcome.cached

    def _tell(self) -> None:
        self._on_progress(len(self._outcomes), self._errors, self.spent_usd, self._cached)
