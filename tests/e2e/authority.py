# SPDX-License-Identifier: MIT
"""An authority for one test, made with the command `openssl`. It signs certificates."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from tests.waiting import LIMIT_S

CURVE = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]

AUTHORITY = """
[ca]
default_ca = own
[own]
new_certs_dir = {folder}
database = {folder}/index
serial = {folder}/serial
default_md = sha256
policy = any
unique_subject = no
[any]
commonName = supplied
"""


@dataclass(frozen=True)
class Identity:
    """The files of a certificate chain and of its key."""

    certificate: Path
    key: Path

    def context(self) -> ssl.SSLContext:
        """The side of a server that has this identity."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key)
        return context


class Certificates:
    """Makes certificates in a folder of its own."""

    def __init__(self, folder: Path) -> None:
        if not shutil.which("openssl"):
            pytest.skip("openssl is not installed")
        self.folder = folder
        folder.mkdir()
        (folder / "index").touch()
        (folder / "serial").write_text("01\n")
        (folder / "conf").write_text(AUTHORITY.format(folder=folder))

    def _run(self, *words: str | Path) -> None:
        subprocess.run(
            ["openssl", *words],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=LIMIT_S,
            check=True,
        )

    @cached_property
    def authority(self) -> Identity:
        """The authority that signs, and that a client may trust."""
        made = Identity(self.folder / "authority.pem", self.folder / "authority.key")
        self._run(
            *("req", "-x509", *CURVE, "-subj", "/CN=an authority", "-days", "30"),
            *("-keyout", made.key, "-out", made.certificate),
        )
        return made

    def signed(self, names: str, *, dates: tuple[str, str] | None = None) -> Identity:
        """A certificate of the authority for `names`, such as `DNS:localhost,IP:127.0.0.1`.

        `dates` are its start and end, as YYYYMMDDHHMMSSZ.
        """
        stem = f"signed-{len(list(self.folder.iterdir()))}"
        made = Identity(self.folder / f"{stem}.pem", self.folder / f"{stem}.key")
        request, extensions = self.folder / f"{stem}.csr", self.folder / f"{stem}.ext"
        extensions.write_text(f"subjectAltName = {names}\n")
        start, end = dates or ("20240101000000Z", "20990101000000Z")
        self._run("req", *CURVE, "-subj", "/CN=a server", "-keyout", made.key, "-out", request)
        self._run(
            *("ca", "-batch", "-notext", "-config", self.folder / "conf", "-extfile", extensions),
            *("-cert", self.authority.certificate, "-keyfile", self.authority.key),
            *("-startdate", start, "-enddate", end, "-in", request, "-out", made.certificate),
        )
        return made

    def self_signed(self, names: str) -> Identity:
        made = Identity(self.folder / "own.pem", self.folder / "own.key")
        self._run(
            *("req", "-x509", *CURVE, "-subj", "/CN=a server", "-addext"),
            *(f"subjectAltName={names}", "-keyout", made.key, "-out", made.certificate),
        )
        return made
