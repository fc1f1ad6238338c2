"""The batches of a column at the service: found or placed, waited for, fetched.

Invariant: a question is never paid for twice, and no answer that was paid for is lost. What is
about to be asked is on disk first, under the key by which the service recognizes it; a later call
finds each of its questions in the batches that hold them, and asks only the rest. A line is crossed
off when its outcome has been handed over, not before. Failures of the network touch no batch.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO

from ipyperplexity.batch.batch_memory import BatchMemory, Placed
from ipyperplexity.batch.patience import Patience
from ipyperplexity.batch.server_column import Outcome, ServerColumn
from ipyperplexity.errors import (
    AbortedError,
    ConfigurationError,
    InvalidRequestError,
    PerplexityError,
)
from ipyperplexity.jobs.pace import Pace
from ipyperplexity.service import Service
from ipyperplexity.store.batch_store import BatchRecord, BatchStore
from ipyperplexity.wire import batch_results, batches
from ipyperplexity.wire.batch_results import Result
from ipyperplexity.wire.batches import BatchState

#: Times that a file or a batch is tried to be handed in before anything is running.
_PLACING_TRIES = 4
#: Questions that the service may refuse one by one before the whole is given up.
_MOST_REFUSED = 20
#: Outcomes after which their lines are crossed off together.
_CROSSED_AT_ONCE = 100


@dataclass(frozen=True)
class ServerProgress:
    """How far the batches of a column are.

    Attributes
    ----------
    status : str
        Of the batch that is least far; ``placing`` before there is one.
    done, total : int
        Questions that are answered or have failed, and all.
    batch_ids : tuple of str
    problem : str
        Why the service cannot be asked just now, if so.
    """

    status: str
    done: int
    total: int
    batch_ids: tuple[str, ...] = ()
    problem: str = ""


class ServerRun:
    """One call: finds and places batches, waits for them, fetches what they brought.

    Parameters
    ----------
    column : ServerColumn
    service : Service
    poll : Pace
    on_progress : callable
        Is given a ServerProgress at each news.
    stopped : threading.Event
    store : BatchStore
    limits : (int, int)
        Lines and bytes of one batch.
    """

    def __init__(
        self,
        column: ServerColumn,
        service: Service,
        poll: Pace,
        on_progress: Callable[[ServerProgress], object],
        stopped: threading.Event,
        store: BatchStore,
        limits: tuple[int, int],
    ) -> None:
        self._column, self._service, self._poll = column, service, poll
        self._on_progress, self._stopped, self._store = on_progress, stopped, store
        self._patience = Patience(poll, stopped, self._tell)
        self._memory = BatchMemory(store)
        self._max_lines, self._max_bytes = limits
        self._placed: list[Placed] = []
        self._failure: PerplexityError | None = None
        self._told: ServerProgress | None = None

    def run(self) -> list[Outcome]:
        """Return what became of each question."""
        is_stopped = False
        try:
            left = self._find()
            self._place_all(left)
            self._wait()
        except (KeyboardInterrupt, AbortedError):
            is_stopped = True
        if self._failure is not None and not self._placed:
            raise self._failure.with_traceback(None)
        holders = {name: placed for placed in self._placed for name in placed.numbers}
        return self._column.finish(
            lambda name: self._why_not(holders.get(name), is_stopped=is_stopped)
        )

    def _why_not(self, placed: Placed | None, *, is_stopped: bool) -> PerplexityError:
        if placed is not None and placed.failure is not None:
            return placed.failure
        if not is_stopped and self._failure is not None:
            return self._failure
        if placed is None:
            return AbortedError("Stopped before this question was sent.")
        name = placed.record.batch_id
        if name is None:
            return AbortedError(
                "Stopped while the batch was handed in; it may run, and be billed.",
                hint="The same call goes on from here.",
            )
        return AbortedError(
            f"Stopped waiting; the batch {name} goes on at the service, and is billed.",
            hint=f"The same call fetches it; client.cancel_batch({name!r}) ends it.",
        )

    # --- placing -------------------------------------------------------------------------------

    def _find(self) -> list[str]:
        """Take up the batches that hold our lines; return the lines that none holds."""
        left = dict.fromkeys(self._column.custom_ids)
        for record, numbers in self._store.holding(self._service.base_url, left):
            placed = Placed(record, numbers)
            self._placed.append(placed)
            if record.batch_id is None and not self._create_again(placed):
                self._placed.remove(placed)
                continue
            for name in numbers:
                del left[name]
        return list(left)

    def _create_again(self, placed: Placed) -> bool:
        """Make a batch for a file whose batch nobody has heard of; False if the file is gone."""
        failure: PerplexityError | None = None
        try:
            self._create(placed)
        except InvalidRequestError as error:
            failure = error
        if failure is None:
            return True
        self._store.forget(placed.record.key)
        return False

    def _place_all(self, custom_ids: list[str]) -> None:
        """Hand the lines in, in as many batches as it takes."""
        refusals = 0
        while custom_ids and self._failure is None:
            self._tell()
            failure: PerplexityError | None = None
            with tempfile.TemporaryFile() as file:
                part, custom_ids = self._write(file, custom_ids)
                try:
                    if part:
                        self._place(file, part)
                except (AbortedError, ConfigurationError):
                    raise
                except PerplexityError as error:
                    failure = error
            if failure is None:
                continue
            number = batches.refused_line(failure) or 0
            if not 1 <= number <= len(part) or refusals == _MOST_REFUSED:
                self._failure = failure
                return
            # One question that cannot be asked does not keep the others from being.
            refusals += 1
            self._column.settle(part.pop(number - 1), failure.with_traceback(None))
            custom_ids = part + custom_ids

    def _write(self, file: BinaryIO, custom_ids: list[str]) -> tuple[list[str], list[str]]:
        """Write lines until a batch is full; return those that are in it, and the rest."""
        part: list[str] = []
        size = 0
        for place, name in enumerate(custom_ids):
            data = self._column.line(name)
            if len(data) > self._max_bytes:
                too_long = f"The question has {len(data):,} bytes; a batch {self._max_bytes:,}."
                self._column.settle(name, InvalidRequestError(too_long, field="text"))
                continue
            if len(part) == self._max_lines or size + len(data) > self._max_bytes:
                return part, custom_ids[place:]
            file.write(data)
            part.append(name)
            size += len(data)
        return part, []

    def _place(self, file: BinaryIO, part: list[str]) -> None:
        base_url = self._service.base_url
        fingerprint = _digest(*part)
        # A column that is asked again on purpose, after its batch was delivered, is a new one.
        turn = self._store.count(base_url, fingerprint)
        key = _digest(base_url, fingerprint, str(turn))
        reply = self._patience.call(
            lambda: self._service.upload(
                batches.FILES_PATH,
                batches.FILE_FIELDS,
                batches.FILE_NAME,
                file,
                stopped=self._stopped,
            ),
            _PLACING_TRIES,
        )
        record = BatchRecord(
            key, base_url, fingerprint, batches.read_file(reply), n_lines=len(part)
        )
        numbers = {name: number for number, name in enumerate(part, 1)}
        placed = Placed(record, numbers)
        self._store.put(record, part)
        self._placed.append(placed)
        try:
            self._create(placed)
        except InvalidRequestError:
            # It was refused, so there is none under this key.
            self._placed.remove(placed)
            self._store.forget(key)
            raise

    def _create(self, placed: Placed) -> None:
        record = placed.record
        request = batches.create(record.file_id, record.key)
        failure: PerplexityError | None = None
        try:
            # The key makes it safe to ask again whatever became of the first time.
            placed.state = self._patience.call(
                lambda: batches.read_batch(self._service.fetch(request, stopped=self._stopped)),
                _PLACING_TRIES,
            )
        except PerplexityError as error:
            failure = error.with_traceback(None)
        if failure is not None:
            if not isinstance(failure, InvalidRequestError | AbortedError):
                failure.hint = f"{failure.hint or ''} The same call goes on from here.".strip()
                placed.failure, placed.is_done = failure, True
            raise failure
        assert placed.state is not None
        self._memory.note(placed, batch_id=placed.state.id)

    # --- waiting -------------------------------------------------------------------------------

    def _wait(self) -> None:
        """Look at the batches until all have ended, and fetch each as soon as it has."""
        looks = 0
        while True:
            for placed in self._placed:
                if not placed.is_done:
                    self._follow(placed)
            self._tell()
            if all(placed.is_done for placed in self._placed):
                return
            self._patience.pause(self._poll.delay(looks))
            looks += 1

    def _follow(self, placed: Placed) -> None:
        """Look at a batch, and fetch what it brought if it has ended."""
        failure: PerplexityError | None = None
        try:
            request = batches.look(placed.record.batch_id or "")
            placed.state = self._patience.call(
                lambda: batches.read_batch(self._service.fetch(request, stopped=self._stopped)),
                self._poll.patience,
            )
            self._memory.note(placed)
            if placed.state.is_over:
                self._collect(placed, placed.state)
                placed.is_done = True
        except (AbortedError, ConfigurationError):
            raise
        except PerplexityError as error:
            failure = error
        if failure is not None:
            placed.failure, placed.is_done = _explained(failure, placed), True

    def _collect(self, placed: Placed, state: BatchState) -> None:
        """Hand over what both files hold; what they lack has the end of the batch as its reason."""
        left = dict(placed.numbers)
        try:
            for attempt in (1, 2):
                for result in batch_results.read_results(self._lines(state), list(left)):
                    self._deliver(placed, result)
                    del left[result.custom_id]
                # Of a completed batch a file without all lines may have been cut on its way.
                if not left or state.status != "completed" or attempt == 2:
                    break
            for name, number in left.items():
                self._deliver(placed, Result(name, error=state.why_missing(number)))
        finally:
            self._memory.cross_off(placed)

    def _lines(self, state: BatchState) -> Iterator[bytes]:
        for file_id in filter(None, (state.output_file_id, state.error_file_id)):
            fetch = functools.partial(self._fetched, file_id)
            yield from self._patience.call(fetch, self._poll.patience)

    def _fetched(self, file_id: str) -> Iterator[bytes]:
        lines = self._service.download_lines(batches.content(file_id), stopped=self._stopped)
        first = list(itertools.islice(lines, 1))  # now, so that a failure is met here
        return itertools.chain(first, lines)

    def _deliver(self, placed: Placed, result: Result) -> None:
        self._column.settle(result.custom_id, self._column.read(result, placed.record.created))
        placed.crossed.append(result.custom_id)
        if len(placed.crossed) >= _CROSSED_AT_ONCE:
            self._memory.cross_off(placed)
            self._tell()
        if self._stopped.is_set():
            raise AbortedError("The waiting was stopped.")

    # --- telling -------------------------------------------------------------------------------

    def _tell(self) -> None:
        running = [placed for placed in self._placed if not placed.is_done] or self._placed
        going = [placed.state for placed in running if placed.state and not placed.is_done]
        n_done = self._column.n_done + sum(state.completed + state.failed for state in going)
        names = [placed.record.batch_id for placed in self._placed]
        progress = ServerProgress(
            min((placed.status for placed in running), key=_rank, default="placing"),
            min(n_done, len(self._column)),
            len(self._column),
            tuple(name for name in names if name is not None),
            self._patience.problem,
        )
        if progress != self._told:
            self._told = progress
            self._on_progress(progress)


_ORDER = ("placing", *batches.RUNNING, *batches.ENDED)


def _rank(status: str) -> int:
    return _ORDER.index(status) if status in _ORDER else 0


def _digest(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _explained(failure: PerplexityError, placed: Placed) -> PerplexityError:
    """Return what it means for a batch that it could not be followed to its end."""
    name = placed.record.batch_id
    if failure.status_code == 404:
        return InvalidRequestError(
            f"The service does not know the batch {name}, or not its results any more.",
            field="batch_id",
            status_code=404,
            request_id=failure.request_id,
            hint="Was it another account's key? If it is gone, client.cancel_batch"
            f"({name!r}) forgets it, and the same call asks again.",
        )
    failure.hint = f"The batch {name} goes on at the service: the same call looks again."
    return failure.with_traceback(None)
