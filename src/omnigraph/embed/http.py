"""A provider behind HTTP: asks it, waits for it within bounds, asks again where that may help.

Nothing that the network or the provider says reaches an error or a log: an answer is a status, a time to wait, and numbers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import assert_never
from urllib.parse import urlsplit

import httpcore

from omnigraph._version import __version__
from omnigraph.ambient import Clock
from omnigraph.embed.config import ProviderConfig
from omnigraph.embed.dialects import Asked, Dialect
from omnigraph.embed.network import AddressRefused, Network, Resolver
from omnigraph.embed.outcomes import Failed, Role, Vectors
from omnigraph.embed.secret import secret_from

_PASSING = {408, 429}
_BYTES_OF_AN_ANSWER, _BYTES_OF_A_NUMBER = 65_536, 64  # a number may stand in a line of its own, indented
_WAIT_SECONDS_MAX = 3_600


@dataclass(frozen=True, slots=True)
class _Answered:
    body: bytes


@dataclass(frozen=True, slots=True)
class _Passing:
    """May go better next time, `wait` seconds from now at the earliest. `status` is None without an answer."""

    status: int | None
    wait: float = 0.0


@dataclass(frozen=True, slots=True)
class _Final:
    failed: Failed


class HttpProvider:
    """`environ` holds the key, which is read at each request; `randomness` gives that many random bytes."""

    costly = True

    def __init__(
        self,
        config: ProviderConfig,
        dialect: Dialect,
        *,
        environ: Mapping[str, str],
        clock: Clock,
        randomness: Callable[[int], bytes],
        resolve: Resolver | None = None,
    ) -> None:
        if config.base_url is None:
            raise ValueError("a provider behind HTTP has an address")
        parts = urlsplit(config.base_url)
        self._config = config
        self._dialect = dialect
        self._environ = environ
        self._clock = clock
        self._randomness = randomness
        self._scheme, self._host, self._port, self._path = parts.scheme, parts.hostname or "", parts.port, parts.path
        self._place = parts.netloc
        encrypted = parts.scheme == "https"
        self._network = Network(clock, encrypted=encrypted, hosts=config.hosts, resolve=resolve)

    def embed(self, texts: Sequence[str], role: Role, dimensions: int, until: float) -> Vectors | Failed:
        """Asks until there is an answer, it can't get better, the attempts are used up, or the next would come too late."""
        headers = self._headers()
        if isinstance(headers, Failed):
            return headers
        asked = self._dialect.ask(self._config.model, texts, role, dimensions)
        bytes_max = _BYTES_OF_AN_ANSWER + _BYTES_OF_A_NUMBER * dimensions * len(texts)
        patience = self._config.patience
        attempt = 1
        while True:
            outcome = self._attempt(asked, headers, bytes_max, until)
            match outcome:
                case _Answered(body):
                    return self._dialect.read(body, len(texts), dimensions)
                case _Final(failed):
                    return failed
                case _Passing(status, wait):
                    pause = wait + self._pause(attempt)
                    if attempt == patience.attempts or self._clock.boot_seconds() + pause >= until:
                        return _given_up(status, attempt)
                case _:
                    assert_never(outcome)
            self._clock.sleep(pause)
            attempt += 1

    def close(self) -> None:
        self._network.close()

    def _headers(self) -> dict[str, str] | Failed:
        headers = {
            "Host": self._place,
            "Content-Type": "application/json",
            "Accept": "application/json",
            "Accept-Encoding": "identity",
            "User-Agent": f"omnigraph/{__version__}",
        }
        key = secret_from(self._environ, self._config.key_variable)
        if key is not None:
            name, value = self._dialect.authorization(key)
            return {**headers, name: value}
        if self._config.key_required or self._environ.get(self._config.key_variable or "", ""):
            return Failed("no_provider", f"has no usable key in the variable {self._config.key_variable}")
        return headers

    def _attempt(
        self, asked: Asked, headers: dict[str, str], bytes_max: int, until: float
    ) -> _Answered | _Passing | _Final:
        """One request. Errors of the network become values, and their texts go nowhere."""
        now = self._clock.boot_seconds()
        seconds = min(self._config.patience.timeout_ms / 1_000, until - now)
        if seconds <= 0:
            return _Passing(None)
        url = httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target=self._path + asked.path)
        try:
            with self._network.post(url, headers, asked.body, seconds=seconds, until=now + seconds) as answer:
                if answer.status == 200:
                    return self._body(answer, bytes_max)
                return self._refusal(answer)
        except AddressRefused:
            return _Final(Failed("refused", "leads to an address that may not be asked"))
        except (httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError):
            return _Passing(None)

    def _body(self, answer: httpcore.Response, bytes_max: int) -> _Answered | _Final:
        encoding = _header(answer, b"content-encoding")
        if encoding not in (None, "identity"):  # a small body could expand to a huge one
            return _Final(Failed("bad_vector", "answered in a compressed form, which was not asked for"))
        body = bytearray()
        for piece in answer.iter_stream():
            body += piece
            if len(body) > bytes_max:
                return _Final(Failed("bad_vector", "answered with far more than the vectors that were asked for"))
        return _Answered(bytes(body))

    def _refusal(self, answer: httpcore.Response) -> _Passing | _Final:
        if answer.status in _PASSING or answer.status >= 500:
            return _Passing(answer.status, self._wait_asked(answer))
        if 300 <= answer.status < 400:
            return _Final(Failed("refused", f"answered {answer.status}: another address, which is not followed"))
        return _Final(Failed("refused", f"refused the request with status {answer.status}"))

    def _wait_asked(self, answer: httpcore.Response) -> float:
        """Seconds of `Retry-After`, which is a number or a date; 0 without one that makes sense."""
        text = _header(answer, b"retry-after") or ""
        if re.fullmatch(r"[0-9]{1,9}", text):
            return min(int(text), _WAIT_SECONDS_MAX)
        try:
            at = parsedate_to_datetime(text).timestamp()
        except (ValueError, OverflowError, OSError):  # no date
            return 0.0
        return min(max(at - self._clock.now_us() / 1e6, 0.0), _WAIT_SECONDS_MAX)

    def _pause(self, attempt: int) -> float:
        """Doubling from the first, and by chance between half and all of it, so that those who failed together part."""
        chance = int.from_bytes(self._randomness(4)) / 2**32
        return self._config.patience.backoff_ms / 1_000 * 2.0 ** (attempt - 1) * (0.5 + chance / 2)


def _given_up(status: int | None, attempts: int) -> Failed:
    times = "once" if attempts == 1 else f"{attempts} times"
    said = "gave no answer" if status is None else f"answered {status}"
    return Failed("unreachable", f"{said}, asked {times}")


def _header(answer: httpcore.Response, name: bytes) -> str | None:
    found = [value for key, value in answer.headers if key.lower() == name]
    return found[0].decode("latin-1").strip().lower() if found else None
