"""The arena's REST API as the kit uses it: bounded answers, no redirects, the token for one host alone."""

import logging
import re
import ssl
import time
import unicodedata
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
from pydantic import AwareDatetime, BaseModel, ValidationError, model_validator

from arena_agent.canonical import read_json

MAX_RESPONSE_BYTES = 5_000_000
TIMEOUT_SECONDS = 60.0
TRANSIENT = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses after which the same request is sent again."""
MAX_RETRY_AFTER = 3600.0


log = logging.getLogger("arena_agent")
Model = TypeVar("Model", bound=BaseModel)


class InvalidAddress(ValueError):
    """An address that is none of an arena; the message says why."""


class ArenaUnavailable(Exception):
    """The arena can not answer for now; `retry_after` is the wait that it asks for, in seconds."""

    def __init__(self, message: str, retry_after: float = 0.0) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class AccessDenied(Exception):
    """The token is missing, unknown or revoked."""


SUBMISSIONS = "/api/v1/submissions/"
NO_JSON_NEEDED = {401: "the arena does not know the token", 404: "not found"}
"""Statuses that say enough even where a front answers them with a page."""


class UnexpectedAnswer(Exception):
    """The server answers what no arena would; the message says what."""


class Reply(BaseModel):
    """The status and the JSON object of an answer."""

    status: int
    body: dict[str, Any]

    @property
    def detail(self) -> str:
        """The sentence of a problem, as a terminal may show it; empty for a success."""
        return _printable(str(self.body.get("detail", ""))) if self.status >= 400 else ""


class OpenTask(BaseModel):
    """A task that may be answered now."""

    frozen_at: AwareDatetime
    deadline: AwareDatetime
    system_prompt: str = ""
    user_prompt: str = ""
    blocks: dict[str, str]
    batch: int | None = None
    agent: int | None = None
    universe: int | None = None
    state: str = "open"
    """`answered` where the arena holds an answer, which another one replaces."""

    @model_validator(mode="after")
    def _check_target(self) -> "OpenTask":
        if None in self.target.values():
            raise ValueError("it names neither batch nor agent and universe")
        return self

    @property
    def target(self) -> dict[str, int]:
        """The query parameters that name the task."""
        names = ("batch",) if self.batch is not None else ("agent", "universe")
        return {name: getattr(self, name) for name in names}

    @property
    def id(self) -> str:
        """The task's name: batch-5, agent-3-universe-7."""
        return "-".join(f"{name}-{value}" for name, value in self.target.items())


class OpenTasks(BaseModel):
    """All tasks that are open, and the arena's clock."""

    now: AwareDatetime
    trading: list[OpenTask] = []
    forecast: list[OpenTask] = []


class RegisteredAgent(BaseModel):
    """An agent as the arena has registered it."""

    slug: str
    name: str
    track: str
    protocols: list[str]
    version: int
    version_note: str = ""


class Receipt(BaseModel):
    """The parts of a receipt that the kit prints."""

    body: dict[str, Any]
    sha256: str


class RefusedForecast(BaseModel):
    """The reason why a forecast of an accepted answer was left out."""

    reason: str


class Accepted(BaseModel):
    """The parts of the reply to an accepted answer that the kit prints."""

    receipt: Receipt | None = None
    forecasts: list[Any] = []
    refused: list[RefusedForecast] = []


