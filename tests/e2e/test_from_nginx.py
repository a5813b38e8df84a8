# SPDX-License-Identifier: MIT
"""The fragments of docs/from-nginx.md: weir serves its own, and answers as the page says. The other
servers that are installed read theirs."""

from __future__ import annotations

import contextlib
import re
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.command import attempt
from tests.e2e.certificates import Pair, make
from tests.e2e.conftest import Port, ServerFactory
from tests.e2e.http2 import Client
from tests.e2e.proxied import line
from tests.e2e.running import TOP, WEIR, Server
from tests.e2e.test_auth import ALICE
from tests.e2e.wire import Answer, Connection
from tests.waiting import LIMIT_S, wait_until

ONE_MODEL = pytest.mark.parametrize("model", ["percore"])  # the features have tests on every model
PROTOCOLS = ("http/1.1", "h2")
AGAIN = 200  # requests without a pause
SITE_FILES = (
    "index.html about.html app.js app.js.br docs/index.htm docs/guide.html files/one.txt "
    "images/logo.png assets/app.css embed/map.html archive/2023.txt intern/a.txt api/a.json "
    ".git/config .well-known/security.txt main.rs"
)
REQUEST = re.compile(
    r"(?P<method>[A-Z]+) (?P<target>\S+)(?P<fields>(?: \[[^]]+\])*)(?: from (?P<source>[\d.]+))?"
    r"(?P<often> again and again)? -> (?P<status>\d{3})(?:, (?P<rest>.*))?"
)
# The modules that the fragments for Apache use. Some builds have a few of them inside.
APACHE_MODULES = (
    "mpm_event authn_core authn_file authz_core authz_host authz_user auth_basic alias autoindex "
    "deflate dir filter headers http2 log_config mime remoteip rewrite setenvif socache_shmcb ssl"
).split()


@dataclass(frozen=True)
class Wanted:
    """A line of the page: a request and its answer."""

    text: str
    method: str
    target: str
    fields: tuple[str, ...]
    source: str
    often: bool
    status: int
    parts: tuple[str, ...]  # `file NAME`, `no Field` or `Field: value`


@dataclass
class Fragment:
    """A fragment of weir, and the requests below it."""

    title: str
    text: str
    wanted: list[Wanted] = field(default_factory=list)
    redirects: str = ""  # the file _redirects of the site

    @property
    def has_server(self) -> bool:
        return "[server]" in self.text


def blocks(language: str = r"\w+") -> list[tuple[str, str, str]]:
    """The blocks of the page in these languages: the title above, the language, and the text."""
    found, title = [], ""
    page = (TOP / "docs/from-nginx.md").read_text()
    pattern = rf"^## ([^\n]*)$|^```({language})\n(.*?)^```$"
    for each in re.finditer(pattern, page, re.MULTILINE | re.DOTALL):
        title = each[1] or title
        if each[2]:
            found.append((title, each[2], each[3]))
    return found


def wanted(text: str) -> Wanted:
    found = REQUEST.fullmatch(text)
    assert found, text
    return Wanted(
        text=text,
        method=found["method"],
        target=found["target"],
        fields=tuple(re.findall(r"\[([^]]+)\]", found["fields"])),
        source=found["source"] or "127.0.0.1",
        often=bool(found["often"]),
        status=int(found["status"]),
        parts=tuple(re.split(r", (?=no |file |[A-Z][\w-]*: )", found["rest"] or "")),
    )


def fragments() -> list[Fragment]:
    found: list[Fragment] = []
    for title, language, text in blocks("ini|redirects|text"):
        if language == "ini":
            found.append(Fragment(title, text))
            continue
        if language == "redirects":
            found[-1].redirects = text
            continue
        if not found or found[-1].title != title:
            found.append(Fragment(title, ""))
        found[-1].wanted += [wanted(each) for each in text.splitlines()]
    return found


FRAGMENTS = fragments()
OWN = [each for each in FRAGMENTS if each.has_server]


