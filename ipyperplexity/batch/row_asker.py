"""Asking one question of a batch, in this process or where an executor puts it.

What goes to another process holds no key, no session and no lock: the key is looked up where the
work runs, and the connections there are shared by all that is asked there. The address is the one
that held where the batch was called for. Nothing here waits, tries again, pays or keeps: that stays
with who gives out the work.
"""

from __future__ import annotations

import dataclasses
import os
import threading
import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ipyperplexity import connect
from ipyperplexity.answer import Answer
from ipyperplexity.answer_stream import AnswerStream, Call
from ipyperplexity.backends import BACKENDS
from ipyperplexity.errors import MissingCredentialError, PerplexityError
from ipyperplexity.net import sessions
from ipyperplexity.question import Question
from ipyperplexity.secret_patterns import hide_secrets

if TYPE_CHECKING:
    import requests


@dataclass(frozen=True)
class Attempt:
    """What came of asking once.

    Attributes
    ----------
    answer : Answer or None
        The whole one, or as much as had come.
    error : PerplexityError or None
        Why it is not whole.
    limits : mapping
        Headers of the reply that tell of the rate limit.
    elapsed_s : float
        Seconds that it took.
    defect : Exception, optional
        What went wrong in a way that no row is to blame for: then there is neither of both.
    """

    answer: Answer | None
    error: PerplexityError | None
    limits: Mapping[str, str]
    elapsed_s: float
    defect: Exception | None = None


class RowAsker:
    """Asks questions once each, of one service.

    Parameters
    ----------
    settings : connect.Settings
        Whom; its own retries do not count.
    timeout : float or None
        Seconds for an answer; None for the wire's own limit.
    open_session : callable, optional
        Returns the session to use; one of its own unless given.

    Attributes
    ----------
    is_elsewhere : bool
        Whether it came here from another process.
    """

    def __init__(
        self,
        settings: connect.Settings,
        timeout: float | None,
        open_session: Callable[[], requests.Session] | None = None,
    ) -> None:
        self.settings = dataclasses.replace(settings, max_retries=0)
        self.timeout = timeout
        self.is_elsewhere = False
        self._begin(open_session)

    def _begin(self, open_session: Callable[[], requests.Session] | None = None) -> None:
        self._open_session = open_session or self._own_session
        self._session: requests.Session | None = None
        self._lock = threading.Lock()
        self._running: weakref.WeakSet[AnswerStream] = weakref.WeakSet()
        self._stopped = False

    def __getstate__(self) -> dict[str, Any]:
        settings = dataclasses.replace(self.settings, key=None)
        if settings.backend != "demo":  # each process has its own
            # Answers are kept under this address: a worker's own variable must not lead elsewhere.
            settings = dataclasses.replace(settings, base_url=connect.address(settings))
        return {"settings": settings, "timeout": self.timeout}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.is_elsewhere = True
        # A worker gets a new asker with each question: with a session of its own, each would make
        # a connection of its own.
        self._begin(_process_session)

    def ask(self, question: Question) -> Attempt:
        """Ask once; what goes wrong is in the Attempt.

        Parameters
        ----------
        question : Question
        """
        began = time.monotonic()
        limits: dict[str, str] = {}
        failure: PerplexityError | None = None
        answer: Answer | None = None
        try:
            service = dataclasses.replace(
                connect.connect(self.settings, self._open_session), on_limits=limits.update
            )
            running = AnswerStream(
                question,
                Call(service, BACKENDS[service.backend].wire, question.timeout or self.timeout),
                # The service's whole record of each row would be most of a table's memory.
                keep_raw=False,
            )
            with running:
                with self._lock:
                    self._running.add(running)
                    stopped = self._stopped
                if stopped:
                    running.cancel()
                for _ in running:
                    pass
            answer = running.answer
            failure = answer.error
        except MissingCredentialError as error:
            failure = _missing_there(error) if self.is_elsewhere else error.with_traceback(None)
        except PerplexityError as error:
            failure = error.with_traceback(None)
            answer = error.answer
        if failure is not None:
            failure.answer = answer
        return Attempt(answer, failure, limits, time.monotonic() - began)

    def stop(self) -> None:
        """End what runs in this process, from any thread."""
        with self._lock:
            self._stopped = True
            running = list(self._running)
        for stream in running:
            stream.cancel()

    def close(self) -> None:
        """Let the connections go."""
        with self._lock:
            session, self._session = self._session, None
        if session is not None:
            session.close()

    def _own_session(self) -> requests.Session:
        with self._lock:
            if self._session is None:
                self._session = sessions.make_session()
            return self._session


def ask_row(asker: RowAsker, question: Question, ticket: str) -> Attempt:
    """Ask once: what an executor is given.

    Parameters
    ----------
    asker : RowAsker
    question : Question
    ticket : str
        Different for each call: an executor that takes calls for pure (dask's default) would
        otherwise answer the second attempt with the first one's failure.

    Returns
    -------
    Attempt
        Whatever happens: what a future raises is then the executor's own failure.
    """
    began = time.monotonic()
    defect: Exception
    try:
        return asker.ask(question)
    except Exception as error:
        defect = error
    if asker.is_elsewhere:  # not every exception can travel
        defect = PerplexityError(f"{type(defect).__name__}: {hide_secrets(str(defect))}")
    return Attempt(None, None, {}, time.monotonic() - began, defect)


def _missing_there(error: MissingCredentialError) -> MissingCredentialError:
    return MissingCredentialError(
        f"{error.message.rstrip('.')} where the executor runs the questions: none is sent along.",
        hint="Set PERPLEXITY_API_KEY in the environment of the workers.",
    )


_lock = threading.Lock()
_session: requests.Session | None = None


def _process_session() -> requests.Session:
    """Return the one session of this process for all that comes from others."""
    global _session
    with _lock:
        if _session is None:
            _session = sessions.make_session()
        return _session


def _after_fork() -> None:
    global _lock, _session
    _lock, _session = threading.Lock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