class Arena:
    """A connection to one arena; the token goes to its host alone."""

    def __init__(self, url: str, token: str | None = None, timeout: float = TIMEOUT_SECONDS) -> None:
        self.url = arena_address(url)
        self._timeout = timeout
        headers = {"Accept": "application/json", "User-Agent": "arena-agent"}
        if token is not None:
            if not re.fullmatch(r"[!-~]+", token):
                raise AccessDenied("the token holds characters that no token has")
            headers["Authorization"] = f"Bearer {token}"
        self._http = httpx.Client(base_url=self.url, headers=headers, timeout=timeout, follow_redirects=False)

    def __enter__(self) -> "Arena":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._http.close()

    def open_tasks(self) -> OpenTasks:
        """The open tasks."""
        return self._read(OpenTasks, "/api/v1/submissions/open/")

    def registration(self) -> RegisteredAgent:
        """Who the arena takes the token's holder for."""
        return self._read(RegisteredAgent, "/api/v1/submissions/agent/")

    def read_list(self, path: str, **query: str) -> list[dict[str, Any]]:
        """The first page of a public list."""
        reply = self._request("GET", f"/api/v1/{path}", params=query)
        rows = reply.body.get("results")
        if reply.status != 200 or not isinstance(rows, list):
            raise UnexpectedAnswer(f"/api/v1/{path}: {reply.status} {reply.detail}")
        return rows

    def submit(self, target: dict[str, int], key: str, body: str) -> Reply:
        """The arena's reply to an answer; the same key and answer get the same reply."""
        reply = self._post(SUBMISSIONS, target, key, body)
        if reply.status == 201:
            _validate(Accepted, reply.body, SUBMISSIONS)
        return reply

    def chain(self) -> dict[str, Any]:
        """The published heads and keys."""
        reply = self._request("GET", "/.well-known/arena-chain.json")
        if reply.status != 200:
            raise UnexpectedAnswer(f"/.well-known/arena-chain.json: {reply.status} {reply.detail}")
        return reply.body

    def _post(self, path: str, target: dict[str, int], key: str, body: str) -> Reply:
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        reply = self._request("POST", path, params=target, headers=headers, content=body.encode())
        if reply.status == 401:
            raise AccessDenied(reply.detail)
        return reply

    def _read(self, kind: type[Model], path: str) -> Model:
        """What a path shows to the token's holder."""
        reply = self._request("GET", path)
        if reply.status in (401, 403):
            raise AccessDenied(reply.detail)
        if reply.status != 200:
            raise UnexpectedAnswer(f"{path}: {reply.status} {reply.detail}")
        return _validate(kind, reply.body, path)

    def _request(self, method: str, path: str, **request: Any) -> Reply:
        try:
            with self._http.stream(method, path, **request) as response:
                content = _read(response, time.monotonic() + self._timeout)
            log.debug("%s %s: %d", method, path, response.status_code)
        except httpx.TransportError as error:
            if _is_certificate_error(error):
                raise UnexpectedAnswer(f"{self.url}: its certificate is not valid: {error}") from error
            raise ArenaUnavailable(f"{self.url}: {error or type(error).__name__}") from error
        except httpx.HTTPError as error:
            raise UnexpectedAnswer(f"{self.url}: {error}") from error
        return self._reply(path, response, content)

    def _reply(self, path: str, response: httpx.Response, content: bytes) -> Reply:
        status = response.status_code
        if response.has_redirect_location or 300 <= status < 400:
            target = response.headers.get("Location", "nowhere")[:200]
            raise UnexpectedAnswer(
                f"{self.url}{path} redirects to {target}, where the token is not sent; "
                "if that is the arena, name it with --url"
            )
        if status in TRANSIENT or status >= 500:
            raise ArenaUnavailable(f"{self.url}: {status} {_detail(content)}".strip(), _retry_after(response))
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if not (kind == "application/json" or kind.endswith("+json")):
            if path == SUBMISSIONS and status in (403, 404):  # the arena gave the task in JSON: this is a front's page
                raise ArenaUnavailable(f"{self.url}{path} answers {status} with a page")
            if status in NO_JSON_NEEDED:
                return Reply(status=status, body={"detail": NO_JSON_NEEDED[status]})
            raise UnexpectedAnswer(
                f"{self.url}{path} answers {status} with {kind or 'no type'} and not JSON: is it an arena?"
            )
        try:
            body = read_json(content)
        except ValueError:
            raise UnexpectedAnswer(f"{self.url}{path} answers {status} with broken JSON") from None
        if not isinstance(body, dict):
            raise UnexpectedAnswer(f"{self.url}{path} answers {status} with JSON that is no object")
        return Reply(status=status, body=body)


def arena_address(url: str) -> str:
    """The address without its path's last stroke. Raises InvalidAddress."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise InvalidAddress(f"{url}: {error}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InvalidAddress(f"{url!r} is no address: it must begin with https:// or http:// and name a host")
    if parts.username is not None or parts.query or parts.fragment:
        raise InvalidAddress(f"{parts.hostname}: the address must hold no user, query or fragment")
    if not _is_host(parts.hostname):
        raise InvalidAddress(f"{url!r} is no address: {parts.hostname!r} is no name of a host")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    return f"{parts.scheme}://{host}{f':{port}' if port else ''}{parts.path.rstrip('/')}"


def _is_host(name: str) -> bool:
    """True unless a name can be none of a host: by its characters, or an empty or too long label."""
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return name.isprintable() and not re.search(r"[\s<>^`{|}\"\\]", name)


def _validate(kind: type[Model], body: dict[str, Any], path: str) -> Model:
    """A body as an object of a kind. Raises UnexpectedAnswer, which names the field."""
    try:
        return kind.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnexpectedAnswer(f"{path}: {where}: {first['msg']}") from None


def _read(response: httpx.Response, until: float) -> bytes:
    """The body, as long as it is neither too long nor too slow."""
    content = b""
    for chunk in response.iter_bytes(65536):
        content += chunk
        if len(content) > MAX_RESPONSE_BYTES:
            raise UnexpectedAnswer(f"{response.url.host}: the answer is longer than {MAX_RESPONSE_BYTES:,} bytes")
        if time.monotonic() > until:
            raise httpx.ReadTimeout("the answer does not end")
    return content


def _is_certificate_error(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return True
        error = error.__cause__ or error.__context__
    return False


def _retry_after(response: httpx.Response) -> float:
    """The seconds of Retry-After; 0 without one."""
    text = response.headers.get("Retry-After", "")
    return min(float(text), MAX_RETRY_AFTER) if re.fullmatch(r"\d{1,9}", text) else 0.0


def _detail(content: bytes) -> str:
    """The sentence of a problem, if the body is one."""
    try:
        body = read_json(content)
    except ValueError:
        return ""
    return _printable(str(body.get("detail", ""))[:300]) if isinstance(body, dict) else ""


def _printable(text: str) -> str:
    """A text without characters that command a terminal."""
    letters = []
    for letter in text:
        is_command = unicodedata.category(letter) in ("Cc", "Cf") and letter not in "\n\t"
        letters.append("\ufffd" if is_command else letter)
    return "".join(letters)
