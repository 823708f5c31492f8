"""Nothing secret and nothing from outside reaches an error, a log or a text form: keys, texts, answers, addresses."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback

import pytest

from embed.asked import KEY, TEXT, ask, config_for, embedder_for, openai
from omnigraph.embed.secret import Secret
from omnigraph.errors import EmbeddingFailed
from support.clocks import SteppingClock
from support.misbehaving import Behaviour, MisbehavingServer, answer, cut, raw
from support.wire import Connection, Message, response

ECHO = "canary-echo-9f3e"


def echo(status: int) -> Behaviour:
    """A hostile answer: all that it was sent, in the status line, in headers and in the body."""

    def play(connection: Connection, request: Message) -> bool:
        key = request.headers.get("authorization", "")
        body = f'{{"error": {{"message": "{ECHO} {key} {TEXT}"}}}}'.encode()
        data = response(
            status, body, X_Echo=f"{ECHO} {key}", Retry_After=ECHO, Location=f"https://{ECHO}.example/{KEY}"
        )
        connection.send(data.replace(b"Status", f"{ECHO} {KEY}".encode(), 1))
        return True

    return play


HOSTILE: dict[str, Behaviour] = {
    **{str(status): echo(status) for status in (200, 302, 401, 429, 500)},
    "no HTTP": raw(f"{ECHO} {KEY}\r\n\r\n".encode()),
    "a bad header": raw(f"HTTP/1.1 200 OK\r\n{ECHO} {KEY}\r\n\r\n".encode()),
    "no answer": cut(),
    "no number": answer(200, openai([ECHO, KEY])),
}


def everything_of(error: BaseException) -> str:
    """The error as a program, a person and a debugger may see it, with all that led to it."""
    seen: list[str] = []
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is not None:
            seen += [str(each), repr(each), repr(vars(each))]
            todo += [each.__cause__, each.__context__]
    body = error.to_dict() if isinstance(error, EmbeddingFailed) else {}
    return "\n".join([*seen, repr(body), *traceback.format_exception(error)])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_failure_tells_nothing_of_what_was_sent_and_answered(name: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with MisbehavingServer(HOSTILE[name]) as server:
        port = str(server.port)
        with pytest.raises(EmbeddingFailed) as failed:
            ask(embedder_for(server))
    assert server.requests
    told = everything_of(failed.value) + caplog.text
    for secret in (KEY, TEXT, ECHO, port):
        assert secret not in told
    assert failed.value.__cause__ is None
    assert failed.value.__context__ is None  # a debugger that shows the context shows nothing from below


def test_a_success_writes_nothing_to_a_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with MisbehavingServer(answer(200, openai([1, 0]), X_Echo=ECHO)) as server:
        embedder = embedder_for(server)
        ask(embedder)
    assert caplog.text == ""
    embedder.close()
    assert ECHO not in caplog.text


def test_what_other_programs_say_with_the_same_library_stays_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with MisbehavingServer(answer(200, openai([1, 0]))) as server:
        ask(embedder_for(server))
    logging.getLogger("httpcore.http11").debug("of another program")
    assert "of another program" in caplog.text


def test_a_configuration_and_what_holds_the_key_show_it_nowhere() -> None:
    with MisbehavingServer(answer(200, openai([1, 0]))) as server:
        config = config_for(server)
        embedder = embedder_for(server, clock=SteppingClock())
        ask(embedder)
        shown = repr(config) + str(config) + repr(embedder) + repr(pickle.dumps(config))
    assert KEY not in shown
    secret = Secret(KEY)
    assert KEY not in f"{secret!r} {secret!s} {secret}"
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError):
            copied(secret)
    assert secret != Secret(KEY)
