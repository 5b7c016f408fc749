"""Reading the environment: each setting is checked as it is read, and a wrong one names itself.

A value may hold a secret, rightly or by mistake. An error names the setting and the fault, not the value.
"""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import SplitResult, urlsplit

import environ
from django.core.exceptions import ImproperlyConfigured

from markets.sources.registry import SOURCES

Value = TypeVar("Value")
HOST = re.compile(r"\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?|\[[0-9A-Fa-f:.]+\]")
"""An entry of ALLOWED_HOSTS: a name, `.name` for it and its subdomains, an address, or `*` for any."""
SETTING = re.compile(r"(?:export )?[A-Za-z_0-9]+=")
"""The beginning of a line of `.env` that sets something."""
ENCODED = " (special characters of a password are percent-encoded)"


def read_file(env: environ.Env, file: Path) -> None:
    """Reads the settings of a file, if there is one. Raises ImproperlyConfigured with the number of a wrong line."""
    if not file.is_file():
        return
    for number, line in enumerate(file.read_text().splitlines(), start=1):
        if line.strip() and not line.lstrip().startswith("#") and not SETTING.match(line):
            raise ImproperlyConfigured(f"{file.name}, line {number}: must be NAME=value, without a space before =")
    env.read_env(file)


def read(env: environ.Env, name: str, default: str, parse: Callable[[str], Value]) -> Value:
    """The value of setting `name`, parsed. Raises ImproperlyConfigured with one line that names it."""
    text = env.str(name, default=default).strip() or default
    try:
        return parse(text)
    except ValueError as wrong:
        raise ImproperlyConfigured(f"{name}: {wrong}") from None


def flag(text: str) -> bool:
    if text.lower() in ("true", "1", "yes", "on"):
        return True
    if text.lower() in ("false", "0", "no", "off", ""):
        return False
    raise ValueError("must be true or false")


def whole_number(least: int, most: int) -> Callable[[str], int]:
    def parse(text: str) -> int:
        try:
            number = int(text)
        except ValueError:
            raise ValueError("must be a whole number") from None
        if not least <= number <= most:
            raise ValueError(f"must lie between {least} and {most}")
        return number

    return parse


