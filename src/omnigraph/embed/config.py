"""Which provider a graph has, and how it is asked: from the environment, or from a profile of `cluster.yaml`.

A configuration holds the *name* of the variable with the key and never a key, so that it can be shown, stored and compared.
Every value is judged here, before anything is asked. Reaches no network.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, cast, get_args
from urllib.parse import SplitResult, urlsplit

from omnigraph.embed.hosts import ProviderHosts, is_host, is_loopback
from omnigraph.embed.lexical import LEXICAL_MODEL
from omnigraph.embed.mock import MOCK_MODEL
from omnigraph.embed.multilingual import MULTILINGUAL_MODEL
from omnigraph.embed.secret import secret_from
from omnigraph.errors import InvalidRequest

Kind = Literal["openai", "openai-compatible", "gemini", "local", "mock"]
KINDS: tuple[Kind, ...] = get_args(Kind)
LOCAL_MODELS = (LEXICAL_MODEL, MULTILINGUAL_MODEL)

KEY_VARIABLE = "OMNIGRAPH_PROVIDER_KEY_EMBED"
"""The key for a host of one's own, where the environment names the provider; unset: asked without a key."""

EMBED_VARIABLES: tuple[str, ...] = (
    *(
        f"OMNIGRAPH_EMBED_{name}"
        for name in "PROVIDER MODEL BASE_URL DEADLINE_MS TIMEOUT_MS RETRY_ATTEMPTS RETRY_BACKOFF_MS".split()
    ),
    KEY_VARIABLE,
)

_OWN_HOSTS: dict[Kind, str] = {
    "openai": "https://api.openai.com/v1",
    "openai-compatible": "https://openrouter.ai/api/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
}
_OWN_MODELS: dict[Kind, str] = {
    "openai": "text-embedding-3-large",
    "openai-compatible": "openai/text-embedding-3-large",
    "gemini": "gemini-embedding-2",
    "local": LEXICAL_MODEL,
    "mock": MOCK_MODEL,
}
# A key goes to the host that it was issued by, whatever the kind of request.
_KEYS_OF_HOSTS = {
    "api.openai.com": "OPENAI_API_KEY",
    "openrouter.ai": "OPENROUTER_API_KEY",
    "generativelanguage.googleapis.com": "GEMINI_API_KEY",
}
PUBLIC_HOSTS = frozenset(_KEYS_OF_HOSTS)

_MODEL = re.compile(r"[!-~]{1,256}")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_GEMINI_MODEL = re.compile(r"[A-Za-z0-9._-]{1,256}")  # a segment of a path
_PATH = re.compile(r"[A-Za-z0-9/._~-]*")
_API_KEY = re.compile(r"\$\{(OMNIGRAPH_PROVIDER_KEY_[A-Z0-9_]{1,64})\}")
_PROFILE_KEYS = {"kind", "base_url", "model", "api_key"}


@dataclass(frozen=True, slots=True)
class Patience:
    """How long a provider is waited for. `deadline_ms` holds for all attempts together, `timeout_ms` for each of at most
    `attempts`; the waits between them begin at `backoff_ms` and double.
    """

    deadline_ms: int = 60_000
    timeout_ms: int = 30_000
    attempts: int = 4
    backoff_ms: int = 200


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """One provider, checked. `name` stands in errors; `base_url` and `key_variable` are None for one without network.

    `hosts`: the addresses that a server lets its configuration reach; None takes what the program itself says.
    """

    kind: Kind
    name: str
    model: str
    base_url: str | None = None
    key_variable: str | None = None
    key_required: bool = False
    patience: Patience = field(default_factory=Patience)
    hosts: ProviderHosts | None = None

    def lacks_key(self, environ: Mapping[str, str] | None = None) -> bool:
        """Whether a key is needed and the environment has none: what a boot or a deployment asks beforehand."""
        variables = os.environ if environ is None else environ
        return self.key_required and secret_from(variables, self.key_variable) is None


def provider_from_environment(
    environ: Mapping[str, str] | None = None, hosts: ProviderHosts | None = None
) -> ProviderConfig | None:
    """The provider that `OMNIGRAPH_EMBED_PROVIDER` names; None if it names none. A server says which `hosts` it may have.

    A missing key is no fault yet: it fails the queries that need it. Raises InvalidRequest (`invalid_setting`) naming the
    variable and what it may be.
    """
    variables = os.environ if environ is None else environ
    given = {name: variables.get(name, "") for name in EMBED_VARIABLES}
    text = given["OMNIGRAPH_EMBED_PROVIDER"]
    if not text:
        idle = next((name for name, value in given.items() if value and name != KEY_VARIABLE), None)
        if idle is not None:
            raise _invalid(f"{idle} says nothing without OMNIGRAPH_EMBED_PROVIDER")
        return None
    if text not in KINDS:
        raise _invalid(f"OMNIGRAPH_EMBED_PROVIDER may be {', '.join(KINDS)}")
    kind = text
    base = _base_url(kind, given["OMNIGRAPH_EMBED_BASE_URL"], "OMNIGRAPH_EMBED_BASE_URL")
    host = _host_of(base)
    _check_host(host, hosts, "OMNIGRAPH_EMBED_BASE_URL")
    return ProviderConfig(
        kind=kind,
        name=kind,
        model=_model(kind, given["OMNIGRAPH_EMBED_MODEL"], base, "OMNIGRAPH_EMBED_MODEL"),
        base_url=base,
        key_variable=None if host is None else _KEYS_OF_HOSTS.get(host, KEY_VARIABLE),
        key_required=host in _KEYS_OF_HOSTS,
        patience=Patience(
            _whole(given, "OMNIGRAPH_EMBED_DEADLINE_MS", 60_000, 1, 600_000),
            _whole(given, "OMNIGRAPH_EMBED_TIMEOUT_MS", 30_000, 1, 600_000),
            _whole(given, "OMNIGRAPH_EMBED_RETRY_ATTEMPTS", 4, 1, 10),
            _whole(given, "OMNIGRAPH_EMBED_RETRY_BACKOFF_MS", 200, 0, 60_000),
        ),
        hosts=hosts,
    )


