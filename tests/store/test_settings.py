"""Settings of storage: what the environment may say, and that it reaches both libraries alike."""

from __future__ import annotations

import pytest

from omnigraph.errors import InvalidRequest
from omnigraph.store.open import open_store
from omnigraph.store.s3_settings import S3Settings
from omnigraph.store.settings import StoreSettings


def code_of(environ: dict[str, str]) -> str:
    with pytest.raises(InvalidRequest) as caught:
        StoreSettings.from_environment(environ)
    return caught.value.code


def test_defaults_hold_where_nothing_is_set():
    assert StoreSettings.from_environment({}) == StoreSettings(request_timeout_seconds=30, local_sync="full")


@pytest.mark.parametrize("value", ["", "0"])
def test_a_client_retry_setting_of_zero_is_accepted(value: str):
    StoreSettings.from_environment({"OBJECT_STORE_CLIENT_MAX_RETRIES": value})


@pytest.mark.parametrize("value", ["1", "5", "00", "-1", "off", " 0"])
def test_any_other_client_retry_setting_refuses(value: str):
    assert code_of({"OBJECT_STORE_CLIENT_MAX_RETRIES": value}) == "invalid_retry_setting"


def test_the_retry_setting_refuses_local_roots_too(tmp_path: object, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OBJECT_STORE_CLIENT_MAX_RETRIES", "3")
    with pytest.raises(InvalidRequest):
        open_store(str(tmp_path))


@pytest.mark.parametrize(("value", "seconds"), [("1", 1), ("30", 30), ("600", 600), ("", 30)])
def test_the_request_timeout_is_read(value: str, seconds: int):
    settings = StoreSettings.from_environment({"OMNIGRAPH_STORAGE_REQUEST_TIMEOUT_SECONDS": value})
    assert settings.request_timeout_seconds == seconds


@pytest.mark.parametrize("value", ["0", "601", "-5", "30s", "7.5", " 30", "abc", "١"])
def test_a_bad_request_timeout_refuses(value: str):
    assert code_of({"OMNIGRAPH_STORAGE_REQUEST_TIMEOUT_SECONDS": value}) == "invalid_setting"


def test_local_sync_is_full_or_off():
    assert StoreSettings.from_environment({"OMNIGRAPH_LOCAL_SYNC": "off"}).local_sync == "off"
    assert StoreSettings.from_environment({"OMNIGRAPH_LOCAL_SYNC": "full"}).local_sync == "full"
    assert code_of({"OMNIGRAPH_LOCAL_SYNC": "maybe"}) == "invalid_setting"


# --- S3

ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "topsecret",
    "AWS_SESSION_TOKEN": "token",
    "AWS_REGION": "eu-west-1",
    "AWS_ENDPOINT_URL_S3": "https://s3.example",
    "AWS_ENDPOINT_URL": "https://other.example",
}


def test_one_reading_serves_our_client_and_lance():
    settings = S3Settings.read("bucket", ENVIRONMENT, {})
    client, lance = settings.client_config(), settings.lance_options(7)
    for options in (client, lance):
        assert options["aws_endpoint"] == "https://s3.example"
        assert options["aws_region"] == "eu-west-1"
        assert options["aws_access_key_id"] == "key"
        assert options["aws_secret_access_key"] == "topsecret"
        assert options["aws_session_token"] == "token"
        assert options["aws_virtual_hosted_style_request"] == "false"
    assert client["aws_endpoint_url_s3"] == "https://s3.example"
    assert client["aws_conditional_put"] == "etag"
    assert lance["timeout"] == "7s"
    assert lance["allow_http"] == "false"


def test_options_come_before_the_environment_under_any_spelling_of_their_name():
    environ = {name: value for name, value in ENVIRONMENT.items() if name != "AWS_SESSION_TOKEN"}
    for options in (
        {"region": "us-west-2", "endpoint": "https://mine"},
        {"AWS_REGION": "us-west-2", "aws_endpoint_url": "https://mine"},
    ):
        settings = S3Settings.read("bucket", environ, options)
        assert (settings.region, settings.endpoint) == ("us-west-2", "https://mine")


def test_without_an_endpoint_the_region_is_left_to_the_libraries():
    settings = S3Settings.read("bucket", {}, {})
    assert "aws_region" not in settings.client_config()
    assert "aws_endpoint" not in settings.lance_options(30)


def test_virtual_hosted_style_puts_the_bucket_into_the_host():
    environ = {**ENVIRONMENT, "AWS_S3_FORCE_PATH_STYLE": "false"}
    settings = S3Settings.read("bucket", environ, {})
    assert settings.endpoint == "https://bucket.s3.example"
    assert settings.lance_options(30)["aws_virtual_hosted_style_request"] == "true"


@pytest.mark.parametrize(
    ("environ", "options"),
    [
        ({"AWS_ENDPOINT_URL": "http://127.0.0.1:1"}, {}),
        ({"AWS_ENDPOINT_URL": "ftp://host", "AWS_ALLOW_HTTP": "true"}, {}),
        ({"AWS_ENDPOINT_URL": "localhost:9000", "AWS_ALLOW_HTTP": "true"}, {}),
        ({"AWS_ENDPOINT_URL": "https://user:topsecret@host"}, {}),
        ({"AWS_ALLOW_HTTP": "topsecret"}, {}),
        ({"AWS_S3_FORCE_PATH_STYLE": "topsecret"}, {}),
        ({}, {"no_such_option": "topsecret"}),
        ({"AWS_SESSION_TOKEN": "t"}, {"access_key_id": "k", "secret_access_key": "topsecret"}),
    ],
)
def test_bad_s3_settings_refuse_without_repeating_a_value(environ: dict[str, str], options: dict[str, str]):
    with pytest.raises(InvalidRequest) as caught:
        S3Settings.read("bucket", environ, options)
    assert caught.value.code == "invalid_setting"
    assert "topsecret" not in caught.value.message


def test_secrets_are_not_part_of_the_printed_form():
    assert "topsecret" not in repr(S3Settings.read("bucket", ENVIRONMENT, {}))


def test_a_variable_that_only_the_client_reads_and_refuses_is_a_typed_error(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("AWS_CHECKSUM_ALGORITHM", "no-such-sum")
    with pytest.raises(InvalidRequest) as caught:
        open_store("s3://bucket/x")
    assert caught.value.code == "invalid_setting"
