"""Object stores: credentials from the standard chain of the provider, errors in our words, objects as files and paths.

obstore is the object_store crate of Apache Arrow: requests run outside the interpreter's lock and are repeated with growing
pauses. The chain of AWS is boto3's (environment, profiles, single sign-on, roles of containers and machines); those of Google
Cloud and Azure are obstore's own.
"""

from __future__ import annotations

import io
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from functools import lru_cache
from io import BufferedReader
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import boto3
import botocore.exceptions
import obstore
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.exceptions import AlreadyExistsError, BaseError, PermissionDeniedError, PreconditionError, UnauthenticatedError
from obstore.store import AzureStore, GCSStore, HTTPStore, S3Store

from dfeas.data.storage.patience import Patience, limit, persist
from dfeas.errors import BadInputError, CorruptDataError, StorageAwayError, UsageError, format_bytes

if TYPE_CHECKING:
    from obstore import GetOptions, ObjectMeta, WritableFile
    from obstore.store import ClientConfig, RetryConfig

R = TypeVar("R")

SCHEMES = {"s3": "s3", "gs": "gs", "gcs": "gs", "az": "az", "abfs": "az", "abfss": "az", "https": "https", "http": "http"}
"""What URLs begin with, and what that is called here; others are names that fsspec has for the same."""

RETRIES, RETRY_SECONDS = 4, 10.0
"""So often obstore repeats a request that is not answered, cut off, or answered 5xx or 429, and so long; what is longer is
borne by ``patience``, whose pauses end with a run."""

SILENT_SECONDS, REQUEST_SECONDS, MOST_SECONDS = 30, 600, 86400
"""Seconds without a byte, and for all of an answer, after which a request is made again; and of obstore's own patience."""

_URL = re.compile(
    r"([a-z0-9]+)://([A-Za-z0-9][A-Za-z0-9._-]*(?::\d+)?)(?:@(\w+)(?:\.(?:dfs|blob)\.core\.windows\.net)?)?(?:/(.*))?"
)
_ACCOUNT = "AZURE_STORAGE_ACCOUNT_NAME"
_ENDPOINTS = {
    "s3": ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT"),
    "az": ("AZURE_STORAGE_ENDPOINT", "AZURE_ENDPOINT"),
    "gs": ("STORAGE_EMULATOR_HOST",),
}
"""Variables that name another server, which may speak http."""


@lru_cache(maxsize=256)
def store_of(where: str, prefix: str | None = None, patient: bool = False) -> Any:
    """What obstore calls a bucket, or what is below a key in it; a ``patient`` one waits itself for a store that is away.

    Raises UsageError without credentials.
    """
    scheme, _, name = where.partition("://")
    client: ClientConfig = {
        "timeout": timedelta(seconds=REQUEST_SECONDS),
        "read_timeout": timedelta(seconds=SILENT_SECONDS),
        "connect_timeout": timedelta(seconds=5),
    }
    retries, seconds = (1_000_000, min(MOST_SECONDS, limit())) if patient else (RETRIES, RETRY_SECONDS)
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


def ask(where: object, request: Callable[[], R]) -> R:
    """What the store answers to a request, which is made again while it is away. Raises what ``translate_errors`` does."""

    def attempt() -> R:
        with translate_errors(where):
            return request()

    return persist(attempt)