def title_of(fragment: Fragment) -> str:
    return fragment.title.replace(" ", "-")


class Place:
    """A folder that stands for `/`. Networks of the page are networks of this machine there."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.pairs: dict[str, Pair] = {}
        for name in SITE_FILES.split():
            self.write(f"srv/www/{name}", f"{name}\n")
        self.write("srv/errors/404.html", "errors/404.html\n")
        self.write("etc/weir/users", ALICE)
        (top / "etc/weir/users").chmod(0o640)
        for folder in ("srv/www/blog", "var/log/weir", "var/log/nginx", "var/log/apache2"):
            (top / folder).mkdir(parents=True)

    def write(self, name: str, text: str) -> Path:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def moved(self, text: str) -> str:
        """The text with the paths and the networks of this place."""
        text = re.sub(r"(?<![\w.*])/(srv|etc|var)/", lambda m: f"{self.top}/{m[1]}/", text)
        return re.sub(r"\b10\.(?=\d+\.\d+\.\d)", "127.", text)

    def certify(self, text: str) -> None:
        """Makes each certificate of the text that is missing, for the host of its folder's name."""
        for name in re.findall(r"/etc/ssl/(\w+)/fullchain", text):
            if name not in self.pairs:
                folder = self.top / "etc/ssl" / name
                folder.mkdir(parents=True)
                made = make(folder, "made", f"{name}.example.com")
                self.pairs[name] = Pair(folder / "fullchain.pem", folder / "privkey.pem")
                self.pairs[name].replace_with(made)

    def configure(self, text: str) -> Path:
        self.certify(text)
        text = re.sub(r"(?<=[ /])\*:\d+", "127.0.0.1:0", self.moved(text))
        return self.write("weir.conf", text)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


# ---- requests ----


def address_of(running: Server, scheme: str) -> tuple[str, int]:
    found = next(urlsplit(url) for url in running.urls if url.startswith(f"{scheme}:"))
    assert found.hostname
    assert found.port
    return found.hostname, found.port


@contextlib.contextmanager
def connected(
    running: Server, place: Place, each: Wanted, host: str, protocol: str
) -> Iterator[Connection]:
    scheme = urlsplit(each.target).scheme or "http"
    source = place.moved(each.source)
    made = socket.create_connection(
        address_of(running, scheme), timeout=LIMIT_S, source_address=(source, 0)
    )
    with contextlib.closing(made):
        for text in each.fields:
            if text.startswith("PROXY: "):
                made.sendall(line(text.removeprefix("PROXY: ")))
        if scheme == "http":
            yield Connection(made)
            return
        trust = place.pairs[host.partition(".")[0]].certificate
        context = ssl.create_default_context(cafile=str(trust))
        context.set_alpn_protocols([protocol])
        with context.wrap_socket(made, server_hostname=host) as wrapped:
            yield Connection(wrapped)


Getter = Callable[[Wanted, str], Answer]  # with the host


def getter_of(connection: Connection, protocol: str, place: Place) -> Getter:
    client = Client(connection) if protocol == "h2" else None

    def get(each: Wanted, host: str) -> Answer:
        parts = urlsplit(each.target)
        path = parts.path + (f"?{parts.query}" if parts.query else "")
        lines = [place.moved(text) for text in each.fields if not text.startswith("PROXY: ")]
        if client:
            pairs = [text.encode().split(b": ", 1) for text in lines]
            fields = [(name.lower(), value) for name, value in pairs]
            stream = client.ask(path, *fields, method=each.method, authority=host.encode())
            return client.answer(stream)
        head = [f"{each.method} {path} HTTP/1.1", f"Host: {host}", *lines, "", ""]
        connection.send("\r\n".join(head).encode())
        return connection.read()

    return get


