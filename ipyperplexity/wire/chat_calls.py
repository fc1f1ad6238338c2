"""Function calls of chat-completions: reading their fragments, and sending the results back.

A call comes in fragments told apart by ``index``, or whole in a message. Servers differ in what a
fragment repeats: some send the id each time or a new one with each fragment, some count every call
as index 0, some number nothing. Each call is told once, with all of its arguments.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ipyperplexity.events import ToolCalled, ToolReturned
from ipyperplexity.wire import values
from ipyperplexity.wire.base import WireRequest

#: Members of a call that gateways want to see again (signatures of Google's models).
_SENT_BACK = ("extra_content", "provider_specific_fields")


@dataclass(frozen=True, slots=True)
class ChatCall(ToolCalled):
    """A call with what the service wants to see again beside its result.

    Attributes
    ----------
    extra : dict
        Members of the call that are its server's own.
    preamble : str
        What the model wrote before the first call of a reply.
    thoughts : str
        ``reasoning_content`` of that reply: DeepSeek refuses the results without it.
    """

    extra: Mapping[str, Any] = field(default_factory=dict)
    preamble: str = ""
    thoughts: str = ""


class _Call:
    """What is known of one call so far."""

    def __init__(self, id: str, index: int | None) -> None:
        self.id = id
        self.index = index
        self.name = ""
        self.pieces: list[str] = []
        self.extra: dict[str, Any] = {}

    def has_all_arguments(self) -> bool:
        try:
            json.loads("".join(self.pieces))
        except (ValueError, RecursionError):
            return False
        return True


class ChatCalls:
    """Keeps account of the calls of a reply.

    Examples
    --------
    >>> calls = ChatCalls()
    >>> calls.fragment({"index": 0, "id": "c1", "function": {"name": "add", "arguments": "{"}})
    >>> calls.fragment({"index": 0, "function": {"arguments": "}"}})
    >>> [(call.name, call.arguments) for call in calls.calls()]
    [('add', '{}')]
    """

    def __init__(self) -> None:
        self._calls: list[_Call] = []

    def fragment(self, item: Mapping[str, Any]) -> None:
        """Take an entry of ``delta.tool_calls``."""
        id, name, arguments = _read(item)
        index = values.whole(item.get("index"))
        call = self._find(id, name, index)
        call.name = call.name or name
        call.pieces.append(arguments)
        call.extra |= _extra(item)

    def whole(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Take all of ``message.tool_calls``, as far as it is known."""
        for position, item in enumerate(items):
            id, name, arguments = _read(item)
            call = next((call for call in self._calls if id and call.id == id), None)
            if call is None and position < len(self._calls):
                known = self._calls[position]
                call = known if not id or not known.id else None
            if call is None:
                call = _Call(id, position)
                self._calls.append(call)
            call.id, call.name = call.id or id, name or call.name
            if len(arguments) >= len("".join(call.pieces)):
                call.pieces = [arguments]
            call.extra |= _extra(item)

    def calls(self, preamble: str = "", thoughts: str = "") -> list[ChatCall]:
        """Return the calls in the order of their beginnings; those without a name are none."""
        named = [call for call in self._calls if call.name]
        return [
            ChatCall(
                values.clean(call.id) or f"call_{number}",
                values.clean(call.name),
                values.clean("".join(call.pieces)),
                values.clean(call.extra),
                preamble if number == 1 else "",
                thoughts if number == 1 else "",
            )
            for number, call in enumerate(named, 1)
        ]

    def _find(self, id: str, name: str, index: int | None) -> _Call:
        """Return the call that a fragment belongs to."""
        call = next((call for call in self._calls if id and call.id == id), None)
        if call is not None:
            return call
        # Where several calls have one index, only the last of them can still grow.
        same = (call for call in reversed(self._calls) if index is None or call.index == index)
        call = next(same, None)
        is_new = call is None or (
            # A name begins a call; only servers that repeat it with each fragment continue one.
            bool(name and call.name)
            and (
                name != call.name
                or (index is None and not id)
                or (bool(id and call.id) and call.has_all_arguments())
            )
        )
        if call is None or is_new:
            call = _Call(id, index)
            self._calls.append(call)
        call.id = call.id or id
        return call


def give_results(
    request: WireRequest, calls: Sequence[ToolCalled], results: Sequence[ToolReturned]
) -> WireRequest:
    """Return the request with which an answer goes on after its functions were run.

    Parameters
    ----------
    request : WireRequest
        The one that was answered with the calls.
    calls, results : sequence
        Of the same length and order.
    """
    body = dict(request.body or {})
    first = calls[0] if calls else None
    message: dict[str, Any] = {"role": "assistant", "content": None}
    if isinstance(first, ChatCall):
        message["content"] = first.preamble or None
        if first.thoughts:
            message["reasoning_content"] = first.thoughts
    message["tool_calls"] = [_call_item(call) for call in calls]
    body["messages"] = [
        *values.items(body.get("messages")),
        message,
        *(
            {"role": "tool", "tool_call_id": result.call_id, "content": result.output}
            for result in results
        ),
    ]
    if body.get("tool_choice") not in ("auto", "none"):
        # What had to be called has been called: forced again, the answer would never come.
        body.pop("tool_choice", None)
    return replace(request, body=body, notices=())


def _call_item(call: ToolCalled) -> dict[str, Any]:
    function = {"name": call.name, "arguments": call.arguments or "{}"}
    extra = call.extra if isinstance(call, ChatCall) else {}
    return {"id": call.call_id, "type": "function", "function": function, **extra}


def _read(item: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return id, name and arguments of an entry, each empty where there is none."""
    function = item.get("function")
    function = function if isinstance(function, dict) else {}
    arguments = function.get("arguments")
    if isinstance(arguments, dict | list):  # meant as an object where JSON text is due
        arguments = json.dumps(arguments, ensure_ascii=False)
    return (
        values.text(item.get("id")),
        values.text(function.get("name")),
        values.text(arguments),
    )


def _extra(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: item[name] for name in _SENT_BACK if item.get(name)}
