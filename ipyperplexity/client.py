"""Client: ask, stream, search, submit, and what is configured.

A client is safe to use from several threads. Settings are looked up when a question is asked and
hold for that question to its end: a key never goes to a base URL that was changed meanwhile.
Order: argument, environment, settings file, default. The key is never shown and never pickled.
"""

from __future__ import annotations

import dataclasses
import itertools
import os
import threading
import warnings
import weakref
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload
from urllib.parse import urlsplit

from ipyperplexity import connect, demo_engine, spending, web_notice
from ipyperplexity.answer import Answer
from ipyperplexity.answer_stream import AnswerStream, Call
from ipyperplexity.auth.keys import KEY_VARIABLES, as_secret
from ipyperplexity.auth.login import credential_report
from ipyperplexity.backends import (
    BACKEND_VARIABLE,
    BACKENDS,
    DEFAULT_BACKEND,
    MODEL_VARIABLE,
    Status,
    known_backend,
)
from ipyperplexity.errors import (
    AbortedError,
    ConfigurationError,
    Interrupted,
    InvalidRequestError,
    MissingCredentialError,
    PerplexityError,
    PerplexityWarning,
    RequestTimeout,
    ServerError,
    StreamError,
)
from ipyperplexity.net import sessions
from ipyperplexity.net.address import check_base_url, is_loopback, shown
from ipyperplexity.net.redact import Secret
from ipyperplexity.option_checks import whole_number
from ipyperplexity.question import OPTIONS, Question, beside
from ipyperplexity.search_query import OTHER_NAMES, SEARCH_OPTIONS, SearchQuery, search_defaults
from ipyperplexity.service import Service
from ipyperplexity.spending import check_amount
from ipyperplexity.stored_settings import load_settings, settings_for, settings_path
from ipyperplexity.wire import agent

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import Executor

    import requests

    from ipyperplexity.batch.ask_many import Batch
    from ipyperplexity.batch.cost_estimate import CostEstimate
    from ipyperplexity.batch.enriched_table import EnrichedTable
    from ipyperplexity.jobs import Job, Jobs
    from ipyperplexity.models_table import ModelInfo, Models
    from ipyperplexity.search_results import SearchResults
    from ipyperplexity.sources import Sources
    from ipyperplexity.spending import UsageTable
    from ipyperplexity.store.job_store import JobRecord