def provider_from_profile(
    name: str, profile: Mapping[str, object], hosts: ProviderHosts, *, patience: Patience | None = None
) -> ProviderConfig:
    """A profile of `providers.embedding` in `cluster.yaml` (cluster.md 12), as a server may use it (security.md 2).

    Raises InvalidRequest: `inline_secret` for an `api_key` that is no `${OMNIGRAPH_PROVIDER_KEY_…}`, else
    `invalid_setting`. No message repeats a value, which might be a secret in the wrong place.
    """
    if not _NAME.fullmatch(name):
        raise _invalid("a provider's name is a letter, then letters, digits, `_` and `-`, at most 64")
    where = f"provider `{name}`: "
    if not set(profile) <= _PROFILE_KEYS:
        raise _invalid(f"{where}a profile has kind, base_url, model and api_key")
    if not all(isinstance(value, str) for value in profile.values()):
        raise _invalid(f"{where}each value is a text")
    texts = cast("Mapping[str, str]", profile)
    kind = texts.get("kind", "")
    if kind not in KINDS:
        raise _invalid(f"{where}kind may be {', '.join(KINDS)}")
    if kind == "openai-compatible" and not texts.get("base_url"):
        raise _invalid(f"{where}base_url is required for {kind}")
    base = _base_url(kind, texts.get("base_url", ""), f"{where}base_url")
    _check_host(_host_of(base), hosts, f"{where}base_url")
    if base is not None and not texts.get("model"):
        raise _invalid(f"{where}model is required for {kind}")
    return ProviderConfig(
        kind=kind,
        name=name,
        model=_model(kind, texts.get("model", ""), base, f"{where}model"),
        base_url=base,
        key_variable=_key_variable(kind, texts.get("api_key", ""), where),
        key_required=base is not None,
        patience=patience or Patience(),
        hosts=hosts,
    )


def _key_variable(kind: Kind, text: str, where: str) -> str | None:
    if kind not in _OWN_HOSTS:
        if text:
            raise _invalid(f"{where}{kind} takes no api_key")
        return None
    if not text:
        raise _invalid(f"{where}api_key is required for {kind}")
    named = _API_KEY.fullmatch(text)
    if named is None:
        what = "api_key is ${OMNIGRAPH_PROVIDER_KEY_…}, the name of a variable, and never the key itself"
        raise InvalidRequest(f"{where}{what}", code="inline_secret", effects="none")
    return named[1]


def _base_url(kind: Kind, text: str, what: str) -> str | None:
    if kind not in _OWN_HOSTS:
        if text:
            raise _invalid(f"{what}: {kind} asks no host")
        return None
    if not text:
        return _OWN_HOSTS[kind]
    parts = _split(text)
    if parts is None or parts.scheme not in ("https", "http"):
        raise _invalid(f"{what} is an address such as https://vectors.example/v1, without user, query and fragment")
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise _invalid(f"{what} begins with https:// unless its host is this machine")
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def _split(text: str) -> SplitResult | None:
    """The parts of an address that is nothing but scheme, host, port and a plain path."""
    if not text.isascii() or not text.isprintable() or " " in text or set("?#@\\%") & set(text):
        return None
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # brackets that don't match, or a port that is none
        return None
    segments = parts.path.split("/")
    plain = _PATH.fullmatch(parts.path) and not {".", ".."} & set(segments)
    return parts if parts.hostname and is_host(parts.hostname) and port != 0 and plain else None


def _check_host(host: str | None, hosts: ProviderHosts | None, what: str) -> None:
    """A name in a configuration reaches nothing that the operator of the process did not list, public providers apart."""
    if host is not None and hosts is not None and host not in PUBLIC_HOSTS and not hosts.lists(host):
        raise _invalid(f"{what} has a host that this server may not ask (--provider-host)")


def _host_of(base: str | None) -> str | None:
    return None if base is None else urlsplit(base).hostname


def _model(kind: Kind, text: str, base: str | None, what: str) -> str:
    if not text:
        if base not in (None, _OWN_HOSTS.get(kind)):
            raise _invalid(f"{what} is required where the host is one's own")
        return _OWN_MODELS[kind]
    if kind == "local" and text not in LOCAL_MODELS:
        raise _invalid(f"{what} may be {' or '.join(LOCAL_MODELS)} for {kind}")
    if not (_GEMINI_MODEL if kind == "gemini" else _MODEL).fullmatch(text):
        raise _invalid(f"{what} is a name of at most 256 printable characters without spaces")
    return text


def _whole(given: Mapping[str, str], name: str, default: int, low: int, high: int) -> int:
    text = given[name]
    if not text:
        return default
    if not re.fullmatch(r"[0-9]{1,9}", text) or not low <= int(text) <= high:
        raise _invalid(f"{name} must be a whole number from {low} to {high}")
    return int(text)


def _invalid(message: str) -> InvalidRequest:
    return InvalidRequest(message, code="invalid_setting", effects="none")
