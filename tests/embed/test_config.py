"""Which provider the environment and a profile of cluster.yaml name, and what they may not say."""

from __future__ import annotations

import pytest

from omnigraph.embed.config import (
    EMBED_VARIABLES,
    KEY_VARIABLE,
    Patience,
    ProviderConfig,
    provider_from_environment,
    provider_from_profile,
)
from omnigraph.embed.hosts import ProviderHosts
from omnigraph.errors import InvalidRequest

HOSTS = ProviderHosts.parse(["vectors.harbor.example", "127.0.0.1"])


def from_environment(**given: str) -> ProviderConfig:
    found = provider_from_environment({f"OMNIGRAPH_EMBED_{name}": value for name, value in given.items()})
    assert found is not None
    return found


# --- the environment


def test_without_a_provider_there_is_none_whatever_keys_there_are() -> None:
    keys = {"OPENAI_API_KEY": "k", "OPENROUTER_API_KEY": "k", "GEMINI_API_KEY": "k", KEY_VARIABLE: "k"}
    assert provider_from_environment(keys) is None
    assert provider_from_environment({"OMNIGRAPH_EMBED_PROVIDER": ""}) is None


@pytest.mark.parametrize(
    ("kind", "model", "base", "variable"),
    [
        ("openai", "text-embedding-3-large", "https://api.openai.com/v1", "OPENAI_API_KEY"),
        (
            "openai-compatible",
            "openai/text-embedding-3-large",
            "https://openrouter.ai/api/v1",
            "OPENROUTER_API_KEY",
        ),
        ("gemini", "gemini-embedding-2", "https://generativelanguage.googleapis.com/v1beta", "GEMINI_API_KEY"),
        ("local", "lexical-v1", None, None),
        ("mock", "mock-v1", None, None),
    ],
)
def test_a_kind_has_its_model_host_and_key(kind: str, model: str, base: str | None, variable: str | None) -> None:
    config = from_environment(PROVIDER=kind)
    assert (config.kind, config.name, config.model) == (kind, kind, model)
    assert (config.base_url, config.key_variable) == (base, variable)
    assert config.patience == Patience(deadline_ms=60_000, timeout_ms=30_000, attempts=4, backoff_ms=200)
    assert config.hosts is None
    assert config.lacks_key({}) == (variable is not None)
    assert not config.lacks_key({variable or "": "k"})


@pytest.mark.parametrize("kind", ["openai", "openai-compatible", "gemini"])
def test_a_key_belongs_to_the_host_that_issued_it(kind: str) -> None:
    def variable(base: str) -> str | None:
        return from_environment(PROVIDER=kind, BASE_URL=base, MODEL="m").key_variable

    assert variable("https://api.openai.com/v1") == "OPENAI_API_KEY"
    assert variable("https://OPENROUTER.ai/api/v1") == "OPENROUTER_API_KEY"
    assert variable("https://generativelanguage.googleapis.com/v1beta") == "GEMINI_API_KEY"
    for base in ("https://vectors.example/v1", "http://127.0.0.1:8000", "https://api.openai.com.example/v1"):
        assert variable(base) == KEY_VARIABLE
    own = from_environment(PROVIDER=kind, BASE_URL="http://127.0.0.1:8000/", MODEL="m")
    assert own.base_url == "http://127.0.0.1:8000"
    assert not own.lacks_key({})  # one's own host may ask for none


