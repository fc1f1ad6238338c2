"""Why there is no answer of a job (yet), in words that say what becomes of the run."""

from __future__ import annotations

from ipyperplexity.answer import Answer
from ipyperplexity.errors import (
    Interrupted,
    InvalidRequestError,
    PerplexityError,
    RequestTimeout,
)
from ipyperplexity.jobs.kept import Kept
from ipyperplexity.jobs.pace import passes


def why_not(
    answer: Answer, id: str, waited: float | None, *, is_interrupted: bool
) -> BaseException:
    """Return why nobody waits for a job any more.

    Parameters
    ----------
    answer : Answer
        What came of it so far.
    id : str
        The run's.
    waited : float or None
        The seconds that were waited, if that is why.
    is_interrupted : bool
        Whether somebody pressed Ctrl-C.
    """
    goes_on = f"job.wait() waits again, job.cancel() ends it ({id})"
    if is_interrupted:
        return Interrupted(
            f"stopped waiting; the run goes on at the service: {goes_on}", answer=answer
        )
    if waited is not None:
        return RequestTimeout(
            f"The job has not ended in {waited:g} s.",
            field="timeout",
            hint=f"The run goes on at the service: {goes_on}.",
            answer=answer,
        )
    assert answer.error is not None  # it ended in no other way
    return answer.error.with_traceback(None)


def explained(failure: PerplexityError, kept: Kept) -> PerplexityError:
    """Return what a look that failed means for the job, and keep that."""
    if failure.status_code == 404:
        kept.note("unknown")
        return InvalidRequestError(
            f"The service does not know the run {kept.record.id} (any more): it is gone.",
            field="id",
            status_code=404,
            request_id=failure.request_id,
            hint="It keeps runs for about 30 days, for the account that asked. "
            "job.question has the question.",
            answer=failure.answer,
        )
    if passes(failure):
        failure.hint = "The run goes on at the service: job.wait() looks again."
    return failure.with_traceback(None)
