"""What a call knows of the batches that it follows, and what of it is kept on disk."""

from __future__ import annotations

import dataclasses
import datetime as dt
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field

from ipyperplexity.errors import ConfigurationError, PerplexityError, PerplexityWarning
from ipyperplexity.store.batch_store import BatchRecord, BatchStore
from ipyperplexity.wire.batches import BatchState


@dataclass
class Placed:
    """A batch, and which of our lines it holds.

    Attributes
    ----------
    record : BatchRecord
    numbers : dict
        Number in its file by ``custom_id``.
    state : BatchState or None
        As of the last look.
    failure : PerplexityError or None
        Why it could not be followed to its end.
    is_done : bool
        Whether nothing more is to be done about it in this call.
    crossed : list of str
        Lines that were handed over and are not crossed off yet.
    """

    record: BatchRecord
    numbers: dict[str, int]
    state: BatchState | None = None
    failure: PerplexityError | None = None
    is_done: bool = False
    crossed: list[str] = field(default_factory=list)

    @property
    def status(self) -> str:
        """The batch's, as far as it is known."""
        return self.state.status if self.state else self.record.status


class BatchMemory:
    """Keeps in mind how far batches are.

    A disk that cannot be written any more is a warning here: the batch is paid for, and goes on.

    Parameters
    ----------
    store : BatchStore
    """

    def __init__(self, store: BatchStore) -> None:
        self._store = store
        self._has_warned = False

    def note(self, placed: Placed, batch_id: str | None = None) -> None:
        """Keep a batch's status, and its id once that is known."""
        status = placed.status
        if batch_id is not None or status != placed.record.status:
            placed.record = dataclasses.replace(
                placed.record,
                status=status,
                updated=dt.datetime.now(dt.UTC),
                batch_id=batch_id or placed.record.batch_id,
            )
            self._keep(lambda: self._store.put(placed.record))

    def cross_off(self, placed: Placed) -> None:
        """Cross off the lines that were handed over."""
        crossed, placed.crossed = placed.crossed, []
        if crossed:
            self._keep(lambda: self._store.cross_off(placed.record.key, crossed))

    def _keep(self, write: Callable[[], object]) -> None:
        problem = ""
        try:
            write()
        except ConfigurationError as error:
            problem = error.message
        if problem and not self._has_warned:
            self._has_warned = True
            warnings.warn(
                f"{problem} A batch may be fetched twice.", PerplexityWarning, stacklevel=2
            )