def check(answer: Answer, each: Wanted, port: int | None) -> None:
    """`port`: of the https address. A Location may have it, because it is not 443 here."""
    assert answer.status == each.status
    for part in filter(None, each.parts):
        if part.startswith("file "):
            assert answer.body.decode() == part.removeprefix("file ") + "\n"
        elif part.startswith("no "):
            assert answer.get(part.removeprefix("no ")) is None
        else:
            name, _, value = part.partition(": ")
            got = answer.get(name)
            assert (got.replace(f":{port}", "", 1) if got and port else got) == value


def request(running: Server, place: Place, each: Wanted, host: str) -> None:
    host = urlsplit(each.target).hostname or host
    secure = any(url.startswith("https:") for url in running.urls)
    port = address_of(running, "https")[1] if secure else None
    for protocol in PROTOCOLS:
        if protocol == "h2" and any(text.startswith("Content-Length") for text in each.fields):
            continue  # the client would have to send the body
        with connected(running, place, each, host, protocol) as connection:
            get = getter_of(connection, protocol, place)

            def answer(get: Getter = get) -> Answer | None:
                for _ in range(AGAIN if each.often else 1):
                    got = get(each, host)
                    if got.status == each.status or not each.often:
                        return got
                return None

            try:
                got = wait_until(answer, "such an answer")
                assert got
                check(got, each, port)
            except AssertionError as error:
                raise AssertionError(f"{each.text} ({protocol}): {error}") from error


def started(server: ServerFactory, conf: Path) -> Server:
    return server("-c", str(conf), "--h2c", "on", folder=None, listen=())


@ONE_MODEL
@pytest.mark.parametrize("fragment", OWN, ids=title_of)
def test_a_server_answers_as_the_page_says(
    server: ServerFactory, place: Place, fragment: Fragment
) -> None:
    running = started(server, place.configure(fragment.text))
    assert fragment.wanted
    for each in fragment.wanted:
        request(running, place, each, "any.example.com")
    if "access-log" in fragment.text:
        log = place.top / "var/log/weir/access.log"
        request_line = '] "GET / HTTP/1.1" 200 11'
        wait_until(lambda: request_line in log.read_text(), "the line is in the log")


def with_host(fragment: Fragment, number: int) -> tuple[str, str]:
    """The fragment as a site with a host of its own, and this host."""
    host = f"s{number}.example"
    text = fragment.text
    if "[site " not in text:
        text = f"[site s{number}]\nroot = /srv/www\n{text}"
    if "host = " not in text:
        text = re.sub(r"^(\[site .*\])$", rf"\1\nhost = {host}", text, count=1, flags=re.MULTILINE)
    first = re.search(r"^host = ([\w.]+)", text, re.MULTILINE)
    assert first
    return text, first[1]


@ONE_MODEL
def test_sites_answer_as_the_page_says(server: ServerFactory, place: Place) -> None:
    sites = [each for each in FRAGMENTS if not each.has_server]
    # All sites have one root. Those without site-rules leave the file alone.
    place.write("srv/www/_redirects", "".join(each.redirects for each in sites))
    texts = [with_host(each, number) for number, each in enumerate(sites)]
    conf = "[server]\nlisten = *:80\n" + "\n".join(text for text, _ in texts)
    running = started(server, place.configure(conf))
    for fragment, (_, host) in zip(sites, texts, strict=True):
        assert fragment.wanted, fragment.text
        for each in fragment.wanted:
            request(running, place, each, host)


def test_the_page_has_at_least_twenty_fragments_of_nginx_with_their_equivalents() -> None:
    nginx = {title for title, _, _ in blocks("nginx")}
    assert len(nginx) >= 20
    assert nginx - {each.title for each in FRAGMENTS} == set()
    for language in ("caddy", "apache"):
        assert len(blocks(language)) >= 15


