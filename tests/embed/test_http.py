"""Providers behind HTTP: what they are asked, what of their answers is taken, when they are asked again."""

from __future__ import annotations

import gzip
import json
import math
from collections.abc import Callable
from email.utils import format_datetime, parsedate_to_datetime
from typing import Any

import pytest

from embed.asked import KEY, MODEL, TEXT, ask, config_for, embedder_for, openai, sent
from omnigraph.ambient import SystemClock
from omnigraph.embed.config import KEY_VARIABLE, ProviderConfig, provider_from_environment, provider_from_profile
from omnigraph.embed.dialects import GeminiDialect, OpenAIDialect
from omnigraph.embed.embedder import Embedder
from omnigraph.embed.hosts import ProviderHosts
from omnigraph.embed.http import HttpProvider
from omnigraph.embed.outcomes import Vectors
from omnigraph.errors import EmbeddingFailed
from support.clocks import SteppingClock
from support.misbehaving import Behaviour, MisbehavingServer, answer, cut, half, raw, reset, silence
from support.wire import Connection, Message, response_head

GOOD = openai([3.0, 4.0])
UNIT = (0.6000000238418579, 0.800000011920929)


def reason(embedder: Embedder, **more: Any) -> str:
    with pytest.raises(EmbeddingFailed) as failed:
        ask(embedder, **more)
    assert failed.value.details["reason"] == failed.value.reason
    return failed.value.reason


# --- what is asked, and what comes back


def test_a_provider_gets_model_text_and_size_and_gives_a_normalised_vector() -> None:
    with MisbehavingServer(answer(200, GOOD)) as server:
        assert ask(embedder_for(server)) == UNIT
        place = f"127.0.0.1:{server.port}"
    (request,) = server.requests
    assert request.start == "POST /v1/embeddings HTTP/1.1"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["host"] == place
    assert sent(request) == {"model": MODEL, "input": [TEXT], "dimensions": 2, "encoding_format": "float"}


def test_gemini_gets_the_role_of_a_query_and_its_key_in_a_header() -> None:
    with MisbehavingServer(answer(200, json.dumps({"embeddings": [{"values": [3, 4]}]}))) as server:
        assert ask(embedder_for(server, PROVIDER="gemini")) == UNIT
    (request,) = server.requests
    assert request.start == f"POST /v1/models/{MODEL}:batchEmbedContents HTTP/1.1"
    assert request.headers["x-goog-api-key"] == KEY
    assert "authorization" not in request.headers
    wanted = {
        "model": f"models/{MODEL}",
        "taskType": "RETRIEVAL_QUERY",
        "outputDimensionality": 2,
        "content": {"parts": [{"text": TEXT}]},
    }
    assert sent(request) == {"requests": [wanted]}


@pytest.mark.parametrize("text", ["", "  two  spaces ", 'quo"te\\ \x00 \u2028 🛳', "{{template}}", "line\nbreak"])
@pytest.mark.parametrize("kind", ["openai-compatible", "gemini"])
def test_a_text_is_sent_as_it_is(kind: str, text: str) -> None:
    body = GOOD if kind != "gemini" else json.dumps({"embeddings": [{"values": [3, 4]}]})
    with MisbehavingServer(answer(200, body)) as server:
        ask(embedder_for(server, PROVIDER=kind), text)
    asked = sent(server.requests[0])
    assert (asked["input"] if kind != "gemini" else [asked["requests"][0]["content"]["parts"][0]["text"]]) == [text]


def test_several_stored_texts_are_asked_for_at_once_and_put_in_their_order() -> None:
    two = json.dumps({"data": [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]})
    with MisbehavingServer(answer(200, two)) as server:
        clock = SteppingClock()
        provider = HttpProvider(config_for(server), OpenAIDialect(), environ={}, clock=clock, randomness=bytes)
        assert provider.embed(["a", "b"], "document", 2, 60.0) == Vectors(((1.0, 0.0), (0.0, 1.0)))
    asked = json.loads(GeminiDialect().ask("m", ["a", "b"], "document", 2).body)
    assert [each["taskType"] for each in asked["requests"]] == ["RETRIEVAL_DOCUMENT"] * 2


