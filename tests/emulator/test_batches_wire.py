"""Files and batches: strict at the door, worked off behind it, and wrong in every wanted way."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from ipyperplexity.emulator import Behavior, EmulatorServer

from .http_help import ASK, Reply, ask, call, text_of

LAMBDA = {"preset": "low", "input": "What is a lambda?"}


def line(custom_id: Any = "a", body: Any = None, **fields: Any) -> dict[str, Any]:
    whole = {
        "custom_id": custom_id,
        "method": "POST",
        "url": "/v1/responses",
        "body": ASK if body is None else body,
    }
    return {**whole, **fields}


def jsonl(*lines: Any) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in lines)


def form(content: bytes, purpose: str | None = "batch", more: str = "") -> bytes:
    parts = [
        b'Content-Disposition: form-data; name="file"; filename="in.jsonl"\r\n'
        b"Content-Type: application/octet-stream\r\n\r\n" + content
    ]
    if purpose is not None:
        parts.append(b'Content-Disposition: form-data; name="purpose"\r\n\r\n' + purpose.encode())
    if more:
        parts.append(f'Content-Disposition: form-data; name="{more}"\r\n\r\n1'.encode())
    return b"".join(b"--xyz\r\n" + part + b"\r\n" for part in parts) + b"--xyz--\r\n"


def upload(server: EmulatorServer, content: bytes, **parts: Any) -> Reply:
    kind = {"Content-Type": "multipart/form-data; boundary=xyz"}
    return call(server, "POST", "/v1/files", form(content, **parts), kind)


def create(server: EmulatorServer, file_id: str, key: str = "", **fields: Any) -> Reply:
    body = {"input_file_id": file_id, "endpoint": "/v1/responses", **fields}
    return call(server, "POST", "/v1/batches", body, {"Idempotency-Key": key} if key else None)


def started(server: EmulatorServer, *lines: Any, behavior: Behavior | None = None) -> str:
    file_id = upload(server, jsonl(*lines)).json()["id"]
    if behavior is not None:
        server.next(behavior)
    return str(create(server, file_id).json()["id"])


def ended(server: EmulatorServer, name: str) -> dict[str, Any]:
    until = time.monotonic() + 20
    while time.monotonic() < until:
        batch: dict[str, Any] = call(server, "GET", f"/v1/batches/{name}").json()
        if batch["status"] in ("completed", "failed", "expired", "cancelled"):
            return batch
    raise AssertionError(batch["status"])


def lines_of(server: EmulatorServer, file_id: str | None) -> list[dict[str, Any]]:
    if file_id is None:
        return []
    content = call(server, "GET", f"/v1/files/{file_id}/content").body
    return [json.loads(one) for one in content.splitlines()]


def results(server: EmulatorServer, batch: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    found = (lines_of(server, batch[f"{kind}_file_id"]) for kind in ("output", "error"))
    output, errors = ({one["custom_id"]: one for one in lines} for lines in found)
    return output, errors


def test_each_question_of_a_file_is_answered_as_it_would_be_by_itself(
    server: EmulatorServer,
) -> None:
    batch = ended(server, started(server, line("a"), line("b", LAMBDA)))
    assert (batch["object"], batch["endpoint"], batch["errors"]) == ("batch", "/v1/responses", None)
    assert batch["request_counts"] == {"total": 2, "completed": 2, "failed": 0}
    assert batch["error_file_id"] is None
    output, errors = results(server, batch)
    assert (set(output), errors) == ({"a", "b"}, {})
    alone = call(server, "POST", "/v1/responses", LAMBDA).json()
    response = output["b"]["response"]
    assert (response["status_code"], output["b"]["error"]) == (200, None)
    assert text_of(response["body"]) == text_of(alone)
    assert response["body"]["usage"] == alone["usage"]
    total = sum(one["response"]["body"]["usage"]["total_tokens"] for one in output.values())
    assert batch["usage"]["total_tokens"] == total > 0


def test_a_file_is_kept_listed_and_deleted(server: EmulatorServer) -> None:
    content = jsonl(line())
    file = upload(server, content).json()
    assert (file["object"], file["bytes"], file["purpose"]) == ("file", len(content), "batch")
    assert (file["filename"], file["expires_at"] - file["created_at"]) == ("in.jsonl", 2_592_000)
    path = f"/v1/files/{file['id']}"
    assert call(server, "GET", path).json() == file
    assert call(server, "GET", f"{path}/content").body == content
    other = upload(server, content).json()
    assert [one["id"] for one in call(server, "GET", "/v1/files").json()["data"]] == [
        other["id"], file["id"],
    ]  # fmt: skip
    page = call(server, "GET", "/v1/files?limit=1&order=asc&purpose=batch").json()
    assert (page["first_id"], page["last_id"], page["has_more"]) == (file["id"], file["id"], True)
    rest = call(server, "GET", f"/v1/files?after={other['id']}").json()
    assert [one["id"] for one in rest["data"]] == [file["id"]]
    assert call(server, "GET", "/v1/files?purpose=batch_output").json()["data"] == []
    assert call(server, "DELETE", path).json() == {
        "id": file["id"], "object": "file", "deleted": True,
    }  # fmt: skip
    for method, where in (("GET", path), ("GET", f"{path}/content"), ("DELETE", path)):
        assert call(server, method, where).status == 404


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "empty"),
        (b"{oops}\n", "line 1: invalid JSON"),
        (jsonl(line()) + b"\n" + jsonl(line("b")), "line 2: blank line"),
        (jsonl([1]), "line 1: must be a JSON object"),
        (jsonl(line(), line()), "line 2: custom_id"),
        (jsonl(line("")), "line 1: custom_id"),
        (jsonl(line(7)), "line 1: custom_id"),
        (jsonl(line(method="GET")), "line 1: method"),
        (jsonl(line(url="/v1/agent")), "line 1: url"),
        (jsonl(line(priority=1)), 'line 1: unknown field "priority"'),
        (jsonl(line(), line("b", {"preset": "low"})), "line 2: body: input"),
        (jsonl(line(body={**ASK, "nope": 1})), "line 1: body: json: unknown field"),
        (jsonl(line(body={**ASK, "stream": True})), "line 1: body.stream"),
        (jsonl(line(body={**ASK, "background": True})), "line 1: body.background"),
        (jsonl(*[line(str(n)) for n in range(50_001)]), "50001 lines"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_file_with_a_line_that_cannot_be_asked_is_not_kept(
    server: EmulatorServer, content: bytes, says: str
) -> None:
    refused = upload(server, content)
    assert refused.status == 400
    assert says in refused.json()["error"]["message"]
    assert call(server, "GET", "/v1/files").json()["data"] == []


@pytest.mark.parametrize(
    ("parts", "param"),
    [
        ({"purpose": "fine-tune"}, "purpose"),
        ({"purpose": None}, "purpose"),
        ({"more": "expires_after"}, "expires_after"),
    ],
)
def test_a_form_has_a_file_and_the_purpose_and_nothing_else(
    server: EmulatorServer, parts: dict[str, Any], param: str
) -> None:
    refused = upload(server, jsonl(line()), **parts)
    assert (refused.status, refused.json()["error"]["param"]) == (400, param)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        ("application/json", b"{}"),
        ("multipart/form-data", form(b"{}")),
        ("multipart/form-data; boundary=other", form(b"{}")),
        ("multipart/form-data; boundary=xyz", form(b"{}")[:-6]),
        ("multipart/form-data; boundary=xyz", b"--xyz\r\nnonsense\r\n--xyz--\r\n"),
    ],
)
def test_what_is_no_form_is_refused(server: EmulatorServer, kind: str, body: bytes) -> None:
    assert call(server, "POST", "/v1/files", body, {"Content-Type": kind}).status == 400


def test_a_file_may_be_larger_than_other_requests_and_is_not_recorded_whole(
    server: EmulatorServer,
) -> None:
    content = jsonl(*[line(str(n), {**LAMBDA, "instructions": "x" * 10**6}) for n in range(40)])
    assert len(content) > 32 * 2**20
    assert upload(server, content).json()["bytes"] == len(content)
    assert len(server.requests[-1].body) == 2**20


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"endpoint": "/v1/chat/completions"}, "endpoint"),
        ({"completion_window": "1h"}, "completion_window"),
        ({"input_file_id": "file_nobody"}, "input_file_id"),
        ({"output_expires_after": {"anchor": "created_at", "seconds": 1}}, "output_expires_after"),
        ({"priority": 1}, "priority"),
        ({"metadata": {str(n): "x" for n in range(17)}}, "metadata"),
        ({"metadata": {"a": 1}}, "metadata.a"),
    ],
)
def test_a_batch_is_refused_for_any_field_that_is_not_allowed(
    server: EmulatorServer, fields: dict[str, Any], param: str
) -> None:
    file_id = upload(server, jsonl(line())).json()["id"]
    refused = create(server, **{"file_id": file_id, **fields}) if "input_file_id" not in fields else (
        create(server, fields["input_file_id"])
    )  # fmt: skip
    assert (refused.status, refused.json()["error"]["param"]) == (400, param)
    assert call(server, "GET", "/v1/batches").json()["data"] == []


def test_the_same_idempotency_key_gives_the_same_batch(server: EmulatorServer) -> None:
    file_id = upload(server, jsonl(line())).json()["id"]
    first = create(server, file_id, "key", metadata={"a": "b"}).json()
    assert create(server, file_id, "key").json()["id"] == first["id"]
    other = create(server, file_id, "another").json()
    assert create(server, file_id).json()["id"] not in (first["id"], other["id"])
    listed = call(server, "GET", "/v1/batches").json()["data"]
    assert len(listed) == 3
    assert listed[-1]["metadata"] == {"a": "b"}


def test_a_batch_whose_reply_was_lost_has_been_made(server: EmulatorServer) -> None:
    file_id = upload(server, jsonl(line())).json()["id"]
    server.next(Behavior(batch="lost-reply"))
    assert create(server, file_id, "key").status == 502
    again = create(server, file_id, "key").json()
    assert [one["id"] for one in call(server, "GET", "/v1/batches").json()["data"]] == [again["id"]]


def test_a_slow_batch_is_validated_until_it_was_asked_for_often_enough(
    server: EmulatorServer,
) -> None:
    name = started(server, line(), behavior=Behavior(queued_polls=3))
    seen = [call(server, "GET", f"/v1/batches/{name}").json()["status"] for _ in range(3)]
    assert seen == ["validating"] * 3
    assert ended(server, name)["status"] == "completed"


def test_a_cancelled_batch_keeps_what_it_has_answered(server: EmulatorServer) -> None:
    lines = [line(str(n)) for n in range(50)]
    name = started(server, *lines, behavior=Behavior(pace=0.005))
    while not call(server, "GET", f"/v1/batches/{name}").json()["request_counts"]["completed"]:
        pass
    cancelled = call(server, "POST", f"/v1/batches/{name}/cancel").json()
    assert cancelled["status"] == "cancelling"
    batch = ended(server, name)
    assert batch["status"] == "cancelled" and batch["cancelled_at"] >= batch["cancelling_at"]
    output, errors = results(server, batch)
    assert output and errors and set(output) | set(errors) == {str(n) for n in range(50)}
    assert {one["error"]["code"] for one in errors.values()} == {"batch_cancelled"}
    again = call(server, "POST", f"/v1/batches/{name}/cancel")
    assert (again.status, again.json()["error"]["type"]) == (400, "invalid_request")


def test_a_batch_can_fail_its_validation(server: EmulatorServer) -> None:
    batch = ended(server, started(server, line(), behavior=Behavior(batch="invalid")))
    assert (batch["status"], batch["output_file_id"], batch["error_file_id"]) == (
        "failed", None, None,
    )  # fmt: skip
    assert [error["line"] for error in batch["errors"]["data"]] == [1]


def test_a_batch_can_expire_with_half_of_its_lines(server: EmulatorServer) -> None:
    lines = [line(str(n)) for n in range(4)]
    batch = ended(server, started(server, *lines, behavior=Behavior(batch="expired")))
    assert batch["status"] == "expired"
    output, errors = results(server, batch)
    assert (set(output), set(errors)) == ({"0", "1"}, {"2", "3"})
    assert errors["3"]["error"]["code"] == "batch_expired"
    assert batch["request_counts"] == {"total": 4, "completed": 2, "failed": 2}


def test_lines_go_wrong_as_wanted(server: EmulatorServer) -> None:
    faults = {1: "error", 2: "http", 3: "damaged", 4: "missing", 5: "doubled"}
    lines = [line(str(n)) for n in range(1, 7)]
    behavior = Behavior(batch_lines=faults, batch="shuffled")
    batch = ended(server, started(server, *lines, behavior=behavior))
    errors = lines_of(server, batch["error_file_id"])
    assert [one["error"] and one["error"]["code"] for one in errors] == ["internal_error", None]
    assert errors[1]["response"]["status_code"] == 500
    output = call(server, "GET", f"/v1/files/{batch['output_file_id']}/content").body.splitlines()
    ids = []
    for one in output:
        try:
            ids.append(json.loads(one)["custom_id"])
        except ValueError:
            ids.append("damaged")
    assert ids == ["6", "5", "5", "damaged"]
    for wrong in ({"batch_lines": {1: "nope"}}, {"batch": "nope"}):
        with pytest.raises(ValueError, match="nope"):
            Behavior(**wrong)


def test_a_question_that_is_refused_only_when_it_is_asked_is_that_lines_error(
    server: EmulatorServer,
) -> None:
    lost = {**ASK, "previous_response_id": "resp_nobody"}
    batch = ended(server, started(server, line("a", lost), line("b")))
    output, errors = results(server, batch)
    assert (set(output), errors["a"]["response"]["status_code"]) == ({"b"}, 400)


def test_a_failed_run_is_a_result_and_not_an_error_of_the_batch(server: EmulatorServer) -> None:
    behavior = Behavior(terminal="failed-response")
    output, errors = results(server, ended(server, started(server, line(), behavior=behavior)))
    assert (output["a"]["response"]["body"]["status"], errors) == ("failed", {})


def test_nobody_reaches_files_and_batches_without_the_key() -> None:
    with EmulatorServer(pace=0, api_key="pplx-right") as server:
        assert upload(server, jsonl(line())).status == 401
        assert call(server, "GET", "/v1/batches").status == 401


def test_what_is_not_there_is_not_found(server: EmulatorServer) -> None:
    for method, path in (("GET", "batch_x"), ("POST", "batch_x/cancel")):
        assert call(server, method, f"/v1/batches/{path}").status == 404
    assert call(server, "GET", "/v1/batches?after=batch_x").status == 400
    assert call(server, "GET", "/v1/batches?limit=0").status == 400


def test_a_server_that_stops_does_not_wait_for_its_batches(server: EmulatorServer) -> None:
    name = started(server, line(), behavior=Behavior(queued_polls=10**6))
    assert call(server, "GET", f"/v1/batches/{name}").json()["status"] == "validating"
    assert ask(server).status == 200
    server.stop()
