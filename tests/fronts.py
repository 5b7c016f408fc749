"""nginx before a running site, with the configuration that a file of the project documents."""

import datetime
import re
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from arena_site.operations.processes import stop
from tests.databases import PROJECT
from tests.faults.clusters import eventually
from tests.season.running_site import Site

BLOCKS = {
    "docs/deploy.md": re.compile(r"`/etc/nginx/sites-enabled/arena`.*?```\n(.*?)```", re.DOTALL),
    "compose.yaml": re.compile(r"  nginx:\n    content: \|\n(.*)", re.DOTALL),
}
"""Where each file holds the configuration."""
MAIN = """daemon off; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
    include {folder}/site;
}}
"""


@dataclass(frozen=True)
class Server:
    """Where requests are sent: a front or the web server itself."""

    port: int
    tls: bool = False

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    def connect(self, source: str = "127.0.0.1") -> socket.socket:
        """A connection of a client with this address."""
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20, source_address=(source, 0))
        if not self.tls:
            return connection
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the default one reads all certificates of the machine
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        return context.wrap_socket(connection)

    def exchange(self, request: bytes, *, ends: bool = False, silence_s: float = 20) -> bytes:
        """All that is answered to these bytes until it closes or falls silent. `ends`: none follow."""
        received = b""
        with self.connect() as client:
            with suppress(OSError):  # a server that refuses closes while the rest is sent
                client.sendall(request)
                if ends:
                    client.shutdown(socket.SHUT_WR)
            with suppress(TimeoutError, ConnectionError):
                while part := client.recv(65536):
                    received += part
                    client.settimeout(silence_s)
        return received


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def documented(file: str) -> str:
    """The configuration of nginx in a file of the project."""
    found = BLOCKS[file].search((PROJECT / file).read_text())
    assert found, file
    return dedent(found[1]).replace("$$", "$")


@contextmanager
def nginx(file: str, site: Site, folder: Path) -> Iterator[Server]:
    """nginx as documented, but for ports, names and the certificate."""
    plain, secure = free_port(), free_port()
    text = documented(file)
    for place, here in (
        (r"listen 80;", f"listen 127.0.0.1:{plain};"),
        (r"listen 443 ssl;", f"listen 127.0.0.1:{secure} ssl;"),
        (r"/etc/ssl/arena/", f"{folder}/"),
        (r"server_name arena.example;", "server_name localhost;"),
        (r"http://(web|127\.0\.0\.1):8000", site.url),
    ):
        text = re.sub(place, here, text)
    (folder / "site").write_text(text)
    (folder / "main").write_text(MAIN.format(folder=folder))
    write_certificate(folder)
    server = subprocess.Popen(
        ["nginx", "-e", f"{folder}/error.log", "-c", f"{folder}/main"], stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    )  # fmt: skip
    front = Server(secure, tls=True) if "ssl_certificate" in text else Server(plain)
    try:
        eventually(lambda: is_open(front.port) or server.poll() is not None)
        assert server.poll() is None, server.stderr and server.stderr.read()
        yield front
    finally:
        stop(server)


def is_open(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def write_certificate(folder: Path) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
        .serial_number(1).not_valid_before(now).not_valid_after(now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    encoding, format_ = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    (folder / "fullchain.pem").write_bytes(certificate.public_bytes(encoding))
    (folder / "privkey.pem").write_bytes(key.private_bytes(encoding, format_, serialization.NoEncryption()))


def served(site: Site) -> Server:
    """The web server of a site."""
    return Server(urlsplit(site.url).port or 0)