def test_one_s_own_host_may_need_no_key() -> None:
    with MisbehavingServer(answer(200, GOOD)) as server:
        assert ask(embedder_for(server, environ={})) == UNIT
    assert "authorization" not in server.requests[0].headers


def test_a_connection_serves_many_requests() -> None:
    connections: list[Connection] = []

    def play(connection: Connection, request: Message) -> bool:
        connections.append(connection)
        return answer(200, GOOD)(connection, request)

    with MisbehavingServer(play) as server:
        embedder = embedder_for(server)
        for place in range(3):
            ask(embedder, f"text {place}")
        assert len({id(each) for each in connections}) == 1
        embedder.close()
        assert ask(embedder, "another") == UNIT


# --- answers that hold no vector: not asked again


def compressed(body: bytes) -> Behaviour:
    data = gzip.compress(body)
    return raw(response_head(200, len(data), Content_Encoding="gzip") + data)


NO_VECTOR: dict[str, Behaviour] = {
    "no JSON": answer(200, "canary <html>"),
    "no text": answer(200, b"\xff\xfe\x00"),
    "nothing": answer(200, ""),
    "another form": answer(200, "[]"),
    "a number": answer(200, "7"),
    "too deep": answer(200, "[" * 60_000),
    "an error in it": answer(200, '{"error": {"message": "canary"}}'),
    "no data": answer(200, '{"data": []}'),
    "data of another kind": answer(200, '{"data": {"0": 1}}'),
    "items of another kind": answer(200, '{"data": ["canary"]}'),
    "no embedding": answer(200, '{"data": [{"index": 0}]}'),
    "base64": answer(200, openai("AACAPwAAgD8=")),
    "a vector too many": answer(200, openai([1.0, 0.0], [0.0, 1.0])),
    "another index": answer(200, '{"data": [{"index": 1, "embedding": [1, 0]}]}'),
    "no index": answer(200, '{"data": [{"index": "0", "embedding": [1, 0]}]}'),
    "too short": answer(200, openai([1.0])),
    "too long": answer(200, openai([1.0, 0.0, 0.0])),
    "NaN": answer(200, openai([math.nan, 1.0])),
    "infinity": answer(200, openai([math.inf, 1.0])),
    "beyond doubles": answer(200, '{"data": [{"index": 0, "embedding": [1e999, 1]}]}'),
    "too many digits": answer(200, '{"data": [{"index": 0, "embedding": [' + "9" * 5_000 + ", 1]}]}"),
    "an integer beyond doubles": answer(200, openai([10**400, 1])),
    "all zeros": answer(200, openai([0.0, 0.0])),
    "nulls": answer(200, openai([None, 1.0])),
    "booleans": answer(200, openai([True, 1.0])),
    "compressed": compressed(GOOD.encode()),
    "far too much": answer(200, GOOD + " " * 100_000),
}


@pytest.mark.parametrize("name", NO_VECTOR)
def test_an_answer_without_the_vector_fails_at_once(name: str) -> None:
    with MisbehavingServer(NO_VECTOR[name]) as server:
        clock = SteppingClock()
        assert reason(embedder_for(server, clock=clock)) == "bad_vector"
    assert len(server.requests) == 1
    assert clock.slept == []


@pytest.mark.parametrize(
    "body",
    ["{}", '{"embeddings": []}', '{"embeddings": [[1, 2]]}', '{"embeddings": [{"values": [1]}]}', "[]", "x"],
)
def test_an_answer_of_gemini_without_the_vector_fails_at_once(body: str) -> None:
    with MisbehavingServer(answer(200, body)) as server:
        assert reason(embedder_for(server, PROVIDER="gemini")) == "bad_vector"
    assert len(server.requests) == 1


def endless() -> Behaviour:
    """A body without an end, as fast as it is taken."""

    def play(connection: Connection, request: Message) -> bool:
        connection.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:  # ends with the client's connection
            connection.send(b"4000\r\n" + b" " * 0x4000 + b"\r\n")

    return play


