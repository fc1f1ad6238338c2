"""The web endpoint over HTTP: who asks, in which thread, and the stream (consumer-web 1 and 2).

Invariant: only the session cookie signs a question in; without it the question is answered all
the same, as that of an anonymous caller, with another model, and without a word about it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator
from typing import Any

from .consumer_checks import check_ask
from .consumer_events import frames, written
from .consumer_faults import UNENDED, fault_of, fixed_reply, spoiled
from .consumer_forms import BlockWriter
from .consumer_run import ANONYMOUS_MODEL, RESEARCH_MODEL, WebRun, plan_web
from .json_body import read_object
from .login_wire import session_cookie
from .rules import RequestError, unprocessable
from .sending import Call, Event, Sender
from .web_state import Entry, account_id

__all__ = ["ask_web", "tell_limits", "terminate_web"]

Json = dict[str, Any]
_GONE = RequestError("the thread is gone", status=403, reply={})
_KINDS = {RESEARCH_MODEL: "remaining_research", "pplx_beta": "remaining_labs"}


def ask_web(sender: Sender, call: Call) -> None:
    """Serve ``POST /rest/sse/perplexity_ask``."""
    emulator, behavior = sender.emulator, sender.behavior
    fault = fault_of(behavior)
    fixed = fixed_reply(fault)
    if fixed is not None:
        sender.behavior = fixed
        sender.fixed_reply()
        return
    params = check_ask(read_object(call.body), call.request.headers)
    email = "" if fault == "anonymous" else emulator.web.account(call.request.cookies)
    entry = _entry(sender, params, email)
    model = params["model_preference"] if email and params["mode"] != "search" else ANONYMOUS_MODEL
    run = plan_web(
        params, entry, emulator.engine, behavior, model=model, chunk_chars=sender.chunk_chars
    )
    if email and not _may_ask(sender, params, model):
        fault = "rate-limited"
    emulator.web.keep(entry)
    headers = sender.limits(entry.backend_uuid)
    if email:
        headers["x-pplx-account-used"] = account_id(email)
    if behavior.rotate_session:
        if email:
            emulator.web.open_session(email, behavior.rotate_session)
        headers["Set-Cookie"] = session_cookie(behavior.rotate_session)
    sender.stream(_events(run, fault), headers=headers, newline="\r\n", pause=sender.pace)


def _may_ask(sender: Sender, params: Json, model: str) -> bool:
    kind = _KINDS.get(model, "remaining_pro" if params["mode"] == "copilot" else "")
    return not kind or sender.emulator.web.count_down(kind)


def _entry(sender: Sender, params: Json, email: str) -> Entry:
    """Return a new entry: of the thread that is gone on with, or of a new one.

    Raises
    ------
    RequestError
        The thread is unknown, of another account, or the token is wrong (403).
    """
    question = params["query_str"]
    before = params.get("last_backend_uuid")
    if before is None:
        words = re.findall(r"[a-z0-9]+", question.lower())[:6]
        entry = Entry(email, (question,), "")
        entry.slug = "-".join([*words, entry.context_uuid[:8]])
        return entry
    known = sender.emulator.web.entry(before)
    if known is None or known.account != email or known.token != params.get("read_write_token"):
        raise _GONE
    return Entry(email, (*known.questions, question), known.slug, known.context_uuid, known.token)


def _form(run: WebRun) -> str:
    """Return the form that the request asked for, unless the behavior has its own."""
    if run.behavior.web_form is not None:
        return run.behavior.web_form
    told = run.params.get("supported_block_use_cases", [])
    workflow = "workflow_steps" in told or "workflow_widgets" in told
    diffs = "diff_blocks" in told
    return {
        (False, False): "snapshot",
        (False, True): "diff",
        (True, False): "workflow",
        (True, True): "workflow-diff",
    }[workflow, diffs]


def _events(run: WebRun, fault: str) -> Generator[Event, None, None]:
    form, nulls = _form(run), run.behavior.nulls
    writer = BlockWriter(run.behavior, diffs=form.endswith("diff"))
    names = run.behavior.event_names is not False
    for frame in spoiled(frames(run, form), run, fault):
        yield ("message" if names else ""), written(frame, writer, nulls=nulls)
    if fault not in UNENDED and not run.behavior.done_marker:
        # Without names, the empty object is all that is left of the end.
        yield ("end_of_stream" if names else ""), "{}"


def terminate_web(sender: Sender, call: Call) -> None:
    """Serve ``POST /rest/sse/perplexity_terminate``."""
    body = read_object(call.body)
    name = body.get("entry_uuid") if isinstance(body, dict) else None
    if not isinstance(name, str):
        raise unprocessable("entry_uuid", "Field required", "missing")
    if not sender.emulator.web.terminate(name):
        raise _GONE
    sender.reply_json(200, {"status": "success"})


def tell_limits(sender: Sender, call: Call) -> None:
    """Serve ``GET /rest/rate-limit/all``."""
    web = sender.emulator.web
    limits: Json = json.loads(json.dumps(web.limits))
    if not web.account(call.request.cookies):
        limits = dict.fromkeys(limits, 0)
    sources = {"web": {"monthly_limit": None, "remaining": None}}
    sender.reply_json(200, {**limits, "sources": {"source_to_limit": sources}})
