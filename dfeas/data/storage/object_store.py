"""Object stores: credentials from the standard chain of the provider, and errors in our words.

obstore is the object_store crate of Apache Arrow: requests run outside the interpreter's lock and are repeated with growing
pauses. The chain of AWS is boto3's (environment, profiles, single sign-on, roles of containers and machines); those of Google
Cloud and Azure are obstore's own.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import boto3
import botocore.exceptions
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.exceptions import BaseError, PermissionDeniedError, PreconditionError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, HTTPStore, S3Store

from dfeas.errors import BadInputError, CorruptDataError, StorageAwayError, UsageError

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig

R = TypeVar("R")

RETRIES, RETRY_SECONDS = 4, 10.0
"""So often obstore repeats a request that is not answered, cut off, or answered 5xx or 429, and so long; what is longer is
borne by ``patience``, whose pauses end with a run."""
SILENT_SECONDS, REQUEST_SECONDS, MOST_SECONDS = 30, 600, 86400
"""Seconds without a byte, and for all of an answer, after which a request is made again; and of obstore's own patience."""
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    "gs": ("STORAGE_EMULATOR_HOST",),
}
"""Variables that name another server, which may speak http."""


@lru_cache(maxsize=256)
def store_of(where: str, prefix: str | None = None, patience: float = 0.0) -> Any:
    """What obstore calls a bucket, or what is below a key in it; it waits itself, with ``patience`` so many seconds, for a
    store that is away. Raises UsageError without credentials.
    """
    scheme, _, name = where.partition("://")
    client: ClientConfig = {
        "timeout": timedelta(seconds=REQUEST_SECONDS),
        "read_timeout": timedelta(seconds=SILENT_SECONDS),
        "connect_timeout": timedelta(seconds=5),
    }
    retries, seconds = (1_000_000, min(MOST_SECONDS, patience)) if patience else (RETRIES, RETRY_SECONDS)
    retry: RetryConfig = {"max_retries": retries, "retry_timeout": timedelta(seconds=seconds)}
    endpoint = next((os.environ[key] for key in _ENDPOINTS.get(scheme, ()) if os.environ.get(key)), "")
    client["allow_http"] = endpoint.startswith("http://") or scheme == "http"
    more: dict[str, Any] = {"client_options": client, "retry_config": retry}
    try:
        if scheme in ("http", "https"):
            return HTTPStore.from_url("/".join(filter(None, (where, prefix))), **more)
        if scheme == "s3":
            return S3Store(name, prefix=prefix, **more, **_sign_requests(where, endpoint))
        if scheme == "az":
            more |= {"endpoint": endpoint} if endpoint else {}
            return AzureStore(name, prefix=prefix, **more)
        if endpoint:  # of an emulator, which takes any credentials
            more |= {"base_url": endpoint, "credential_provider": lambda: {"token": "any", "expires_at": None}}
        return GCSStore(name, prefix=prefix, **more)
    except BaseError as error:
        raise UsageError(f"{where}: {_line(error)}; set it in the environment, as for the provider's own tools") from None


def _sign_requests(where: str, endpoint: str) -> dict[str, Any]:
    more = {"endpoint": endpoint} if endpoint else {}
    if os.environ.get("AWS_SKIP_SIGNATURE", "").lower() in ("1", "true", "yes"):
        return {**more, "skip_signature": True}
    try:
        return {**more, "credential_provider": Boto3CredentialProvider(boto3.Session())}
    except (ValueError, botocore.exceptions.BotoCoreError) as error:
        why = "" if isinstance(error, ValueError) else f" ({_line(error)})"
        raise UsageError(
            f"{where}: no AWS credentials were found{why}; set them up as for the AWS command line "
            "(environment, ~/.aws, a role), or AWS_SKIP_SIGNATURE=true for public data"
        ) from None


@contextmanager
def translate_errors(where: object, listing: bool = False) -> Iterator[None]:
    """What obstore raises becomes one of our errors; FileNotFoundError of an object that does not exist passes. Raises
    BadInputError for a bucket that does not exist, UsageError for what credentials and settings do not allow, StorageAwayError
    for storage that does not answer, CorruptDataError for what is no answer.
    """
    try:
        yield
    except PreconditionError:  # what was asked for is not there any more
        raise FileNotFoundError(str(where)) from None
    except BaseError as error:
        refuse(where, error, listing)
    except FileNotFoundError as error:
        if "NoSuchBucket" in str(error) or "ContainerNotFound" in str(error):
            refuse(where, error)
        raise