@contextmanager
def translate_errors(where: object, listing: bool = False) -> Iterator[None]:
    """What obstore raises becomes one of our errors; FileNotFoundError of an object that does not exist passes.

    Raises BadInputError for a bucket that does not exist, UsageError for what credentials and settings do not allow,
    StorageAwayError for storage that does not answer, CorruptDataError for what is no answer.
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


REQUESTS = 32
"""Requests under way in a process."""


@lru_cache(maxsize=1)
def pool() -> ThreadPoolExecutor:
    """The threads of this process that wait for requests."""
    return ThreadPoolExecutor(REQUESTS, "dfeas-fetch")


os.register_at_fork(after_in_child=pool.cache_clear)  # a child has no threads of its parent


def get_part(
    store: Any, key: str, where: object, first: int, size: int, tag: str | None = None
) -> tuple[memoryview, ObjectMeta]:
    """``size`` bytes of an object from ``first`` on, before 0 from its end, and what it is; with a ``tag`` of this version.

    They are asked for twice when fewer came than there are. Raises FileNotFoundError when there is no such object.
    """
    if first < 0 and isinstance(store, AzureStore):  # which takes no ranges from the end
        with translate_errors(where):
            first = max(0, obstore.head(store, key)["size"] - size)
    options: GetOptions = {"range": (first, first + size) if first >= 0 else {"suffix": size}}
    if tag is not None:
        options["if_match"] = tag
    for _ in range(2):
        with translate_errors(where):
            answer = obstore.get(store, key, options=options)
            content = memoryview(answer.bytes())
        if len(content) == min(size, answer.meta["size"] - max(0, first)):
            break
    return content, answer.meta


PART_BYTES = 4 << 20
PARTS_AHEAD = 6
"""Requests under way while a file is read in order: 6 of 4 MiB hide a latency of 50 ms at 400 MB/s."""


class ObjectFile(io.RawIOBase):
    """Bytes of an object that does not change meanwhile: each request names the ETag of the first one."""

    def __init__(self, store: Any, key: str, where: str, size: int, tag: str | None) -> None:
        self._store, self._key, self._where, self._size, self._tag = store, key, where, size, tag
        self._at = 0
        self._part = b""  # what was read last
        self._part_at = 0
        self._coming: deque[tuple[int, Future[bytes]]] = deque()  # parts that follow each other

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._at = max(0, offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._size}[whence])
        return self._at

    def readinto(self, buffer: Any) -> int:
        """Some bytes from here on; 0 at the end."""
        if self._at >= self._size or not len(buffer):
            return 0
        if not self._part_at <= self._at < self._part_at + len(self._part):
            persist(self._fetch)
        content = memoryview(self._part)[self._at - self._part_at :][: len(buffer)]
        memoryview(buffer).cast("B")[: len(content)] = content
        self._at += len(content)
        return len(content)

    def _fetch(self) -> None:
        """The part that begins here. Where reading goes on in order more are asked for."""
        in_order = self._at == self._part_at + len(self._part)
        if not self._coming or self._coming[0][0] != self._at:
            self._drop()
            self._ask(self._at)
        if in_order:
            while len(self._coming) <= PARTS_AHEAD and self._coming[-1][0] + PART_BYTES < self._size:
                self._ask(self._coming[-1][0] + PART_BYTES)
        self._part_at, coming = self._coming.popleft()
        self._part = coming.result()

    def _ask(self, first: int) -> None:
        stop = min(self._size, first + PART_BYTES)
        self._coming.append((first, pool().submit(self._get, first, stop)))

    def _get(self, first: int, stop: int) -> bytes:
        try:
            content, _ = get_part(self._store, self._key, self._where, first, stop - first, self._tag)
        except FileNotFoundError:
            raise CorruptDataError(f"{self._where}: changed or removed while it was read; run again") from None
        if len(content) != stop - first:
            text = f"{len(content)} bytes came from byte {first} on, expected {stop - first}, twice"
            raise CorruptDataError(f"{self._where}: {text}; check what lies between here and the store, and run again")
        return bytes(content)

    def _drop(self) -> None:
        while self._coming:
            self._coming.pop()[1].cancel()

    def close(self) -> None:
        self._drop()
        super().close()


BUFFER = 1 << 20
"""Bytes that small reads of a file are served from."""


@dataclass(frozen=True)
class Stat:
    """What is known of an object without reading it."""

    st_size: int  # bytes
    st_mtime: float  # seconds since the epoch
    tag: str  # changes with the contents


@dataclass(frozen=True)
class ObjectPath:
    """An object, or a folder: a key before which other keys begin."""

    bucket: str  # s3://name
    key: str

    @classmethod
    def of(cls, url: str) -> ObjectPath:
        """From a URL. Raises UsageError for other URLs; what may be a secret in one is not repeated."""
        match = _URL.fullmatch(url)
        scheme = url.partition("://")[0]
        plain = match is not None and (match[3] is None or match[1].startswith("abfs"))
        if match is None or not plain or "?" in url or match[1] not in SCHEMES:
            shown = f"a URL that begins with {scheme}://" if scheme.isalnum() else "this URL"
            expected = "s3://BUCKET/KEY, gs://BUCKET/KEY, az://CONTAINER/KEY or https://HOST/PATH, without credentials in it"
            raise UsageError(f"{shown}: expected {expected}")
        where = f"{SCHEMES[match[1]]}://{match[2]}"
        parts = [part for part in (match[4] or "").split("/") if part]
        if match[3] and match[3] != os.environ.get(_ACCOUNT):
            raise UsageError(f"{where}: for this account set {_ACCOUNT}={match[3]}, and its credentials beside it")
        if {".", ".."} & set(parts) or not all(part.isprintable() for part in parts):
            raise UsageError(f"{where}: a key without . and .. as parts and without control characters is expected")
        if not parts:
            raise UsageError(f"{where}: a key is missing, give {where}/KEY")
        store_of(where)  # which says whether its credentials are there
        return cls(where, "/".join(parts))

    @property
    def store(self) -> Any:
        """The bucket, as obstore has it."""
        return store_of(self.bucket)

    @property
    def below(self) -> Any:
        return store_of(self.bucket, self.key)

    def __str__(self) -> str:
        return f"{self.bucket}/{self.key}"

    def __truediv__(self, name: str) -> ObjectPath:
        return ObjectPath(self.bucket, f"{self.key}/{name}".removeprefix("/"))

    def __lt__(self, other: ObjectPath) -> bool:
        return str(self) < str(other)

    @property
    def parent(self) -> ObjectPath:
        return ObjectPath(self.bucket, self.key.rpartition("/")[0])

    @property
    def name(self) -> str:
        return PurePosixPath(self.key).name

    @property
    def suffix(self) -> str:
        return PurePosixPath(self.key).suffix

    def with_suffix(self, suffix: str) -> ObjectPath:
        return ObjectPath(self.bucket, str(PurePosixPath(self.key).with_suffix(suffix)))

    def absolute(self) -> ObjectPath:
        return self

    def resolve(self) -> ObjectPath:
        return self

    def mkdir(self, exist_ok: bool = False) -> None:
        """Do nothing: a folder is there with the first object in it."""

    def head(self) -> ObjectMeta:
        """What obstore says of it. Raises FileNotFoundError when there is no such object."""
        return ask(self, lambda: obstore.head(self.store, self.key))

    def stat(self) -> Stat:
        """Raises FileNotFoundError when there is no such object."""
        meta = self.head()
        return Stat(meta["size"], meta["last_modified"].timestamp(), meta["e_tag"] or "")

    def is_file(self) -> bool:
        try:
            self.stat()
        except FileNotFoundError:
            return False
        return True

    @property
    def is_web(self) -> bool:
        """Whether it is a page of the web: it can be read, by its ranges, but nothing lists what is below it."""
        return self.bucket.startswith("http")

    def is_dir(self) -> bool:
        return next(self.objects(1), None) is not None

    def exists(self) -> bool:
        return self.is_file() or self.is_dir()

    def open(self, mode: str = "rb") -> BufferedReader:
        assert mode == "rb", "objects are written whole"
        stat = self.stat()
        return BufferedReader(ObjectFile(self.store, self.key, str(self), stat.st_size, stat.tag or None), BUFFER)

    def read_bytes(self, most: int | None = None) -> bytes:
        """Its contents, by one request. Raises FileNotFoundError when there is no such object, ValueError for more bytes."""

        def get() -> bytes:
            answer = obstore.get(self.store, self.key)
            if most is not None and answer.meta["size"] > most:
                raise ValueError(f"{format_bytes(answer.meta['size'])}, at most {format_bytes(most)} are read")
            return bytes(answer.bytes())

        return ask(self, get)

    def read_text(self, errors: str = "strict") -> str:
        return self.read_bytes().decode(errors=errors)

    def require_writable(self) -> None:
        """Raise UsageError for a page of the web."""
        if self.is_web:
            raise UsageError(f"{self}: what is on the web is only read; choose a folder or a bucket to write to")

    def write_bytes(self, content: bytes | Path) -> None:
        """Put an object in its place, whole: bytes, or what a file has."""
        self.require_writable()
        try:
            ask(self, lambda: obstore.put(self.store, self.key, content))
        except FileNotFoundError as error:
            raise CorruptDataError(f"{self}: cannot be written: {str(error)[:200]}") from None

    def create(self, content: bytes) -> Any:
        """Write an object where there is none; its version. None where there is one already."""
        self.require_writable()
        with translate_errors(self):
            try:
                return obstore.put(self.store, self.key, content, mode="create")
            except AlreadyExistsError:
                return None

    def replace(self, content: bytes, version: Any) -> Any:
        """Write an object that is still of a version; the next one. None where it is of another, or gone."""
        known: Any = {name: version[name] for name in ("e_tag", "version") if version[name] is not None}
        with translate_errors(self):
            try:
                return obstore.put(self.store, self.key, content, mode=known)
            except (PreconditionError, FileNotFoundError):
                return None

    def writer(self, part_bytes: int, parts: int) -> WritableFile:
        """Takes its contents one after the other; there is no object before ``close``. Up to ``parts`` are under way."""
        return obstore.open_writer(store_of(self.bucket, patient=True), self.key, buffer_size=part_bytes, max_concurrency=parts)

    def unlink(self, missing_ok: bool = False) -> None:
        try:
            ask(self, lambda: obstore.delete(self.store, self.key))
        except FileNotFoundError:
            if not missing_ok:
                raise

    def objects(self, chunk: int = 1000) -> Iterator[ObjectMeta]:
        """What obstore says of all objects below it: ``path``, a key of the bucket, ``size``, ``e_tag``. The web lists
        none.
        """
        patience, last = Patience(), ""
        while not self.is_web:
            try:
                with translate_errors(self, listing=True):
                    for some in obstore.list(self.store, self.key, chunk_size=chunk, offset=last or None):
                        yield from some
                        patience, last = Patience(), some[-1]["path"]
                return
            except StorageAwayError as error:
                patience.bear(error)

    def iterdir(self) -> Iterator[ObjectPath]:
        """Objects and folders in it; none of the web, which lists nothing."""
        if self.is_web:
            return
        found = ask(self, lambda: obstore.list_with_delimiter(self.store, self.key))
        for key in [*found["common_prefixes"], *(each["path"] for each in found["objects"])]:
            yield ObjectPath(self.bucket, key)

    def rglob(self, pattern: str) -> Iterator[ObjectPath]:
        """Objects below it whose names match."""
        for each in self.objects():
            if PurePosixPath(each["path"]).match(pattern):
                yield ObjectPath(self.bucket, each["path"])