def test_an_answer_without_an_end_is_cut_off() -> None:
    with MisbehavingServer(endless()) as server:
        assert reason(embedder_for(server)) == "bad_vector"


# --- refusals: not asked again


@pytest.mark.parametrize("status", [204, 400, 401, 403, 404, 413, 422, 451])
def test_a_refusal_is_taken_as_one(status: int) -> None:
    with MisbehavingServer(answer(status, '{"error": "canary"}', Retry_After="1")) as server:
        clock = SteppingClock()
        assert reason(embedder_for(server, clock=clock)) == "refused"
    assert (len(server.requests), clock.slept) == (1, [])


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed(status: int) -> None:
    with MisbehavingServer(answer(200, GOOD)) as elsewhere:
        to = answer(status, Location=f"{elsewhere.endpoint}/v1/embeddings")
        with MisbehavingServer(to) as server:
            assert reason(embedder_for(server)) == "refused"
        assert (len(server.requests), elsewhere.requests) == (1, [])


def test_what_a_provider_wants_remembered_is_not_sent_back() -> None:
    with MisbehavingServer(answer(200, GOOD, Set_Cookie="canary=1")) as server:
        embedder = embedder_for(server)
        ask(embedder, "a")
        ask(embedder, "b")
    assert all("cookie" not in request.headers for request in server.requests)


def test_settings_for_other_programs_lead_nothing_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    with MisbehavingServer(answer(200, GOOD)) as elsewhere, MisbehavingServer(answer(200, GOOD)) as server:
        for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, elsewhere.endpoint)
        ask(embedder_for(server))
        assert (len(server.requests), elsewhere.requests) == (1, [])


# --- failures that may pass: asked again


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504, 529])
def test_a_status_that_may_pass_is_asked_again_until_there_is_an_answer(status: int) -> None:
    with MisbehavingServer(answer(status, "canary"), answer(status), answer(200, GOOD)) as server:
        clock = SteppingClock()
        assert ask(embedder_for(server, clock=clock)) == UNIT
    assert len(server.requests) == 3
    assert clock.slept == pytest.approx([0.2, 0.4])