def one_of(*names: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if text.lower() not in names:
            raise ValueError(f"must be one of {', '.join(names)}")
        return text.lower()

    return parse


def short_name(text: str) -> str:
    if len(text) > 100 or any(map(str.isspace, text)):
        raise ValueError("must be at most 100 characters without a space")
    return text


def dollars(text: str) -> Decimal:
    try:
        amount = Decimal(text)
    except InvalidOperation:
        raise ValueError("must be an amount in dollars, such as 25") from None
    if not amount.is_finite() or amount < 0:
        raise ValueError("must be zero or more dollars")
    return amount


def base_url(text: str) -> str:
    parts = split_url(text)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must be an http:// or https:// address")
    if any(map(str.isspace, text)):
        raise ValueError("must hold no space")
    check_host(parts.hostname)
    return text.rstrip("/")


def check_host(name: str) -> None:
    """Refuses a host that no resolver can take. A socket's path and an IPv6 address are taken as they are."""
    if any(map(str.isspace, name)):
        raise ValueError("its host holds a space")
    if "/" in name or ":" in name:
        return
    try:
        name.encode("idna")
    except UnicodeError:
        raise ValueError("its host is no host's name: a label is empty or longer than 63 letters") from None


def split_url(text: str) -> SplitResult:
    try:
        parts = urlsplit(text)
        _ = parts.hostname, parts.port  # either raises ValueError where it is invalid
    except ValueError:  # whose message may quote a password
        raise ValueError(f"is no URL: its host or port is not valid{ENCODED}") from None
    return parts


def optional(parse: Callable[[str], Value]) -> Callable[[str], Value | None]:
    return lambda text: parse(text) if text else None


def instant(text: str) -> datetime:
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("must be an ISO-8601 time") from None
    if at.tzinfo is None:
        raise ValueError("must name its zone")
    return at.astimezone(UTC)


def sources(text: str) -> tuple[str, ...]:
    names = tuple(dict.fromkeys(split_list(text.lower())))
    if not names or not set(names) <= set(SOURCES):
        raise ValueError(f"must name sources out of {', '.join(SOURCES)}")
    return names


def evidence_source(text: str) -> str:
    """A source of evidence: the name of a service, or `file:` and a folder that exists."""
    if not text.startswith("file:"):
        return one_of("exa", "tavily", "file:DIR")(text)
    if not Path(text.removeprefix("file:")).is_dir():
        raise ValueError(f"{text.removeprefix('file:')!r} is no folder")
    return text


def signing_key(text: str) -> bytes:
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != 32:
        raise ValueError("must be 64 hexadecimal digits")
    return key


def mail_address(text: str) -> str:
    name, _, host = text.partition("@")
    if not name or not host or "@" in host or any(map(str.isspace, text)):
        raise ValueError("is no mail address")
    return text


def contact(text: str) -> str:
    if text.startswith("mailto:"):
        mail_address(text.removeprefix("mailto:"))
        return text
    base_url(text)
    return text


def mail_server(url: str) -> dict[str, object]:
    """Django's mail settings for an `smtp://`, `smtp+tls://` or `smtp+ssl://` URL."""
    check_scheme(url, "smtp://", "smtp+tls://", "smtp+ssl://")
    return parse_url(environ.Env.email_url_config, url, required="EMAIL_HOST", missing="names no server")


def check_scheme(url: str, *schemes: str) -> None:
    if not url.startswith(schemes):
        raise ValueError(f"must begin with {', '.join(schemes[:-1])} or {schemes[-1]}")


def parse_url(parse: Callable[[str], Any], url: str, *, required: str, missing: str) -> dict[str, Any]:
    """The settings that django-environ reads out of a URL."""
    check_userinfo(split_url(url))
    try:
        parsed = dict(parse(url))
    except Exception:  # whose message may quote a password
        raise ValueError(f"is no valid URL{ENCODED}") from None
    if not parsed.get(required):
        raise ValueError(missing)
    check_host(str(parsed.get("HOST") or parsed.get("EMAIL_HOST") or ""))
    return parsed


def check_userinfo(parts: SplitResult) -> None:
    """Refuses a URL whose password holds `/`, `?` or `#`, since a part of it would be taken for a host or a name."""
    if parts.hostname and "@" in f"{parts.path}{parts.query}{parts.fragment}":
        raise ValueError(f"has an @ behind its host{ENCODED}")


def network(text: str) -> IPv4Network | IPv6Network:
    try:
        return ip_network(text, strict=False)
    except ValueError:
        raise ValueError("is no IP address or network") from None


def host(text: str) -> str:
    if not HOST.fullmatch(text):
        raise ValueError("is no host's name: no scheme, port or path")
    return text


def origin(text: str) -> str:
    if urlsplit(base_url(text)).path:
        raise ValueError("has a path: a scheme and a host are an origin")
    return text


def list_of(parse: Callable[[str], Value]) -> Callable[[str], list[Value]]:
    """Reads entries with commas between; an error quotes the entry, unless it may hold a password."""

    def parse_entries(text: str) -> list[Value]:
        values = []
        for number, part in enumerate(split_list(text), start=1):
            try:
                values.append(parse(part))
            except ValueError as wrong:
                entry = f"entry {number}" if "@" in part else repr(part)
                raise ValueError(f"{entry} {wrong}") from None
        return values

    return parse_entries


def split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def database(url: str) -> dict[str, object]:
    """Django's database settings for a `sqlite:///` or `postgres://` URL."""
    check_scheme(url, "sqlite://", "postgresql://", "postgres://")
    parsed = parse_url(environ.Env.db_url_config, url, required="NAME", missing="names no database")
    # A thread of the web server keeps its connection, and a page cache of SQLite with it.
    parsed["CONN_MAX_AGE"] = 60
    if parsed["ENGINE"] == "django.db.backends.sqlite3":
        # One writer at a time, taken at BEGIN, so that two processes queue instead of dead-locking.
        parsed["OPTIONS"] = {
            "transaction_mode": "IMMEDIATE",
            "timeout": 30,
            # A page cache of 8 MB: a chart reads more than SQLite's default of 2 MB.
            "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=NORMAL;PRAGMA busy_timeout=30000;"
            "PRAGMA cache_size=-8000;",
        }
    else:
        # A host that has vanished refuses nothing: unless its silence ends it, a request waits a quarter of an hour.
        silence = {"tcp_user_timeout": 1500, "keepalives_idle": 5, "keepalives_interval": 1, "connect_timeout": 2}
        parsed["OPTIONS"] = {**silence, **parsed.get("OPTIONS", {})}
        # A server that was restarted has ended every connection.
        parsed["CONN_HEALTH_CHECKS"] = True
        # A PgBouncer in transaction mode keeps no cursor from one transaction to the next.
        parsed["DISABLE_SERVER_SIDE_CURSORS"] = True
    return parsed


def replica(primary: dict[str, object]) -> Callable[[str], dict[str, object]]:
    """Reads Django's settings for a replica of a database, which must be on PostgreSQL as the replica is."""

    def parse(url: str) -> dict[str, object]:
        settings = database(url)
        if "sqlite" in f"{settings['ENGINE']} {primary['ENGINE']}":
            raise ValueError("needs PostgreSQL, here and in DATABASE_URL")
        return settings

    return parse


def are_local(*urls: str) -> bool:
    """Whether every address is one of this machine alone."""
    return all(urlsplit(url).hostname in ("localhost", "127.0.0.1", "::1") for url in urls)


def host_of(url: str) -> str:
    return urlsplit(url).netloc


def beside_database(database: dict[str, object], base: Path, name: str) -> Path:
    """A folder beside an SQLite file, else in the application's folder."""
    on_file = database["ENGINE"] == "django.db.backends.sqlite3"
    return (Path(str(database["NAME"])).resolve().parent if on_file else base) / name


def local_memory(name: str, entries: int) -> dict[str, object]:
    """Django's settings of a cache in this process's memory."""
    backend = "django.core.cache.backends.locmem.LocMemCache"
    return {"BACKEND": backend, "LOCATION": name, "OPTIONS": {"MAX_ENTRIES": entries}}


def cache(url: str) -> dict[str, object]:
    """Django's cache settings for a `redis://`, `rediss://` or `unix://` URL; without one, local memory."""
    if not url:
        return local_memory("responses", 500)
    check_scheme(url, "redis://", "rediss://", "unix://")
    parts = split_url(url)
    check_userinfo(parts)
    if not (parts.hostname or parts.path):
        raise ValueError("names no server")
    check_host(parts.hostname or "")
    # A response is made as quickly as a server that does not answer is given up.
    options = {"socket_connect_timeout": 0.5, "socket_timeout": 0.5}
    backend = "django.core.cache.backends.redis.RedisCache"
    return {"BACKEND": backend, "LOCATION": url, "KEY_PREFIX": "arena", "OPTIONS": options}
