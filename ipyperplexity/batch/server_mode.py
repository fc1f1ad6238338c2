"""``mode="server"``: a whole column left to the service's Batch API, for thousands of rows.

The service works it off without this process, beside the limit on requests a minute, and keeps the
results for 30 days (docs/agent-api/batch).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from ipyperplexity.batch.server_column import Outcome, ServerColumn
from ipyperplexity.batch.server_run import ServerProgress, ServerRun
from ipyperplexity.errors import InvalidRequestError, PerplexityError
from ipyperplexity.jobs.pace import Pace
from ipyperplexity.question import Question
from ipyperplexity.service import Service
from ipyperplexity.store.batch_store import BatchStore, shared_store
from ipyperplexity.wire import batches
from ipyperplexity.wire.batches import BatchState

__all__ = ["Outcome", "ServerProgress", "cancel_server_batch", "run_on_server"]

#: How often is looked; the network may be away for about half an hour.
POLL = Pace(first=2.0, most=30.0)
BACKENDS = ("agent", "demo")


def run_on_server(
    service: Service,
    questions: Sequence[Question],
    *,
    default_model: str | None = None,
    poll: Pace = POLL,
    on_progress: Callable[[ServerProgress], object] = lambda progress: None,
    on_outcome: Callable[[int, Outcome], object] = lambda row, outcome: None,
    stopped: threading.Event | None = None,
    store: BatchStore | None = None,
    max_lines: int = batches.MAX_LINES,
    max_bytes: int = batches.MAX_BYTES,
) -> list[Outcome]:
    """Leave questions to the service, wait for them, and return what became of each.

    The same call after an interrupt, a crash or a restart goes on with the batches that it finds,
    as long as the service keeps them (30 days). Questions that are the same are asked once.

    Parameters
    ----------
    service : Service
        Of the Agent API.
    questions : sequence of Question
    default_model : str, optional
        What is asked when a question names no model.
    poll : Pace
        Seconds between two looks.
    on_progress : callable
        Is given a ServerProgress at each news.
    on_outcome : callable
        ``on_outcome(row, outcome)`` is called once for each row as soon as its outcome is there.
        Only when it has returned the row counts as delivered: keep a paid answer there.
    stopped : threading.Event, optional
        Ends the waiting when it is set, as an interrupt does. The batches go on.
    store : BatchStore, optional
        Where batches are kept in mind; this user's unless given.
    max_lines, max_bytes : int
        Of one batch; what is more goes into several.

    Returns
    -------
    list of Answer or PerplexityError
        One for each question, in order. After a stop those that are not there yet are
        AbortedErrors that say how to come back.

    Raises
    ------
    InvalidRequestError
        If the backend has no batches.
    PerplexityError
        If nothing could be placed at all.
    ConfigurationError
        If it could not be kept in mind: nothing was asked then.

    Examples
    --------
    >>> import ipyperplexity, tempfile, pathlib
    >>> client = ipyperplexity.demo()
    >>> service = client._service(client._settings())
    >>> store = BatchStore(pathlib.Path(tempfile.mkdtemp()) / "batches.db")
    >>> outcomes = run_on_server(
    ...     service, [Question("What is a lambda?")], poll=Pace(0.05, 0.1), store=store
    ... )
    >>> outcomes[0].status
    'completed'
    >>> store.close()
    """
    if service.backend not in BACKENDS:
        raise InvalidRequestError(
            f"mode: got 'server' on the {service.backend} backend; allowed: on agent.",
            field="mode",
        )
    column = ServerColumn(service, questions, default_model, on_outcome)
    return ServerRun(
        column,
        service,
        poll,
        on_progress,
        stopped or threading.Event(),
        store or shared_store(),
        (max_lines, max_bytes),
    ).run()


def cancel_server_batch(
    service: Service, batch_id: str, *, store: BatchStore | None = None
) -> BatchState:
    """End a batch at the service; what it has answered by then is billed, and can be fetched.

    Parameters
    ----------
    service : Service
    batch_id : str
    store : BatchStore, optional
        As of :func:`run_on_server`.

    Raises
    ------
    InvalidRequestError
        If it has ended already, or the service does not know it; then it is forgotten here too.
    """
    store = store or shared_store()
    failure: PerplexityError | None = None
    try:
        return batches.read_batch(service.fetch(batches.cancel(batch_id)))
    except PerplexityError as error:
        failure = error
    if failure.status_code == 404:
        store.forget(batch_id)
        failure = InvalidRequestError(
            f"The service does not know the batch {batch_id}: it is forgotten here as well.",
            field="batch_id",
            status_code=404,
        )
    raise failure.with_traceback(None)