BROKEN: dict[str, Callable[[], Behaviour]] = {
    "cut": cut,
    "reset": reset,
    "half": lambda: half(200, GOOD.encode()),
    "no HTTP": lambda: raw(b"canary\r\n\r\n"),
    "half a chunk": lambda: raw(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{"),
    "an endless head": lambda: raw(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 50_000),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_answer_is_asked_for_again(name: str) -> None:
    with MisbehavingServer(BROKEN[name](), answer(200, GOOD)) as server:
        assert ask(embedder_for(server)) == UNIT
    assert len(server.requests) == 2


def test_after_its_attempts_a_provider_is_unreachable() -> None:
    with MisbehavingServer(answer(503)) as server:
        clock = SteppingClock()
        assert reason(embedder_for(server, clock=clock)) == "unreachable"
        assert clock.slept == pytest.approx([0.2, 0.4, 0.8])
        assert len(server.requests) == 4
        assert reason(embedder_for(server, RETRY_ATTEMPTS="2")) == "unreachable"
        assert len(server.requests) == 6


def test_waits_differ_by_chance_between_half_and_all() -> None:
    with MisbehavingServer(answer(503)) as server:
        clock = SteppingClock()
        provider = HttpProvider(config_for(server), OpenAIDialect(), environ={}, clock=clock, randomness=bytes)
        provider.embed(["a"], "query", 2, 60.0)
    assert clock.slept == pytest.approx([0.1, 0.2, 0.4])


def test_nobody_there_is_unreachable() -> None:
    with MisbehavingServer(cut()) as server:
        embedder = embedder_for(server)
    assert reason(embedder) == "unreachable"


# --- waiting


@pytest.mark.parametrize("status", [429, 503])
def test_a_provider_is_not_asked_again_before_it_says(status: int) -> None:
    with MisbehavingServer(answer(status, Retry_After="7"), answer(200, GOOD)) as server:
        clock = SteppingClock()
        assert ask(embedder_for(server, clock=clock)) == UNIT
    assert clock.slept == pytest.approx([7.2])


def test_a_date_to_come_again_is_kept() -> None:
    clock = SteppingClock()
    date = format_datetime(parsedate_to_datetime("Thu, 01 Jan 2026 00:00:09 GMT"), usegmt=True)
    with MisbehavingServer(answer(429, Retry_After=date), answer(200, GOOD)) as server:
        ask(embedder_for(server, clock=clock))
    assert clock.slept == pytest.approx([9.2])


@pytest.mark.parametrize(
    "text",
    ["", "soon", "-5", "1.5", "Thu, 99 Jan 2026", "Wed, 31 Dec 2025 23:00:00 GMT", "٣", "9" * 40, "nan"],
)
def test_a_time_to_come_again_that_makes_no_sense_is_none(text: str) -> None:
    with MisbehavingServer(
        raw(b"HTTP/1.1 429 x\r\nRetry-After: " + text.encode() + b"\r\nContent-Length: 0\r\n\r\n"), answer(200, GOOD)
    ) as server:
        clock = SteppingClock()
        assert ask(embedder_for(server, clock=clock)) == UNIT
    assert clock.slept == pytest.approx([0.2])


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    with MisbehavingServer(answer(429, Retry_After="60")) as server:
        clock = SteppingClock()
        assert reason(embedder_for(server, clock=clock)) == "unreachable"
        assert (len(server.requests), clock.slept) == (1, [])
        assert reason(embedder_for(server, clock=clock, DEADLINE_MS="500"), deadline=None) == "unreachable"
        assert clock.slept == []


def test_the_caller_s_deadline_holds_besides() -> None:
    with MisbehavingServer(answer(503)) as server:
        clock = SteppingClock()
        assert reason(embedder_for(server, clock=clock), deadline=0.3) == "unreachable"
        assert clock.slept == pytest.approx([0.2])
        assert len(server.requests) == 2
        clock.advance(1)
        assert reason(embedder_for(server, clock=clock), deadline=1.0) == "unreachable"
        assert len(server.requests) == 2  # nothing is asked whose answer comes too late


def dripping(head: bytes, *, pause: Callable[[], object]) -> Behaviour:
    """One byte at a time, for as long as anybody listens."""

    def play(connection: Connection, request: Message) -> bool:
        connection.send(head)
        while True:  # ends with the client's connection
            pause()
            connection.send(b" ")

    return play


@pytest.mark.parametrize("head", [b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 50000\r\n\r\n"])
def test_a_provider_that_drips_is_given_up_as_one_that_is_silent(head: bytes) -> None:
    clock = SteppingClock()
    # Each byte comes at once on the machine's clock and a second later on that of the request.
    with MisbehavingServer(dripping(head, pause=lambda: clock.advance(1))) as server:
        embedder = embedder_for(server, clock=clock, TIMEOUT_MS="30000", RETRY_ATTEMPTS="1")
        assert reason(embedder) == "unreachable"
    assert clock.boot_seconds() >= 30


def test_silence_ends_with_the_timeout() -> None:
    with MisbehavingServer(silence()) as server:
        embedder = Embedder(
            config_for(server, TIMEOUT_MS="50", RETRY_ATTEMPTS="2", RETRY_BACKOFF_MS="1"),
            environ={},
            clock=SystemClock(),
        )
        assert reason(embedder) == "unreachable"
        assert len(server.requests) == 2


# --- keys and addresses


@pytest.mark.parametrize("key", ["", "  ", "two words", "line\r\nX-Evil: 1", "ключ", "k" * 5_000])
def test_a_variable_that_holds_no_key_sends_nothing(key: str) -> None:
    config = provider_from_environment({"OMNIGRAPH_EMBED_PROVIDER": "openai", "OMNIGRAPH_EMBED_MODEL": MODEL})
    assert config is not None
    assert config.lacks_key({"OPENAI_API_KEY": key})
    with pytest.raises(EmbeddingFailed, match="OPENAI_API_KEY") as failed:
        ask(Embedder(config, environ={"OPENAI_API_KEY": key}, clock=SteppingClock()))
    assert failed.value.reason == "no_provider"
    assert not key.strip() or key not in failed.value.message
    if key.strip():
        with MisbehavingServer(answer(200, GOOD)) as server:
            assert reason(embedder_for(server, environ={KEY_VARIABLE: key})) == "no_provider"
        assert server.requests == []


def test_a_line_end_behind_a_key_does_not_count() -> None:
    with MisbehavingServer(answer(200, GOOD)) as server:
        ask(embedder_for(server, environ={KEY_VARIABLE: f"{KEY}\n"}))
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_key_is_read_when_it_is_needed() -> None:
    environ = {KEY_VARIABLE: "first"}
    with MisbehavingServer(answer(200, GOOD)) as server:
        embedder = embedder_for(server, environ=environ)
        ask(embedder, "a")
        environ[KEY_VARIABLE] = "second"
        ask(embedder, "b")
    assert [each.headers["authorization"] for each in server.requests] == ["Bearer first", "Bearer second"]


def http_provider(config: ProviderConfig, *resolved: str, clock: SteppingClock | None = None) -> HttpProvider:
    environ = {KEY_VARIABLE: KEY, "OMNIGRAPH_PROVIDER_KEY_A": KEY}
    return HttpProvider(
        config,
        OpenAIDialect(),
        environ=environ,
        clock=clock or SteppingClock(),
        randomness=bytes,
        resolve=lambda host, port: list(resolved),
    )


def profiled(base: str, *hosts: str) -> ProviderConfig:
    profile = {"kind": "openai-compatible", "base_url": base, "model": "m", "api_key": "${OMNIGRAPH_PROVIDER_KEY_A}"}
    return provider_from_profile("p", profile, ProviderHosts.parse(hosts))


def test_a_listed_name_that_leads_inside_is_not_asked() -> None:
    with MisbehavingServer(answer(200, GOOD)) as server:
        base = f"https://vectors.example:{server.port}/v1"
        clock = SteppingClock()
        failed = http_provider(profiled(base, "vectors.example"), "127.0.0.1", clock=clock).embed(
            ["a"], "query", 2, 60.0
        )
        assert getattr(failed, "reason", None) == "refused"
        assert (server.requests, clock.slept) == ([], [])


def test_a_name_that_resolves_differently_later_leads_nowhere_else() -> None:
    with MisbehavingServer(cut()) as server:
        base = f"http://localhost:{server.port}/v1"
        answers = iter([["127.0.0.1"], ["169.254.169.254"]])
        provider = HttpProvider(
            profiled(base, "localhost"),
            OpenAIDialect(),
            environ={"OMNIGRAPH_PROVIDER_KEY_A": KEY},
            clock=SteppingClock(),
            randomness=bytes,
            resolve=lambda host, port: next(answers),
        )
        failed = provider.embed(["a"], "query", 2, 60.0)
        assert getattr(failed, "reason", None) == "refused"
        assert len(server.requests) == 1


def test_without_encryption_nothing_leaves_this_machine_whatever_its_name_resolves_to() -> None:
    config = provider_from_environment(
        {
            "OMNIGRAPH_EMBED_PROVIDER": "openai-compatible",
            "OMNIGRAPH_EMBED_BASE_URL": "http://localhost:9/v1",
            "OMNIGRAPH_EMBED_MODEL": "m",
        }
    )
    assert config is not None
    failed = http_provider(config, "192.0.2.1").embed(["a"], "query", 2, 60.0)
    assert getattr(failed, "reason", None) == "refused"


def test_of_several_addresses_the_next_is_tried() -> None:
    with MisbehavingServer(answer(200, GOOD)) as server:
        config = profiled(f"http://localhost:{server.port}/v1", "localhost")
        provider = http_provider(config, "169.254.169.254", "::1", "127.0.0.1")
        assert provider.embed(["a"], "query", 2, 60.0) == Vectors((UNIT,))
    assert len(server.requests) == 1