def test_check_knows_the_directives_of_nginx_on_the_page(tmp_path: Path) -> None:
    """An operator who puts one into weir.conf learns what to write."""
    texts = [each.strip() for _, _, text in blocks("nginx") for each in text.splitlines()]
    directives = {each.split()[0]: each for each in texts if re.match("[a-z_]+ ", each)}
    assert len(directives) > 30
    conf = tmp_path / "weir.conf"
    for directive in directives.values():
        conf.write_text(f"[server]\nlisten = 0\n[site a]\nroot = {tmp_path}\n{directive}\n")
        done = attempt([str(WEIR), "check", str(conf)])
        (said,) = [each for each in done.stdout.splitlines() if f"{conf}:5: error: " in each]
        assert "unknown setting" not in said, directive
        assert "this is neither" not in said, directive


# ---- the other servers ----


def need(*names: str) -> str:
    """The path of the first of these programs that is installed."""
    for name in names:
        found = shutil.which(name) or shutil.which(name, path="/usr/local/sbin:/usr/sbin:/sbin")
        if found:
            return found
    pytest.skip(f"{names[0]} is not installed")


def accepts(words: list[str], title: str, text: str, home: Path) -> None:
    done = attempt(words, PATH="/usr/bin:/bin:/usr/sbin:/sbin", HOME=str(home))
    assert done.returncode == 0, f"{title}\n{text}\n{done.stdout}"


def test_nginx_accepts_its_fragments(place: Place, port: Port) -> None:
    nginx, number = need("nginx"), port()
    temporary = "".join(
        f"{kind}_temp_path {place.top}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    for title, _, text in blocks("nginx"):
        place.certify(text)
        if "server {" not in text:
            text = f"server {{\nlisten 80;\nroot /srv/www;\n{text}}}\n"
        # nginx binds the address, also for a test. It ignores that the port is taken.
        text = re.sub(r"listen \d+", f"listen 127.0.0.1:{number}", place.moved(text))
        conf = place.write(
            "nginx.conf",
            f"pid {place.top}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\n{temporary}{text}}}\n",
        )
        words = [nginx, "-t", "-p", str(place.top), "-c", str(conf), "-e", "stderr"]
        accepts(words, title, text, place.top)


def test_caddy_accepts_its_fragments(place: Place) -> None:
    caddy = need("caddy")
    said = subprocess.run([caddy, "version"], capture_output=True, text=True, check=True).stdout
    version = tuple(int(each) for each in re.findall(r"\d+", said)[:3])
    for title, _, text in blocks("caddy"):
        if not re.match(r"(https?://)?[\w.]+\.example\.com\b|\{", text):
            text = f":8080 {{\n{text}}}\n"
        if version < (2, 8):
            text = text.replace("basic_auth", "basicauth")
        if version < (2, 6, 3) and "trusted_proxies" in text:
            continue
        conf = place.write("Caddyfile", place.moved(text))
        words = [caddy, "adapt", "--adapter", "caddyfile", "--config", str(conf)]
        accepts(words, title, text, place.top)


def test_apache_accepts_its_fragments(place: Place) -> None:
    apache = need("apache2", "httpd")
    folders = (Path("/usr/lib/apache2/modules"), Path("/usr/lib64/httpd/modules"))
    folder = next((each for each in folders if each.is_dir()), None)
    if not folder:
        pytest.skip("the modules of Apache are not installed")
    loads = "".join(
        f"LoadModule {name}_module {folder}/mod_{name}.so\n"
        for name in APACHE_MODULES
        if (folder / f"mod_{name}.so").is_file()
    )
    types = place.write("mime.types", "text/html html\n")
    for title, _, text in blocks("apache"):
        place.certify(text)
        conf = place.write(
            "apache.conf",
            f"ServerRoot {place.top}\nServerName localhost\n{loads}TypesConfig {types}\n"
            f"PidFile {place.top}/pid\nDefaultRuntimeDir {place.top}\nErrorLog {place.top}/error\n"
            f"DocumentRoot {place.top}/srv/www\n{place.moved(text)}",
        )
        accepts([apache, "-t", "-f", str(conf)], title, text, place.top)