_AWAY = re.compile(
    r"status code: (5(?!0[15])\d\d|408|429)|<Code>RequestTimeout<|HTTP error: (?!builder)|Content-Range header not|invalid list"
)
"""Of errors that pass: servers that are overloaded or down, connections that are not made, are silent, break off or garble."""
_EXPIRED = re.compile(r"<Code>((Expired|Invalid)\w*Token\w*|TokenRefreshRequired|RequestExpired)</Code>")
_OTHER_REGION = re.compile(
    r"incorrectly configured region|<Code>(PermanentRedirect|AuthorizationHeaderMalformed|IllegalLocation)"
)
_METADATA = re.compile(r"://(169\.254\.169\.254|metadata\.google\.internal|metadata)[:/]")
"""Where machines in a cloud get credentials, which is asked when none are set."""


def refuse(where: object, error: Exception, listing: bool = False) -> NoReturn:
    """Raise our error for one of obstore."""
    text = str(error)
    if "NoSuchBucket" in text or "ContainerNotFound" in text:
        raise BadInputError(f"{'/'.join(str(where).split('/')[:3])}: no such bucket") from None
    if expired := _EXPIRED.search(text):
        raise UsageError(f"{where}: the credentials are not valid any more ({expired[1]}); renew them, and go on") from None
    if _OTHER_REGION.search(text):
        region = _region_of(str(where), text)
        named = f"{region}: set AWS_DEFAULT_REGION={region}" if region else "another region: name it by AWS_DEFAULT_REGION"
        raise UsageError(f"{where}: the bucket lies in {named}") from None
    if _METADATA.search(text):
        raise UsageError(f"{where}: no credentials were found; set them up as for the provider's own tools") from None
    code = re.search(r"<Code>(\w+)</Code>", text)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError) or re.search("40[13] (Forbidden|Unauthorized)", text):
        why, what = code[1] if code else "not allowed", "the list of objects" if listing else "access"
        more = ", and whether they have the right to list (s3:ListBucket)" if listing else ", and what they allow"
        raise UsageError(f"{where}: {what} was refused ({why}); check the credentials{more}") from None
    if _AWAY.search(text):
        raise StorageAwayError(f"{where}: the object store does not answer{_failure(text)}") from None
    if "416 " in text or "Range Not Satisfiable" in text:
        raise CorruptDataError(f"{where}: has fewer bytes than it should; restore or ingest again") from None
    raise CorruptDataError(f"{where}: the object store does not answer as it should: {_line(error)}") from None


def _failure(text: str) -> str:
    """Which host does not answer, and how."""
    host, status = re.search(r"performing \w+ \w+://([^/\s]+)", text), re.search(r"status code: (\d+ [A-Z][A-Za-z ]+)", text)
    code, said = re.search(r"<Code>(\w+)</Code>", text), re.search(r'message: "([^"]+)"', text)
    why = said[1] if said else "nobody knows its name" if "dns error" in text else "the connection broke off"
    if "Timeout" in text or "TimedOut" in text:
        why = "silent too long"
    if status:
        why = f"{status[1]}, {code[1]}" if code else status[1]
    return f" at {host[1]} ({why})" if host else f" ({why})"


def _region_of(where: str, text: str) -> str:
    """The region of a bucket, from an answer or from the bucket; empty where neither says it."""
    if named := re.search(r"expecting '([\w-]+)'|<Region>([\w-]+)</Region>", text):
        return named[1] or named[2]
    try:
        answer = boto3.client("s3").head_bucket(Bucket=where.split("/")[2])
    except botocore.exceptions.ClientError as error:
        answer = error.response
    except (ValueError, botocore.exceptions.BotoCoreError):
        return ""
    return str(answer["ResponseMetadata"]["HTTPHeaders"].get("x-amz-bucket-region", ""))


def _line(error: Exception) -> str:
    """The first line of an error without its URL, which may end in a signature."""
    first = str(error).partition("\n")[0].partition("<?xml")[0]
    bare = re.sub(r"Error performing \w+ \S+ in [^ ,]+,? *", "", re.sub(r"\?\S+", "", first))
    return " ".join(bare.split())[:240].rstrip(" -:,")