class Client:
    """Asks questions, searches, and fetches what was asked for earlier.

    Parameters
    ----------
    api_key : str, optional
        Else ``PERPLEXITY_API_KEY`` (or ``PPLX_API_KEY``), else the key of ``%perplexity login``;
        read anew for each question.
    backend : str, optional
        ``agent`` (default), ``chat``, ``web`` or ``demo``; else ``IPYPERPLEXITY_BACKEND``.
    base_url : str, optional
        Else ``PERPLEXITY_BASE_URL``, else the official address.
    model : str, optional
        Default for questions that name none; else ``IPYPERPLEXITY_MODEL``, else the preset ``low``.
    timeout : float, optional
        Seconds that a whole answer may take. If not given 900; on the web backend 90, and 600 for
        deep research.
    max_retries : int, optional
        How often a request that failed before its answer began is sent again; 2 if not given.
    session : requests.Session, optional
        To use instead of the client's own (proxies, certificates, adapters).
    allow_http : bool
        Allow plain http to another machine, where the key can be read on the way.
    budget : float, optional
        US dollars that this process may spend, over all clients: a question that would pass it is
        refused.

    Raises
    ------
    ConfigurationError
        If an argument is not valid.

    Examples
    --------
    >>> client = Client(backend="demo")
    >>> answer = client.ask("What does the with statement do?")
    >>> answer.sources[0].domain
    'docs.python.org'
    """

    def __init__(
        self,
        api_key: str | None = None,
        backend: str | None = None,
        base_url: str | None = None,
        model: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        session: requests.Session | None = None,
        *,
        allow_http: bool = False,
        budget: float | None = None,
    ) -> None:
        # From here on no local variable holds the key: a traceback may show them.
        api_key = Secret(api_key.strip()) if isinstance(api_key, str) else api_key  # type: ignore
        self._key = as_secret(api_key, "the api_key argument")
        self._backend = known_backend(backend, "backend") if backend is not None else None
        self._allow_http = allow_http
        self._base_url = (
            check_base_url(base_url, allow_http=allow_http) if base_url is not None else None
        )
        if self._base_url is not None and self._backend == "demo":
            raise ConfigurationError(
                "base_url: the demo backend has its own address; leave base_url out.",
                field="base_url",
            )
        _check_defaults(model=model, timeout=timeout)
        self._model, self._timeout = model, timeout
        self._max_retries = _check_retries(max_retries)
        if session is not None and not callable(getattr(session, "request", None)):
            raise ConfigurationError(
                f"session: got {type(session).__name__}; allowed: a requests.Session.",
                field="session",
            )
        self._budget = check_amount(budget, "budget")
        self._given_session = session
        self._session = session
        self._lock = threading.Lock()
        # Weakly: a stream that nobody holds any more is over.
        self._running: weakref.WeakSet[AnswerStream] = weakref.WeakSet()
        self._last: Answer | None = None
        _clients.add(self)

    def ask(self, text: str | Question, *, stream: bool = True, **options: Any) -> Answer:
        """Ask, and wait for the whole answer.

        Parameters
        ----------
        text : str or Question
            The question.
        stream : bool
            Whether to have it streamed on the way, so that a broken answer keeps its text.
        **options
            See :class:`~ipyperplexity.question.Question`.

        Raises
        ------
        PerplexityError
            With ``error.answer`` holding what had arrived.
        Interrupted
            On Ctrl-C (a ``KeyboardInterrupt``), likewise.

        Examples
        --------
        >>> answer = Client(backend="demo").ask("What is a lambda?", limit=3)
        >>> len(answer.sources)
        3
        """
        interrupted = False
        with self.stream(text, stream=stream, **options) as running:
            try:
                answer = running.answer
            except KeyboardInterrupt:
                interrupted = True
        if interrupted:
            raise Interrupted("stopped; error.answer holds what came", answer=running.answer)
        if answer.status == "stopped" and isinstance(answer.error, AbortedError):
            raise answer.error
        for warning in answer.warnings:
            warnings.warn(warning, PerplexityWarning, stacklevel=2)
        return answer

    def stream(self, text: str | Question, *, stream: bool = True, **options: Any) -> AnswerStream:
        """Ask, and take the answer as it is written.

        Returns
        -------
        AnswerStream
            To iterate for events; a context manager that stops the answer when it is left.

        Raises
        ------
        ConfigurationError, InvalidRequestError
            At once, before anything is sent.

        Examples
        --------
        >>> from ipyperplexity.events import TextDelta
        >>> with Client(backend="demo").stream("What is a lambda?") as running:
        ...     first = next(event.text for event in running if isinstance(event, TextDelta))
        >>> running.answer.status
        'stopped'
        """
        settings = self._settings()
        question = self.question(text, **options)
        return self._start(self._service(settings), question, stream)

    def _start(self, service: Service, question: Question, stream: bool) -> AnswerStream:
        backend = BACKENDS[service.backend]
        running = AnswerStream(
            question,
            Call(service, backend.wire, question.timeout or self._timeout),
            streaming=stream,
            hand_over=lambda answer: self._hand_over(answer, reserved),
        )
        # Afterwards: what cannot be asked is said before what it would cost.
        asked = question.model or backend.default_model
        reserved = spending.reserve(self._budget_for(service), asked)
        if service.backend == "web":
            running.warnings += web_notice.web_notice.take()
        with self._lock:
            self._running.add(running)
        return running

    def question(self, text: str | Question, **options: Any) -> Question:
        """Return a checked Question with this client's defaults, without asking it.

        Raises
        ------
        InvalidRequestError
            If an option is unknown, or its value not allowed.
        """
        model = self._default_model()
        if isinstance(text, Question):
            if options:
                raise TypeError("options go into the Question, not beside it")
            names_one = text.model is not None or any(
                field in text.extra for field in agent.WHO_ANSWERS
            )
            model = model or self._stored_options(("model",)).get("model")
            return dataclasses.replace(text, model=model) if model and not names_one else text
        own = {"model": model, "timeout": self._timeout}
        own = {name: value for name, value in own.items() if value is not None}
        given = {name: value for name, value in options.items() if value is not None}
        stored = beside(self._stored_options(OPTIONS), given | own)
        return Question.make(text, **{**options, **beside({**stored, **own}, given)})

    @overload
    def search(self, query: str, **options: Any) -> Sources: ...
    @overload
    def search(self, query: Sequence[str], **options: Any) -> SearchResults: ...
    def search(self, query: str | Sequence[str], **options: Any) -> Sources | SearchResults:
        """Search the web, without an answer being written (the Search API).

        Parameters
        ----------
        query : str, or list of str
            One to five queries.
        **options
            See :class:`~ipyperplexity.search_query.SearchQuery`, such as ``max_results``.

        Returns
        -------
        Sources
            Of one query; of a list the :class:`~ipyperplexity.SearchResults`, by query.

        Raises
        ------
        InvalidRequestError
            At once, before anything is sent.
        PerplexityError
            As :meth:`ask`.

        Examples
        --------
        >>> Client(backend="demo").search("lambda", max_results=2)["domain"]
        ['docs.python.org', 'docs.python.org']
        """
        from ipyperplexity.searching import search

        settings = self._settings()
        if settings.backend == "web":
            raise ConfigurationError(
                "search: the web backend has none; the Search API needs an API key.",
                field="backend",
                hint="Client(backend='agent').search(...); in a notebook %perplexity -b search.",
            )
        given = {name: value for name, value in options.items() if value is not None}
        defaults = search_defaults(self._stored_options(SEARCH_OPTIONS, OTHER_NAMES), given)
        asked = SearchQuery.make(query, **{**defaults, **given})
        service = self._service(settings)
        return search(service, asked, self._budget_for(service), asked.timeout or self._timeout)

    def submit(self, text: str | Question, *, stream: bool = False, **options: Any) -> Job:
        """Leave a question to the service, to be fetched later, also after a restart.

        Parameters
        ----------
        text : str or Question
            The question.
        stream : bool
            Whether its text can be watched while it is written, with ``job.stream()``.
        **options
            See :class:`~ipyperplexity.question.Question`.

        Raises
        ------
        ConfigurationError
            If the backend has no such thing, or as :meth:`ask`.

        Examples
        --------
        >>> job = Client(backend="demo").submit("What is a lambda?", model="high")
        >>> job.wait().status
        'completed'
        """
        from ipyperplexity.jobs import Job

        settings = self._settings()
        if not BACKENDS[settings.backend].has_jobs:
            able = ", ".join(name for name, backend in BACKENDS.items() if backend.has_jobs)
            raise ConfigurationError(
                f"background: the {settings.backend} backend has none; allowed: {able}.",
                field="backend",
                hint="Client(backend='agent').submit(...); in a cell -b agent --background.",
            )
        question = self.question(text, **options)
        service, backend = self._service(settings), BACKENDS[settings.backend]
        backend.wire.request(question)  # what cannot be asked is said before what it would cost
        asked = question.model or backend.default_model
        reserved = spending.reserve(self._budget_for(service), asked)
        job: Job | None = None
        cost: float | None = 0.0
        try:
            job = Job.submit(
                service,
                question,
                stream=stream,
                service_of=self._service_of_job,
                hand_over=lambda answer, is_new: self._hand_over_job(answer, reserved, is_new),
            )
        except (Interrupted, RequestTimeout, StreamError, ServerError):
            cost = None  # it may have arrived, and run
            raise
        finally:
            if job is None:
                reserved.settle(cost)
            else:
                reserved.hold()
        return job

    def ask_many(
        self,
        data: Any,
        prompt: str | Callable[[Any], str | Question] | None = None,
        *,
        schema: Any = None,
        concurrency: int = 8,
        rpm: float | None = None,
        max_cost: float | None = None,
        retries: int = 5,
        checkpoint: str | os.PathLike[str] | None = None,
        cache: bool = True,
        on_error: str = "keep",
        progress: bool | str = "auto",
        executor: Executor | None = None,
        mode: str = "client",
        **options: Any,
    ) -> EnrichedTable:
        """Ask a question of each row of a table.

        Each answer is on disk before it is counted, so the same call after an interrupt, a crash or
        a restart goes on where it was. Questions that are the same are asked once. An interrupt
        gives the table as far as it is.

        Parameters
        ----------
        data : frame, Series, or iterable of str, dict or tuple
            pandas, polars, Arrow, or anything that narwhals reads.
        prompt : str or callable, optional
            A template over the columns (``"Who runs {company}?"``), or a function of a row that
            returns text or a Question. Of a list of texts each is a question unless it is given.
        schema : object, optional
            Form of each answer; its fields become typed columns.
        concurrency : int
            Questions at once, 1 to 256.
        rpm : float, optional
            Requests a minute that the service allows; learned from its replies if not given.
        max_cost : float, optional
            US dollars: what would pass it is not sent, and its rows are ``skipped``.
        retries : int
            How often a question is sent again, also when its answer broke off.
        checkpoint : path, optional
            A file (sqlite) to keep the answers in; made if it is not there.
        cache : bool
            Whether to use the answers of the last seven days, whatever batch asked for them.
        on_error : str
            ``keep`` the failures as rows, or ``raise`` the first of them once all is done.
        progress : bool or str
            A bar with rows, errors, dollars and time left; ``auto``: where somebody watches.
        executor : concurrent.futures.Executor, optional
            Where the work runs, such as dask's ``Client.get_executor(pure=False)``; threads here if
            not given. The key is looked up there; pace, budget and checkpoint stay here.
        mode : str
            ``client``, or ``server``: the whole column is left to the service's Batch API.
        **options
            Of each question; see :class:`~ipyperplexity.question.Question`.

        Returns
        -------
        EnrichedTable
            A row a question: ``df.join(table.to_pandas())``.

        Raises
        ------
        InvalidRequestError, ConfigurationError
            At once, before anything is sent.

        Examples
        --------
        >>> client = Client(backend="demo")
        >>> table = client.ask_many(["lambda", "yield"], "What is {value}?", limit=2)
        >>> table["status"]
        ['ok', 'ok']
        """
        batch_options = {
            **{"concurrency": concurrency, "rpm": rpm, "max_cost": max_cost, "retries": retries},
            **{"checkpoint": checkpoint, "cache": cache, "on_error": on_error},
            **{"progress": progress, "executor": executor, "mode": mode},
        }
        return self._batch(data, prompt, batch_options, {"schema": schema, **options}).run()

    def estimate(
        self,
        data: Any,
        prompt: str | Callable[[Any], str | Question] | None = None,
        *,
        n: int = 3,
        **options: Any,
    ) -> CostEstimate:
        """Ask a few questions of a column, and tell what all of them would cost.

        The answers are kept like those of :meth:`ask_many`, so they are not paid for twice.

        Parameters
        ----------
        data, prompt
            As of :meth:`ask_many`.
        n : int
            How many to ask, 1 to 100.
        **options
            Of :meth:`ask_many`.

        Examples
        --------
        >>> Client(backend="demo").estimate(["lambda", "yield"], "What is {value}?", n=1).rows
        2
        """
        from ipyperplexity.batch.ask_many import BATCH_OPTIONS

        count = whole_number(1, 100)(n, "n")
        batch_options = {name: value for name, value in options.items() if name in BATCH_OPTIONS}
        of_question = {name: value for name, value in options.items() if name not in BATCH_OPTIONS}
        return self._batch(data, prompt, batch_options, of_question).estimate(count or 1)

    def cancel_batch(self, batch_id: str) -> str:
        """End a column that was left to the service with ``mode="server"``.

        What is done by then is paid for, and the same call of :meth:`ask_many` fetches it.

        Parameters
        ----------
        batch_id : str
            As the hint of an interrupted call names it.

        Returns
        -------
        str
            Its status, such as ``cancelling``.

        Raises
        ------
        InvalidRequestError
            If there is no such batch, or the backend has none.

        Examples
        --------
        ::

            client.cancel_batch("batch_6f3c")
        """
        from ipyperplexity.batch.server_mode import cancel_server_batch

        return cancel_server_batch(self._service(self._settings()), batch_id).status

    def _batch(
        self, data: Any, prompt: Any, batch_options: dict[str, Any], options: dict[str, Any]
    ) -> Batch:
        from ipyperplexity.batch.ask_many import Asked, Batch, BatchOptions

        settings = self._settings()
        asked = Asked(
            settings,
            self.question,
            self._timeout,
            self._budget_at(settings.backend, connect.address(settings)),
            self._open_session,
            self.ask,
        )
        return Batch(asked, data, prompt, BatchOptions(**batch_options), options)

    def jobs(self) -> Jobs:
        """Return what was submitted on this machine, newest first, whatever client did it.

        Raises
        ------
        ConfigurationError
            If the list cannot be read.
        """
        from ipyperplexity.jobs import Jobs

        def hand_over(answer: Answer, is_new: bool) -> None:
            reserved = spending.reserve(None, answer.options.get("model") or answer.model or "")
            self._hand_over_job(answer, reserved, is_new)

        return Jobs.load(self._service_of_job, hand_over=hand_over)

    def models(self) -> Models:
        """Return the models that can be asked, with prices and what each cost last.

        Raises
        ------
        PerplexityError
            As :meth:`ask`.

        Examples
        --------
        >>> Client(backend="demo").models()["name"][:3]
        ['fast', 'low', 'medium']
        """
        from ipyperplexity import models_table
        from ipyperplexity.wire import consumer, consumer_constants

        settings = self._settings()
        backend = BACKENDS[settings.backend]
        if backend.wire is consumer.WIRE:  # which lists none
            infos = tuple(
                models_table.ModelInfo(slug, label=label)
                for slug, label in consumer_constants.MODELS.items()
            )
        else:
            infos = _listed(self._service(settings), with_presets=backend.wire is agent.WIRE)
        return models_table.Models(infos, spending.ledger().last_costs())

    def usage(self, *, everything: bool = False) -> UsageTable:
        """Return this notebook's requests with their tokens and costs.

        Parameters
        ----------
        everything : bool
            Those of all notebooks and programs of this user instead.

        Examples
        --------
        >>> client = Client(backend="demo")
        >>> answer = client.ask("What is a lambda?")
        >>> client.usage()["question"][-1]
        'What is a lambda?'
        """
        return spending.usage(everything=everything)

    def status(self) -> Status:
        """Say what is configured, without asking the service.

        Examples
        --------
        >>> Client(backend="demo").status().state
        'ready'
        """
        name, model = "", None
        state, problem, hint, credential, url = "ready", "", "", "", ""
        try:
            name, model = self._backend_name(), self._default_model()
            settings = self._settings()
            backend = BACKENDS[name]
            model = model or settings_for(name).get("model") or backend.default_model
            url = shown(connect.address_unchecked(settings))
            credential = connect.credential_origin(settings)
            if name != "demo":  # which would start
                self._service(settings)
            backend.wire.request(Question("check", model=model))
        except MissingCredentialError as error:
            state, problem, hint = "missing-credential", error.message, error.hint or ""
        except PerplexityError as error:
            state, problem, hint = "misconfigured", error.message, error.hint or ""
        if name == "demo":
            url = demo_engine.shared.url or "on this machine; starts with the first question"
        kind = BACKENDS[name].credential if name in BACKENDS else ""
        others = credential_report()
        others.pop("web login" if kind == "web login" else "API key" if "key" in kind else "", None)
        return Status(
            state, name, url, model or "", credential, problem, hint, others=tuple(others.items())
        )

    @property
    def backend(self) -> str:
        """Name of the backend that the next question goes to.

        Raises
        ------
        ConfigurationError
            If there is none of the name that is set.
        """
        return self._known_backend()

    @property
    def last(self) -> Answer | None:
        """The newest answer of this client, also a broken or stopped one."""
        return self._last

    def close(self) -> None:
        """Stop what runs and let the connections go. The client can be used again."""
        with self._lock:
            running = [known for known in self._running if not known.done]
            session, self._session = self._session, self._given_session
        for answer in running:
            answer.cancel()
        if session is not None and session is not self._given_session:
            session.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __repr__(self) -> str:
        # `get`: a traceback may show a client whose arguments were refused.
        given = {name: self.__dict__.get(f"_{name}") for name in _SHOWN}
        shown = ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)
        return f"Client({shown})"

    def __getstate__(self) -> dict[str, Any]:
        # The key stays here, and so do sockets: where the client arrives it finds its own.
        keep = ("_backend", "_allow_http", "_base_url", "_model", "_timeout", "_max_retries")
        return {name: self.__dict__[name] for name in (*keep, "_budget")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._key = self._given_session = self._last = None
        self._forget_connections()
        _clients.add(self)

    def __copy__(self) -> Client:
        # A copy stays in this process, and so does the key that it was given.
        other = Client.__new__(Client)
        other.__setstate__(self.__getstate__())
        other._key, other._given_session, other._session = (
            self._key,
            self._given_session,
            self._given_session,
        )
        return other

    def __deepcopy__(self, memo: Any) -> Client:
        return self.__copy__()

    def _forget_connections(self) -> None:
        self._lock = threading.Lock()
        self._running = weakref.WeakSet()
        self._session = self._given_session

    # --- how a question finds its way ---------------------------------------------------------

    def _backend_name(self) -> str:
        stored = load_settings().get("backend")
        return self._backend or os.environ.get(BACKEND_VARIABLE) or stored or DEFAULT_BACKEND

    def _default_model(self) -> str | None:
        return self._model or os.environ.get(MODEL_VARIABLE) or None

    def _stored_options(self, *known: Iterable[str]) -> dict[str, Any]:
        """Return the settings file's defaults of these names."""
        names = set(itertools.chain(*known))
        stored = settings_for(self._known_backend())
        return {name: value for name, value in stored.items() if name in names}

    def _known_backend(self) -> str:
        given = self._backend or os.environ.get(BACKEND_VARIABLE)
        origin = "backend" if self._backend else BACKEND_VARIABLE if given else str(settings_path())
        return known_backend(self._backend_name(), origin)

    def _settings(self, backend: str | None = None) -> connect.Settings:
        stored = load_settings()
        retries = self._max_retries
        return connect.Settings(
            backend or self._known_backend(),
            self._base_url,
            self._key,
            self._allow_http,
            stored.get("max_retries", DEFAULT_RETRIES) if retries is None else retries,
            stored.get("base_url"),
        )

    def _service(self, settings: connect.Settings) -> Service:
        return connect.connect(settings, self._open_session)

    def _service_of_job(self, record: JobRecord) -> Service:
        settings = self._settings(known_backend(record.backend, f"the job {record.id}"))
        if record.backend == "demo" and demo_engine.shared.url != record.base_url:
            raise ConfigurationError(
                f"The job {record.id} was left to a demo engine that has ended.",
                field="backend",
                hint="job.forget() takes it off the list; ask again to have an answer.",
            )
        if connect.address(settings) != record.base_url:
            # Whoever can write the list of jobs must not choose where the key goes.
            raise ConfigurationError(
                f"The job {record.id} was left to {shown(record.base_url)}, "
                "and this client asks another address.",
                field="base_url",
                hint="Set base_url (or PERPLEXITY_BASE_URL) to that address to look at it.",
            )
        return self._service(settings)

    def _budget_for(self, service: Service) -> float | None:
        return self._budget_at(service.backend, service.base_url)

    def _budget_at(self, backend: str, base_url: str) -> float | None:
        """Return the budget, where questions are billed one by one."""
        local = is_loopback(urlsplit(base_url).hostname or "")
        if backend in spending.FREE_BACKENDS or (backend == "chat" and local):
            return None
        stored: float | None = load_settings().get("budget")
        return stored if self._budget is None else self._budget

    def _open_session(self) -> requests.Session:
        with self._lock:
            if self._session is None:
                self._session = sessions.make_session()
            return self._session

    def _hand_over(self, answer: Answer, reserved: spending.Reservation) -> None:
        if not answer.text:  # a failure shows no warnings
            web_notice.web_notice.give_back(answer.warnings)
        answer.__dict__["_ask"] = self.ask
        self._last = answer
        reserved.finish(answer)

    def _hand_over_job(self, answer: Answer, reserved: spending.Reservation, is_new: bool) -> None:
        answer.__dict__["_ask"] = self.ask
        self._last = answer
        if is_new:
            reserved.finish(answer, "job")
        else:  # it was counted when it was new
            reserved.settle(0.0)


#: All clients of this process, to make them safe after a fork.
_clients: weakref.WeakSet[Client] = weakref.WeakSet()


def _after_fork() -> None:
    """In a forked child: leave the parent's sockets to the parent, and its held locks behind.

    Two processes that read one socket would get each other's answers.
    """
    demo_engine.shared = demo_engine.DemoEngine()
    for client in list(_clients):
        client._forget_connections()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)

#: Sendings after the first, unless somebody says otherwise.
DEFAULT_RETRIES = 2
_SHOWN = ("backend", "base_url", "model", "timeout")


def _listed(service: Service, *, with_presets: bool) -> tuple[ModelInfo, ...]:
    from ipyperplexity.wire import models

    failure: PerplexityError | None = None
    try:
        return models.read(service.fetch(models.request()), with_presets=with_presets)
    except PerplexityError as error:
        failure = error
    raise service.cleaned(failure)


def _check_retries(value: Any) -> int | None:
    if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
        return value
    raise ConfigurationError(
        f"max_retries: got {value!r}; allowed: a whole number from 0 up.", field="max_retries"
    )


def _check_defaults(**options: Any) -> None:
    refused: InvalidRequestError | None = None
    try:
        Question("check", **options)
    except InvalidRequestError as error:
        refused = error
    if refused is not None:
        raise ConfigurationError(refused.message, field=refused.field)


__all__ = ["BACKENDS", "KEY_VARIABLES", "AnswerStream", "Client", "Status"]