def test_every_value_of_the_environment_is_taken() -> None:
    config = from_environment(
        PROVIDER="openai-compatible",
        MODEL="m",
        BASE_URL="https://vectors.example/v1/",
        DEADLINE_MS="1000",
        TIMEOUT_MS="500",
        RETRY_ATTEMPTS="2",
        RETRY_BACKOFF_MS="0",
    )
    assert (config.model, config.base_url) == ("m", "https://vectors.example/v1")
    assert config.patience == Patience(1000, 500, 2, 0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PROVIDER", "OpenAI"),
        ("PROVIDER", "canary"),
        ("MODEL", "has space"),
        ("MODEL", "ünicode"),
        ("MODEL", "m" * 257),
        ("BASE_URL", "http://vectors.example/v1"),
        ("BASE_URL", "http://localhost.example"),
        ("BASE_URL", "ftp://vectors.example"),
        ("BASE_URL", "vectors.example/v1"),
        ("BASE_URL", "https://user:canary@vectors.example/v1"),
        ("BASE_URL", "https://vectors.example/v1?key=canary"),
        ("BASE_URL", "https://vectors.example/v1#canary"),
        ("BASE_URL", "https://vectors.example/v1/../admin"),
        ("BASE_URL", "https://vectors.example/%2e%2e"),
        ("BASE_URL", "https://vectors.example\\@evil.example"),
        ("BASE_URL", "https://vectors.example:port/"),
        ("BASE_URL", "https://vectors.example:0/"),
        ("BASE_URL", "https://[::1/"),
        ("BASE_URL", "https://[fe80::1%25eth0]/"),
        ("BASE_URL", "https://vectors.example/\r\nX: y"),
        ("BASE_URL", "https://värde.example/"),
        ("BASE_URL", "https:///v1"),
        ("DEADLINE_MS", "0"),
        ("DEADLINE_MS", "600001"),
        ("TIMEOUT_MS", "-1"),
        ("TIMEOUT_MS", "1.5"),
        ("RETRY_ATTEMPTS", "0"),
        ("RETRY_ATTEMPTS", "11"),
        ("RETRY_BACKOFF_MS", "٣"),
        ("RETRY_BACKOFF_MS", "60001"),
    ],
)
def test_a_bad_value_is_refused_by_the_name_of_its_variable_and_not_repeated(name: str, value: str) -> None:
    given = {"PROVIDER": "openai-compatible", "MODEL": "m", "BASE_URL": "https://vectors.example", name: value}
    with pytest.raises(InvalidRequest) as refused:
        from_environment(**given)
    assert refused.value.code == "invalid_setting"
    assert f"OMNIGRAPH_EMBED_{name}" in refused.value.message
    assert "canary" not in refused.value.message


@pytest.mark.parametrize("name", [name for name in EMBED_VARIABLES if not name.endswith(("_PROVIDER", "KEY_EMBED"))])
def test_a_variable_that_would_be_ignored_without_a_provider_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        provider_from_environment({name: "1"})


def test_what_a_kind_can_not_have_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="MODEL may be lexical-v1 or use-multilingual-v3"):
        from_environment(PROVIDER="local", MODEL="other")
    assert from_environment(PROVIDER="mock", MODEL="other").model == "other"  # so that a test can have any schema
    with pytest.raises(InvalidRequest, match="BASE_URL"):
        from_environment(PROVIDER="local", BASE_URL="https://vectors.example")
    with pytest.raises(InvalidRequest, match="MODEL is required"):
        from_environment(PROVIDER="openai-compatible", BASE_URL="https://vectors.example")
    with pytest.raises(InvalidRequest, match="MODEL"):
        from_environment(PROVIDER="gemini", MODEL="a/../b")  # it becomes a segment of a path


def test_a_server_s_environment_reaches_listed_hosts_only() -> None:
    given = {
        "OMNIGRAPH_EMBED_PROVIDER": "openai-compatible",
        "OMNIGRAPH_EMBED_BASE_URL": "https://vectors.harbor.example/v1",
        "OMNIGRAPH_EMBED_MODEL": "m",
    }
    config = provider_from_environment(given, HOSTS)
    assert config is not None
    assert config.hosts is HOSTS
    with pytest.raises(InvalidRequest, match="OMNIGRAPH_EMBED_BASE_URL"):
        provider_from_environment(given, ProviderHosts())
    assert provider_from_environment({"OMNIGRAPH_EMBED_PROVIDER": "gemini"}, ProviderHosts()) is not None


# --- cluster.yaml

PROFILE = {
    "kind": "openai-compatible",
    "base_url": "https://vectors.harbor.example/v1",
    "model": "small-embed-2",
    "api_key": "${OMNIGRAPH_PROVIDER_KEY_HARBOR}",
}


