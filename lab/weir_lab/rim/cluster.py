# SPDX-License-Identifier: MIT
"""A client of a Dask cluster: with a scheduler that runs already, or on this machine."""

import contextlib
import importlib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from bench import process
from weir_lab.rim import on_host
from weir_lab.rim.errors import LabError
from weir_lab.rim.fleet import STOP_S, Client, words

Package = Any  # only partly typed


@dataclass(frozen=True, kw_only=True)
class Tls:
    """Files in PEM, with the names of the options of `dask worker`."""

    ca_file: str = ""
    cert: str = ""
    key: str = ""


def _dask() -> Package:
    """Dask.distributed, loaded here because it is slow to load and only one command needs it."""
    return importlib.import_module("distributed")


def _quiet() -> None:
    """Silences Dask's own logs: the lab reports each error once."""
    for name in list(logging.root.manager.loggerDict):
        if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
            logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    warnings.filterwarnings("ignore", module="distributed")


def _ship() -> None:
    """Makes Dask send the code of these modules to the hosts, not only their names."""
    cloudpickle: Package = importlib.import_module("cloudpickle")
    for module in (on_host, process):
        cloudpickle.register_pickle_by_value(module)


@contextmanager
def connected(address: str, tls: Tls, wait_s: float) -> Iterator[Client]:
    """A client of a scheduler that runs already.

    Raises:
        LabError: the scheduler cannot be reached.
    """
    distributed = _dask()
    _quiet()
    _ship()
    security = None
    if tls.ca_file or tls.cert or tls.key:
        security = distributed.Security(
            tls_ca_file=tls.ca_file or None,
            tls_client_cert=tls.cert or None,
            tls_client_key=tls.key or None,
            require_encryption=True,
        )
    try:
        client = distributed.Client(
            address, timeout=wait_s, security=security, set_as_default=False
        )
    except (OSError, ValueError, TypeError, RuntimeError) as error:
        raise LabError(
            f"there is no scheduler at {address}: {words(error)}; `dask scheduler` starts one"
        ) from error
    try:
        yield client
    finally:
        _close(client)


@contextmanager
def local(count: int) -> Iterator[Client]:
    """A client of a cluster of this many Dask workers on loopback."""
    distributed = _dask()
    _quiet()
    _ship()
    cluster = distributed.LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
    )
    try:
        client = distributed.Client(cluster, set_as_default=False)
        try:
            client.run(on_host.ignore_terminal)
            yield client
        finally:
            _close(client)
    finally:
        with contextlib.suppress(Exception):
            cluster.close(timeout=STOP_S)


def _close(client: Client) -> None:
    """Closes the client; a lost scheduler is no error here."""
    with contextlib.suppress(Exception):
        client.close(timeout=STOP_S)
