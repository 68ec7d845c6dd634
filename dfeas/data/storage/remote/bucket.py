"""A bucket of an object store, with credentials from the standard chain of its provider, and errors in our words.

obstore is the object_store crate of Apache Arrow: requests run outside the interpreter's lock and are repeated with growing
pauses. The chain of AWS is boto3's (environment, profiles, single sign-on, roles of containers and machines); those of Google
Cloud and Azure are obstore's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn

import boto3
import botocore.exceptions
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.exceptions import BaseError, PermissionDeniedError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, S3Store

from dfeas.errors import BadInputError, CorruptDataError, UsageError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

SCHEMES = ("s3", "gs", "az")

RETRIES = 8
"""So often a request is repeated that is not answered, or answered 5xx: after 0.1 s, then twice as long each time."""

RETRY_SECONDS = 60
REQUEST_SECONDS = 60
"""Until a request is answered whole, and is repeated otherwise."""

_URL = re.compile(r"([a-z0-9]+)://([A-Za-z0-9][A-Za-z0-9._-]*)(?:/(.*))?")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")


@dataclass(frozen=True)
class Bucket:
    """A bucket; ``store`` is what obstore calls it."""

    url: str  # s3://name
    store: Any = field(compare=False, repr=False)

    def below(self, key: str) -> Any:
        """A store of the objects below a key."""
        return _store(self.url, key)


def parse(url: str) -> tuple[Bucket, str]:
    """Bucket and key of a URL. Raises UsageError for other URLs; what may be a secret in one is not repeated."""
    match = _URL.fullmatch(url)
    scheme = url.partition("://")[0]
    if match is None or "?" in url or match[1] not in SCHEMES:
        shown = f"a URL that begins with {scheme}://" if scheme.isalnum() else "this URL"
        raise UsageError(f"{shown}: expected s3://BUCKET/KEY, gs://BUCKET/KEY or az://CONTAINER/KEY, without credentials in it")
    where = f"{match[1]}://{match[2]}"
    parts = [part for part in (match[3] or "").split("/") if part]
    if {".", ".."} & set(parts) or not all(part.isprintable() for part in parts):
        raise UsageError(f"{where}: a key without . and .. as parts and without control characters is expected")
    key = "/".join(parts)
    if not key:
        raise UsageError(f"{where}: a key is missing, give {where}/KEY")
    return Bucket(where, _store(where)), key


@lru_cache(maxsize=256)
def _store(where: str, prefix: str | None = None) -> Any:
    scheme, _, name = where.partition("://")
    client: ClientConfig = {"timeout": timedelta(seconds=REQUEST_SECONDS), "connect_timeout": timedelta(seconds=5)}
    retry: RetryConfig = {"max_retries": RETRIES, "retry_timeout": timedelta(seconds=RETRY_SECONDS)}
    try:
        if scheme == "s3":
            return _s3(where, name, prefix, client, retry)
        kind: Any = GCSStore if scheme == "gs" else AzureStore
        return kind(name, prefix=prefix, client_options=client, retry_config=retry)
    except BaseError as error:
        raise UsageError(f"{where}: {_line(error)}; set it in the environment, as for the provider's own tools") from None


def _s3(where: str, name: str, prefix: str | None, client: ClientConfig, retry: RetryConfig) -> Any:
    more: dict[str, Any] = {}
    endpoint = next((os.environ[key] for key in _ENDPOINTS if os.environ.get(key)), None)
    if endpoint is not None:
        more["endpoint"] = endpoint
        client = {**client, "allow_http": endpoint.startswith("http://")}
    if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true", "yes"):
        more["skip_signature"] = True
    else:
        more["credential_provider"] = _credentials(where)
    return S3Store(name, prefix=prefix, client_options=client, retry_config=retry, **more)


def _credentials(where: str) -> Boto3CredentialProvider:
    try:
        return Boto3CredentialProvider(boto3.Session())
    except (ValueError, botocore.exceptions.BotoCoreError) as error:
        why = "" if isinstance(error, ValueError) else f" ({_line(error)})"
        raise UsageError(
            f"{where}: no AWS credentials were found{why}; set them up as for the AWS command line "
            "(environment, ~/.aws, a role), or AWS_SKIP_SIGNATURE=true for public data"
        ) from None


@contextmanager
def said(where: object) -> Iterator[None]:
    """What obstore raises becomes one of our errors; FileNotFoundError of an object that does not exist passes.

    Raises BadInputError for a bucket that does not exist, UsageError for what credentials do not allow, CorruptDataError for
    storage that does not answer.
    """
    try:
        yield
    except BaseError as error:
        refuse(where, error)
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error):
            refuse(where, error)
        raise


def refuse(where: object, error: Exception) -> NoReturn:
    """Raise our error for one of obstore."""
    text = str(error)
    if "NoSuchBucket" in text or "ContainerNotFound" in text:
        raise BadInputError(f"{where}: no such bucket") from None
    denied = isinstance(error, PermissionDeniedError | UnauthenticatedError) or "403 Forbidden" in text
    if denied or "401 Unauthorized" in text:
        code = re.search(r"<Code>(\w+)</Code>", text)
        why = code[1] if code else "not allowed"
        raise UsageError(f"{where}: access was refused ({why}); check the credentials, and what they allow") from None
    raise CorruptDataError(
        f"{where}: the object store does not answer as it should: {_line(error)}; check the network and run again"
    ) from None


def _line(error: Exception) -> str:
    """The first line of an error without its URL, which may end in a signature."""
    first = str(error).partition("\n")[0].partition("<?xml")[0]
    bare = re.sub(r"Error performing \w+ \S+ in [^ ,]+,? *", "", re.sub(r"\?\S+", "", first))
    return " ".join(bare.split())[:240].rstrip(" -:,")