def test_a_profile_names_model_address_and_the_variable_of_its_key() -> None:
    config = provider_from_profile("berth-vectors", PROFILE, HOSTS)
    assert (config.name, config.kind, config.model) == ("berth-vectors", "openai-compatible", "small-embed-2")
    assert config.base_url == "https://vectors.harbor.example/v1"
    assert config.key_variable == "OMNIGRAPH_PROVIDER_KEY_HARBOR"
    assert config.hosts is HOSTS
    assert config.lacks_key({"OMNIGRAPH_PROVIDER_KEY_OTHER": "k"})
    assert not config.lacks_key({"OMNIGRAPH_PROVIDER_KEY_HARBOR": "k"})


@pytest.mark.parametrize("kind", ["local", "mock"])
def test_a_profile_without_network_needs_its_kind_alone(kind: str) -> None:
    config = provider_from_profile("p", {"kind": kind}, ProviderHosts())
    assert (config.base_url, config.key_variable) == (None, None)
    assert not config.lacks_key({})


@pytest.mark.parametrize(("kind", "model"), [("openai", "text-embedding-3-large"), ("gemini", "gemini-embedding-2")])
def test_the_public_host_of_a_kind_needs_no_listing(kind: str, model: str) -> None:
    profile = {"kind": kind, "model": model, "api_key": "${OMNIGRAPH_PROVIDER_KEY_A}"}
    assert provider_from_profile("p", profile, ProviderHosts()).key_variable == "OMNIGRAPH_PROVIDER_KEY_A"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"api_key": "sk-canary"}, "inline_secret"),
        ({"api_key": "${AWS_SECRET_ACCESS_KEY}"}, "inline_secret"),
        ({"api_key": "${OPENAI_API_KEY}"}, "inline_secret"),
        ({"api_key": "x${OMNIGRAPH_PROVIDER_KEY_A}"}, "inline_secret"),
        ({"api_key": "${OMNIGRAPH_PROVIDER_KEY_A}\n"}, "inline_secret"),
        ({"api_key": ""}, "invalid_setting"),
        ({"kind": "canary"}, "invalid_setting"),
        ({"kind": "local"}, "invalid_setting"),
        ({"base_url": ""}, "invalid_setting"),
        ({"base_url": "https://canary.example/v1"}, "invalid_setting"),
        ({"base_url": "https://127.0.0.2/v1"}, "invalid_setting"),
        ({"base_url": "http://localhost/v1"}, "invalid_setting"),
        ({"model": ""}, "invalid_setting"),
        ({"model": 3}, "invalid_setting"),
        ({"canary": "x"}, "invalid_setting"),
    ],
    ids=repr,
)
def test_a_profile_that_a_server_may_not_use_is_refused_without_its_values(
    change: dict[str, object], code: str
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        provider_from_profile("berth-vectors", {**PROFILE, **change}, HOSTS)
    assert refused.value.code == code
    assert "berth-vectors" in refused.value.message
    assert "canary" not in refused.value.message


@pytest.mark.parametrize("kind", ["openai", "openai-compatible", "gemini"])
def test_a_profile_with_a_network_names_its_model(kind: str) -> None:
    profile = {"kind": kind, "base_url": "https://openrouter.ai/api/v1", "api_key": "${OMNIGRAPH_PROVIDER_KEY_A}"}
    with pytest.raises(InvalidRequest, match="model is required"):
        provider_from_profile("p", profile, HOSTS)
    if kind != "openai-compatible":
        with pytest.raises(InvalidRequest, match="model is required"):
            provider_from_profile("p", {"kind": kind, "api_key": "${OMNIGRAPH_PROVIDER_KEY_A}"}, HOSTS)


@pytest.mark.parametrize("name", ["", "1a", "a b", "a" * 65, "ä", "a\n"])
def test_a_provider_s_name_is_a_plain_one(name: str) -> None:
    with pytest.raises(InvalidRequest, match="name"):
        provider_from_profile(name, PROFILE, HOSTS)
