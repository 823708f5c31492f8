"""The settings of an S3 client, from the environment and from the caller, in the words of both libraries that need
them: our own client and Lance. One reading, so that the two never talk to different places.

Credentials that are not given here are found by each library's own chain (instance role, web identity).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn
from urllib.parse import urlsplit, urlunsplit

from omnigraph.errors import InvalidRequest

_ENDPOINT_VARIABLES = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_REGION_VARIABLES = ("AWS_REGION", "AWS_DEFAULT_REGION")
_REGION_DEFAULT = "us-east-1"

_OPTION_NAMES = {
    "access_key_id": "access_key_id",
    "secret_access_key": "secret_access_key",
    "session_token": "session_token",
    "token": "session_token",
    "region": "region",
    "default_region": "region",
    "endpoint": "endpoint",
    "endpoint_url": "endpoint",
    "endpoint_url_s3": "endpoint",
    "allow_http": "allow_http",
    "s3_force_path_style": "force_path_style",
    "force_path_style": "force_path_style",
}
_EXTRA_OPTIONS = {"server_side_encryption", "sse_kms_key_id", "sse_bucket_key_enabled", "request_payer"}
_TRUE, _FALSE = {"1", "true", "yes", "on"}, {"0", "false", "no", "off"}


@dataclass(frozen=True, slots=True)
class S3Settings:
    """`virtual_hosted`: the bucket is part of the host name, which `endpoint` then carries too."""

    bucket: str
    endpoint: str | None = None
    region: str | None = None
    allow_http: bool = False
    virtual_hosted: bool = False
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    extra: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, bucket: str, environ: Mapping[str, str], options: Mapping[str, str]) -> S3Settings:
        """Options come before the environment. Raises InvalidRequest (`invalid_setting`), repeating no value."""
        given = _named(options)
        if "access_key_id" in given and "session_token" not in given and environ.get("AWS_SESSION_TOKEN"):
            _refuse("a key given as a storage option needs its session token there too: AWS_SESSION_TOKEN is set")
        endpoint = given.get("endpoint") or _first(environ, _ENDPOINT_VARIABLES)
        region = given.get("region") or _first(environ, _REGION_VARIABLES) or (_REGION_DEFAULT if endpoint else None)
        allow_http = _flag("AWS_ALLOW_HTTP", given.get("allow_http") or environ.get("AWS_ALLOW_HTTP"), False)
        path_style = _flag(
            "AWS_S3_FORCE_PATH_STYLE",
            given.get("force_path_style") or environ.get("AWS_S3_FORCE_PATH_STYLE"),
            True,
        )
        return cls(
            bucket,
            None if endpoint is None else _checked_endpoint(endpoint, allow_http, None if path_style else bucket),
            region,
            allow_http,
            not path_style,
            given.get("access_key_id") or environ.get("AWS_ACCESS_KEY_ID") or None,
            given.get("secret_access_key") or environ.get("AWS_SECRET_ACCESS_KEY") or None,
            given.get("session_token") or environ.get("AWS_SESSION_TOKEN") or None,
            tuple(sorted((name, value) for name, value in given.items() if name in _EXTRA_OPTIONS)),
        )

    def client_config(self) -> dict[str, str]:
        """For our own client, in the words of object_store."""
        config = {"conditional_put": "etag", **self._common()}
        if self.endpoint is not None:
            config |= {"endpoint": self.endpoint, "endpoint_url_s3": self.endpoint}
        return {f"aws_{name}": value for name, value in config.items()}

    def lance_options(self, request_timeout_seconds: int) -> dict[str, str]:
        """For Lance, as its storage options. Lance keeps its own bounds on repeating requests."""
        options = {f"aws_{name}": value for name, value in self._common().items()}
        if self.endpoint is not None:
            options["aws_endpoint"] = self.endpoint
        return options | {
            "allow_http": str(self.allow_http).lower(),
            "timeout": f"{request_timeout_seconds}s",
        }

    def _common(self) -> dict[str, str]:
        known = {
            "region": self.region,
            "access_key_id": self.access_key_id,
            "secret_access_key": self.secret_access_key,
            "session_token": self.session_token,
            "virtual_hosted_style_request": str(self.virtual_hosted).lower(),
            **dict(self.extra),
        }
        return {name: value for name, value in known.items() if value is not None}


def _named(options: Mapping[str, str]) -> dict[str, str]:
    """Options under one name each: `aws_region`, `AWS_REGION` and `region` are the same."""
    named: dict[str, str] = {}
    for option, value in options.items():
        plain = option.lower().removeprefix("aws_")
        name = _OPTION_NAMES.get(plain) or (plain if plain in _EXTRA_OPTIONS else None)
        if name is None:
            _refuse(f"the storage option {option!r} is not known")
        named[name] = value
    return named


def _checked_endpoint(endpoint: str, allow_http: bool, host_bucket: str | None) -> str:
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        _refuse("the S3 endpoint must be an address that begins with https:// or http://")
    if parts.scheme == "http" and not allow_http:
        _refuse("the S3 endpoint is not encrypted: set AWS_ALLOW_HTTP=true to allow that")
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        _refuse("the S3 endpoint has no user info, query or fragment")
    host = parts.netloc if host_bucket is None else f"{host_bucket}.{parts.netloc}"
    return urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", ""))


def _flag(name: str, text: str | None, default: bool) -> bool:
    if not text:
        return default
    if text.lower() in _TRUE | _FALSE:
        return text.lower() in _TRUE
    _refuse(f"{name} must be true or false")


def _first(environ: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((environ[name] for name in names if environ.get(name)), None)


def _refuse(message: str) -> NoReturn:
    raise InvalidRequest(message, code="invalid_setting")
