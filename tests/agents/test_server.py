"""A server's faults, each on a real socket: what is tried again, what is not, and what is said."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import copy
import gc
import os
import pickle
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

import pytest

from tests.agents.fault_server import Answer, FaultServer, refusal
from tetrathlon.agents import server as server_module
from tetrathlon.agents.replies import retry_after
from tetrathlon.agents.server import Server, ServerError

ASK = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 5}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.setattr(server_module, "_FIRST_WAIT", 0.01)


def once(first: Answer) -> Callable[[dict[str, Any], int], Answer]:
    return lambda body, number: first if number == 0 else Answer()


def hang_up(handler: Any) -> None:
    handler.connection.close()


def break_off(handler: Any) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{")


def drip(handler: Any) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n")
    with contextlib.suppress(OSError):
        for _ in range(100):
            handler.wfile.write(b" ")
            time.sleep(0.05)


def flood(handler: Any) -> None:
    handler.wfile.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")
    with contextlib.suppress(OSError):
        for _ in range(64):
            handler.wfile.write(b" " * 2**20)


PASSING = {
    "429": refusal(429, "slow down"),
    "503": refusal(503, "loading"),
    "500 in HTML": Answer(status=500, body=b"<html>", headers={"content-type": "text/html"}),
    "hangs up": Answer(misbehave=hang_up),
    "breaks off": Answer(misbehave=break_off),
    "drips": Answer(misbehave=drip),
    "floods": Answer(misbehave=flood),
    "no JSON": Answer(body=b'{"choices": [{"mess'),
    "deep JSON": Answer(body=b"[" * 100_000),
    "no choices": Answer(body={"choices": []}),
    "a list": Answer(body=[1]),
    "null": Answer(body=b"null"),
    "an error with status 200": Answer(body={"error": {"message": "no provider"}}),
    "a message that is none": Answer(body={"choices": [{"message": "text"}]}),
    "compressed": Answer(body=b"\x1f\x8b", headers={"content-encoding": "gzip"}),
}


@pytest.mark.parametrize("fault", PASSING.values(), ids=PASSING.keys())
def test_a_fault_that_passes_is_tried_again(fault: Answer) -> None:
    with FaultServer(once(fault)) as there:
        server = Server(there.url, "m", timeout_s=0.5, retries=1)
        (reply,) = server.ask([ASK])
        assert reply.message["content"] == "fine" and reply.finish == "stop"
        assert (server.usage.requests, server.usage.retries, len(there.bodies)) == (2, 1, 2)
        assert there.bodies[0] == there.bodies[1] == {"model": "m", **ASK}


LASTING = {
    "429": (refusal(429, "slow down"), r"status 429: slow down \(2 tries\); lower max_concurrency, or set requests"),
    "500": (Answer(status=500, body=b"broken"), r"status 500: broken \(2 tries\); the server's log may say more"),
    "hangs up": (Answer(misbehave=hang_up), r"\(2 tries\); is an OpenAI-compatible server running there\?"),
    "drips": (Answer(misbehave=drip), r"no whole answer within 0\.2 s \(2 tries\); raise timeout_s"),
    "floods": (Answer(misbehave=flood), r"longer than 16777216 bytes \(2 tries\)"),
    "no JSON": (Answer(body=b"<html>Welcome"), r"no chat completion: '<html>Welcome' \(2 tries\)"),
    "compressed": (Answer(headers={"content-encoding": "br"}), r"compresses its answers"),
}


@pytest.mark.parametrize(("fault", "said"), LASTING.values(), ids=LASTING.keys())
def test_a_fault_that_lasts_is_told(fault: Answer, said: str) -> None:
    with FaultServer(lambda body, number: fault) as there:
        server = Server(there.url, "m", timeout_s=0.2 if fault.misbehave is drip else 5.0, retries=1)
        with pytest.raises(ServerError, match=said) as caught:
            server.ask([ASK])
        assert str(caught.value).startswith(f"{there.url} (model 'm'): ") and len(str(caught.value)) < 1000
        assert server.usage.requests == 2


FINAL = {
    "no key": (refusal(401, "who are you"), r"status 401: who are you; give a key .* OPENAI_API_KEY"),
    "no model": (refusal(404, "no model m"), r"status 404: no model m; is that the model's name there \(see .*/models"),
    "nonsense": (refusal(400, "temperature must be 1"), r"status 400: temperature must be 1;"),
    "FastAPI": (Answer(status=422, body={"detail": "Unexpected: {'top_k'}"}), r"status 422: Unexpected: {'top_k'};"),
    "no money": (refusal(429, "you exceeded your quota", "insufficient_quota"), r"status 429: you exceeded"),
    "an hour": (refusal(429, "tomorrow", retry_after="3600"), r"asks to wait 3600 s"),
}


@pytest.mark.parametrize(("fault", "said"), FINAL.values(), ids=FINAL.keys())
def test_a_refusal_is_not_tried_again(fault: Answer, said: str) -> None:
    with FaultServer(lambda body, number: fault) as there:
        server = Server(there.url, "m")
        with pytest.raises(ServerError, match=said):
            server.ask([ASK])
        assert server.usage.requests == 1


def test_nobody_is_there() -> None:
    with FaultServer(once(Answer())) as there:
        url = there.url
    with pytest.raises(ServerError, match=rf"{url} \(model 'm'\): .*refused.*|.*failed.*\(3 tries\); is an OpenAI"):
        Server(url, "m", retries=2).ask([ASK])


def test_retry_after_is_kept() -> None:
    with FaultServer(once(refusal(429, "wait", retry_after="0.4"))) as there:
        began = time.monotonic()
        Server(there.url, "m").ask([ASK])
        assert time.monotonic() - began >= 0.4 and len(there.bodies) == 2


def test_a_date_is_a_time_to_wait_for(monkeypatch: pytest.MonkeyPatch) -> None:
    class Response:
        headers = {"retry-after": "Sun, 29 Nov 2026 21:00:10 GMT"}  # noqa: RUF012

    then = 1795986010.0
    for now, wait in ((then - 7, 7.0), (then, 0.0), (then + 60, 0.0)):
        monkeypatch.setattr(time, "time", lambda now=now: now)
        assert retry_after(Response()) == wait
    Response.headers["retry-after"] = "soon"
    assert retry_after(Response()) is None


def test_waits_double_and_jitter_is_seeded(monkeypatch: pytest.MonkeyPatch) -> None:
    def waits(seed: int) -> list[float]:
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        with FaultServer(lambda body, number: refusal(503, "loading")) as there:
            server = Server(there.url, "m", retries=9, seed=seed)
            monkeypatch.setattr(server_module, "_FIRST_WAIT", 0.5)
            monkeypatch.setattr(server_module.asyncio, "sleep", sleep)
            with pytest.raises(ServerError):
                server.ask([ASK])
        return [s for s in slept if s]

    random.seed(1)
    before = random.getstate()
    first, again, other = waits(1), waits(1), waits(2)
    assert random.getstate() == before  # the global stream belongs to the user
    assert first == again != other and len(first) == 9
    full = [0.5, 1, 2, 4, 8, 16, 30, 30, 30]
    assert all(f / 2 <= wait <= f for wait, f in zip(first, full, strict=True))


def test_requests_go_out_at_once_and_no_more_than_allowed() -> None:
    def slow(body: dict[str, Any], number: int) -> Answer:
        time.sleep(0.1)
        return Answer(message={"content": body["messages"][0]["content"]})

    with FaultServer(slow) as there:
        asks = [{"messages": [{"role": "user", "content": str(i)}]} for i in range(12)]
        replies = Server(there.url, "m", max_concurrency=6).ask(asks)
        assert [reply.message["content"] for reply in replies] == [str(i) for i in range(12)]
        assert there.most_open == 6


def test_threads_share_a_server() -> None:
    with FaultServer(lambda body, number: Answer(message={"content": body["messages"][0]["content"]})) as there:
        server = Server(there.url, "m", max_concurrency=3)
        said: dict[int, list[str]] = {}

        def work(i: int) -> None:
            asks = [{"messages": [{"role": "user", "content": f"{i} {j}"}]} for j in range(5)]
            said[i] = [reply.message["content"] for reply in server.ask(asks)]

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert said == {i: [f"{i} {j}" for j in range(5)] for i in range(4)}
        assert server.usage.requests == 20 and there.most_open <= 3


def test_the_first_that_fails_stops_the_others() -> None:
    def script(body: dict[str, Any], number: int) -> Answer:
        if body["messages"][0]["content"] == "bad":
            return refusal(401, "no")
        time.sleep(0.3)
        return refusal(503, "later")

    with FaultServer(script) as there:
        server = Server(there.url, "m", retries=1000)
        asks = [{"messages": [{"role": "user", "content": text}]} for text in ("good", "bad", "good")]
        with pytest.raises(ServerError, match="401"):
            server.ask(asks)
        time.sleep(0.5)
        assert len(there.bodies) == 3  # nobody goes on asking behind our back


@pytest.mark.parametrize(
    "answer",
    [
        refusal(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", "unsupported_parameter"),
        refusal(400, "not that one", param="max_tokens"),
        Answer(status=422, body={"detail": "Unexpected fields in the request: {'max_tokens'}"}),
    ],
)
def test_the_other_name_of_the_token_limit_is_found_once(answer: Answer) -> None:
    with FaultServer(lambda body, number: answer if "max_tokens" in body else Answer()) as there:
        server = Server(there.url, "m")
        server.ask([ASK])
        server.ask([ASK])
        assert [{"max_tokens", "max_completion_tokens"} & body.keys() for body in there.bodies] == [
            {"max_tokens"}, {"max_completion_tokens"}, {"max_completion_tokens"}
        ]  # fmt: skip
        assert there.bodies[2]["max_completion_tokens"] == 5 and server.usage.retries == 0


def test_a_server_that_takes_neither_name_says_so() -> None:
    with FaultServer(lambda body, number: refusal(400, "max_completion_tokens and max_tokens: no")) as there:
        with pytest.raises(ServerError, match="status 400"):
            Server(there.url, "m").ask([ASK])
        assert len(there.bodies) == 2


def test_a_seed_that_is_refused_is_left_out() -> None:
    refused = refusal(400, 'Unknown name "seed": Cannot find field.')
    with FaultServer(lambda body, number: refused if "seed" in body else Answer()) as there:
        Server(there.url, "m").ask([{**ASK, "seed": 4}])
        assert ["seed" in body for body in there.bodies] == [True, False]


OVERFLOWS = [
    refusal(400, "too many", "context_length_exceeded"),
    refusal(400, "'max_tokens' is too large: 4000. This model's maximum context length is 4096 tokens", "400"),
    refusal(400, "the request exceeds the available context size. try increasing it", "400"),
    refusal(413, "Input is too long for requested model."),
]


@pytest.mark.parametrize("overflow", OVERFLOWS)
def test_no_room(overflow: Answer) -> None:
    with FaultServer(lambda body, number: overflow) as there:
        (reply,) = Server(there.url, "m").ask([ASK])
        assert reply.finish == "context" and reply.message == {} and reply.completion_tokens is None
        assert len(there.bodies) == 2
    with FaultServer(lambda body, number: overflow if "max_tokens" in body else Answer(finish="length")) as there:
        (reply,) = Server(there.url, "m").ask([ASK])  # what room there is was used
        assert reply.finish == "context" and reply.message["content"] == "fine"
    with FaultServer(lambda body, number: overflow if "max_tokens" in body else Answer()) as there:
        (reply,) = Server(there.url, "m").ask([ASK])  # and sufficed
        assert reply.finish == "stop"


def test_filters_are_counted() -> None:
    with FaultServer(once(refusal(400, "policy", "content_filter"))) as there:
        server = Server(there.url, "m")
        assert server.ask([ASK])[0].finish == "content_filter"
        assert server.usage.filtered == 1
    with FaultServer(lambda body, number: Answer(message={"content": None}, finish="content_filter")) as there:
        server = Server(there.url, "m")
        assert server.ask([ASK])[0].finish == "content_filter"
        assert server.usage.filtered == 1


@pytest.mark.parametrize(
    "usage", [None, 5, {}, {"prompt_tokens": -1, "completion_tokens": "many"}, {"prompt_tokens": 1e99}]
)
def test_counts_are_not_trusted(usage: Any) -> None:
    with FaultServer(lambda body, number: Answer(usage=usage)) as there:
        server = Server(there.url, "m")
        (reply,) = server.ask([ASK])
        assert (reply.prompt_tokens, reply.completion_tokens) == (None, None)
        assert (server.usage.prompt_tokens, server.usage.completion_tokens) == (0, 0)


def test_key(monkeypatch: pytest.MonkeyPatch) -> None:
    key = "sk-secret"
    with FaultServer(lambda body, number: refusal(401, f"Incorrect key {key}")) as there:
        with pytest.raises(ServerError) as caught:
            Server(there.url, "m", api_key=key).ask([ASK])
        assert "sk-secret" not in str(caught.value) and "***" in str(caught.value)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
        with pytest.raises(ServerError):
            Server(there.url, "m").ask([ASK])
        assert [sent["authorization"] for sent in there.headers] == ["Bearer sk-secret", "Bearer sk-environment"]
        assert there.headers[0]["path"] == "/v1/chat/completions"
        assert "sk-secret" not in "".join(traceback.format_exception(caught.value))
        with pytest.raises(ServerError):
            Server(there.url, "m", api_key="sk-of-a-file\n").ask([ASK])
        assert there.headers[2]["authorization"] == "Bearer sk-of-a-file"


def test_a_key_is_hidden_before_the_words_are_cut() -> None:
    with FaultServer(lambda body, number: refusal(401, "x" * 490 + "sk-a-long-secret")) as there:
        with pytest.raises(ServerError) as caught:
            Server(there.url, "m", api_key="sk-a-long-secret").ask([ASK])
        assert "sk-a" not in str(caught.value) and "xxx***" in str(caught.value)


def test_a_key_that_is_no_secret_does_not_hide_the_words() -> None:
    exiled = FaultServer(lambda body, number: refusal(401, "you are exiled"))
    with exiled as there, pytest.raises(ServerError, match="401: you are exiled; give a key"):
        Server(there.url, "m", api_key="e").ask([ASK])


def test_a_key_that_no_header_can_hold_is_refused_and_not_shown() -> None:
    for key in ("sk-\u2603-secret", "sk-a\nb-secret"):
        with pytest.raises(ValueError, match="api_key must be of printable ASCII") as caught:
            Server("http://localhost:1/v1", "m", api_key=key)
        assert "secret" not in str(caught.value)


def test_requests_a_minute() -> None:
    with FaultServer(lambda body, number: Answer()) as there:
        server = Server(there.url, "m", requests_per_minute=3)
        assert server._requests is not None
        server._requests.seconds = 0.4
        began = time.monotonic()
        server.ask([ASK] * 7)
        assert 0.8 <= time.monotonic() - began < 3.0


def test_tokens_a_minute_are_settled_by_the_server() -> None:
    with FaultServer(lambda body, number: Answer(usage={"prompt_tokens": 1, "completion_tokens": 1})) as there:
        server = Server(there.url, "m", tokens_per_minute=1000, max_concurrency=1)
        assert server._tokens is not None
        for _ in range(4):  # each is taken for 900, and was 2
            server.ask([{**ASK, "max_tokens": 900}])
        assert server._tokens.used == 8


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"base_url": "localhost:8000"}, "base_url must be such as 'http://localhost:8000/v1', got 'localhost:8000'"),
        ({"model": ""}, "model must be"),
        ({"max_concurrency": 0}, "max_concurrency must be an integer of at least 1, got 0"),
        ({"retries": -1}, "retries must be an integer of at least 0, got -1"),
        ({"timeout_s": 0}, "timeout_s must be above 0, got 0"),
        ({"tokens_per_minute": float("nan")}, "tokens_per_minute must be above 0, got nan"),
    ],
)
def test_options(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Server(**{"base_url": "http://localhost:1/v1", "model": "m", **options})


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://localhost:abc/v1",
            "http://[::1/v1",
            "http://h /v1",
            "http://h/v1?key=1",
            "http://h/v1#f",
            "http://?",
        ),
        *("http://h:99999/v1", "http://h/v1\n", "http://\x00/v1", "http://\u2603.net/v1", "unix:///tmp/socket", ""),
    ],
)
def test_an_url_that_is_none(url: str) -> None:
    with pytest.raises(ValueError, match="base_url must be such as"):
        Server(url, "m")
    with pytest.raises(ValueError, match="base_url must hold no name and no password") as caught:
        Server("http://me:sesame@localhost/v1", "m")
    assert "sesame" not in str(caught.value)


def test_no_depth_of_an_answer_is_too_much() -> None:
    depths = [900, 960, 975, 985, 990, 995, 20_000]
    deep = [b"[" * depth + b"]" * depth for depth in depths]
    answers = [Answer(status=400, body=b'{"error": ' + part + b"}") for part in deep]
    answers += [Answer(body=b'{"choices": [{"message": ' + part + b"}]}") for part in deep]
    answers += [Answer(body=b'{"choices": [{"message": 5, "finish_reason": ' + part + b"}]}") for part in deep]
    with FaultServer(lambda body, number: answers[number]) as there:
        server = Server(there.url, "m", retries=0)
        for _ in answers:
            with pytest.raises(ServerError) as caught:
                server.ask([ASK])
            assert len(str(caught.value)) < 1000
    body = b'{"choices": [{"message": {"content": "x"}, "finish_reason": ' + deep[1] + b"}]}"
    with FaultServer(lambda _, number: Answer(body=body)) as there:
        assert Server(there.url, "m").ask([ASK])[0].finish == ""


def test_it_is_neither_copied_nor_shared_with_a_fork() -> None:
    with FaultServer(lambda body, number: Answer()) as there:
        server = Server(there.url, "m")
        for copied in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(TypeError, match="cannot be copied or pickled"):
                copied(server)
        child = os.fork()
        if child == 0:  # pragma: no cover
            signal.alarm(10)
            try:
                server.ask([ASK])
            except RuntimeError as error:
                os._exit(7 if "made in another process" in str(error) else 8)
            os._exit(9)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        assert server.ask([ASK])[0].finish == "stop"


def test_nobody_waits_for_a_server_that_was_closed() -> None:
    with FaultServer(lambda body, number: refusal(503, "later", retry_after="60")) as there:
        server = Server(there.url, "m")
        threading.Timer(0.3, server.close).start()
        with pytest.raises(concurrent.futures.CancelledError):
            server.ask([ASK])
        with pytest.raises(RuntimeError, match="was closed"):
            server.ask([ASK])


def test_it_works_within_a_running_loop() -> None:
    async def notebook(url: str) -> str:
        return Server(url, "m").ask([ASK])[0].finish

    with FaultServer(lambda body, number: Answer()) as there:
        assert asyncio.run(notebook(there.url)) == "stop"


def test_its_thread_ends_with_it() -> None:
    def threads() -> int:
        return sum(thread.name == "tetrathlon-server" for thread in threading.enumerate())

    gc.collect()
    time.sleep(0.1)
    before = threads()
    with FaultServer(lambda body, number: Answer()) as there:
        server = Server(there.url, "m")
        server.ask([ASK])
        assert threads() == before + 1
        del server
        gc.collect()
        deadline = time.monotonic() + 5
        while threads() > before and time.monotonic() < deadline:
            time.sleep(0.01)
        assert threads() == before
