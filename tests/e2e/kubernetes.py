# SPDX-License-Identifier: MIT
"""What Kubernetes does with the manifests, done with processes on this machine: containers, the
kubelet's probes, a Service that sends connections to pods that are ready.

Times are a fifth of what the manifests say. Ports are free ones here, and what the manifests mount
lies in a folder; commands, variables, probes and the configuration are theirs.
"""

from __future__ import annotations

import contextlib
import functools
import http.client
import re
import select
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.running import TOP, WEIR, Server, start

FOLDER = TOP / "packaging/kubernetes"
FASTER = 5
POD_HOST = "10.1.2.3:8081"  # the kubelet asks for a pod by its address

Manifest = dict[str, Any]


def manifests(folder: Path = FOLDER) -> list[Manifest]:
    """What a kustomization names, with what it generates."""
    kustomization: Manifest = yaml.safe_load((folder / "kustomization.yaml").read_text())
    found: list[Manifest] = []
    for name in kustomization["resources"]:
        found += yaml.safe_load_all((folder / name).read_text())
    for generated in kustomization.get("configMapGenerator", []):
        data = {Path(name).name: (folder / name).read_text() for name in generated["files"]}
        found.append(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": generated["name"]},
                "data": data,
            }
        )
    return found


def the(kind: str, folder: Path = FOLDER) -> Manifest:
    (found,) = [each for each in manifests(folder) if each["kind"] == kind]
    return found


def pod_spec() -> Manifest:
    spec: Manifest = the("Deployment")["spec"]["template"]["spec"]
    return spec


def container() -> Manifest:
    (found,) = pod_spec()["containers"]
    one: Manifest = found
    return one


def seconds(text: str) -> float:
    """A time of weir's."""
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h|)", text).groups()  # type: ignore[union-attr]
    return int(number) * {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600}[unit]


def explained(conf: Path) -> dict[str, str]:
    """What `weir check --explain` says of the server's settings."""
    done = subprocess.run(
        [WEIR, "check", str(conf), "--explain"],
        capture_output=True,
        text=True,
        check=False,
        env={"WEIR_STATS_PASSWORD": secret()["hash"]},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    server = done.stdout.partition("[server]")[2].partition("\n[")[0]
    return {found[0]: found[1] for found in re.findall(r"^  ([\w-]+) +(\S+)", server, re.M)}


# ---- what is mounted, and what is secret ----


@functools.cache
def secret() -> dict[str, str]:
    """What `kubectl create secret` makes, as the kustomization says it is called."""
    password = "a password of the cluster's"
    made = subprocess.run(
        [WEIR, "password"], input=f"{password}\n", capture_output=True, text=True, check=True
    )
    return {"username": "prometheus", "password": password, "hash": made.stdout.strip()}


def mounted(volume: str) -> str:
    """Where a volume is in the container."""
    (path,) = [each["mountPath"] for each in container()["volumeMounts"] if each["name"] == volume]
    return str(path)


def lay_out(folder: Path) -> Path:
    """Puts the configuration and something to serve where they would be mounted, below a folder;
    the configuration's place."""
    conf = folder / mounted("conf").lstrip("/")
    conf.mkdir(parents=True)
    for name, text in the("ConfigMap")["data"].items():
        (conf / name).write_text(text.replace("root = /", f"root = {folder}/"))
    (folder / "srv/www").mkdir(parents=True)
    (folder / "srv/www/index.html").write_text("<!doctype html><title>pods</title>\n")
    return conf / "weir.conf"


def environment_of(pod: Manifest) -> dict[str, str]:
    """The variables of a container."""
    found = {}
    for each in pod.get("env", []):
        reference = each["valueFrom"]["secretKeyRef"]
        found[each["name"]] = secret()[reference["key"]]
    return found


# ---- a pod ----


@dataclass
class Probe:
    """One of a container's probes, as the kubelet takes it."""

    path: str
    port: str
    every_s: float
    timeout_s: float
    failures: int

    @classmethod
    def of(cls, kind: str) -> Probe:
        about = container()[kind]
        return cls(
            about["httpGet"]["path"],
            about["httpGet"]["port"],
            about.get("periodSeconds", 10) / FASTER,
            about.get("timeoutSeconds", 1),
            about.get("failureThreshold", 3),
        )


@dataclass
class Pod:
    """A server that was started as the manifests say, and the kubelet that looks after it."""

    name: str
    server: Server
    ports: dict[str, int]
    ready: bool = False
    began_stopping: float = 0.0
    unready_since: float = 0.0
    liveness_failed: int = 0
    kubelet: threading.Thread | None = field(default=None, repr=False)
    finish: threading.Event = field(default_factory=threading.Event)

    def probe(self, probe: Probe) -> bool:
        made = http.client.HTTPConnection(
            "127.0.0.1", self.ports[probe.port], timeout=probe.timeout_s
        )
        try:
            made.request("GET", probe.path, headers={"Host": POD_HOST, "Connection": "close"})
            return 200 <= made.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            return False
        finally:
            made.close()

    def look_after(self) -> None:
        """Startup first; then readiness and, as long as the pod is not being stopped, liveness."""
        startup, readiness = Probe.of("startupProbe"), Probe.of("readinessProbe")
        liveness = Probe.of("livenessProbe")
        for _ in range(startup.failures):
            if self.probe(startup) or self.finish.wait(startup.every_s):
                break
        failed = 0
        while not self.finish.is_set():
            failed = 0 if self.probe(readiness) else failed + 1
            if self.ready and failed >= readiness.failures:
                self.unready_since = time.monotonic()
            self.ready = failed == 0 or (self.ready and failed < readiness.failures)
            if not self.began_stopping and not self.probe(liveness):
                self.liveness_failed += 1
            self.finish.wait(readiness.every_s)

    def stop(self) -> int:
        """Ends it: SIGTERM, and SIGKILL after the grace period; the exit status."""
        self.began_stopping = time.monotonic()
        self.server.signal(signal.SIGTERM)
        return self.server.wait(pod_spec()["terminationGracePeriodSeconds"] / FASTER)

    def end(self) -> None:
        self.finish.set()
        if self.kubelet:
            self.kubelet.join()
        if self.server.popen.poll() is None:
            self.server.stop()


def run_pod(name: str, folder: Path, log: Path) -> Pod:
    """Starts a container of the Deployment, with what lay_out has put into a folder."""
    program, command, *arguments = container()["command"]
    assert (program, command) == ("/usr/bin/weir", "serve")
    assert "lifecycle" not in container(), "there would be a hook to run"
    mount = mounted("conf")
    arguments = [
        str(folder / word.lstrip("/")) if word.startswith(f"{mount}/") else word
        for word in arguments
    ]
    said = explained(folder / mount.lstrip("/") / "weir.conf")
    faster = {
        f"WEIR_{name.upper().replace('-', '_')}": f"{seconds(said[name]) * 1000 / FASTER:.0f}ms"
        for name in ("drain-delay", "drain-timeout", "kill-timeout")
    }
    loopback = {"WEIR_LISTEN": "127.0.0.1:0", "WEIR_STATS_LISTEN": "127.0.0.1:0"}
    server = start(
        arguments, log, environment={**environment_of(container()), **loopback, **faster}
    )
    (stats,) = re.findall(r"^statistics: http://127\.0\.0\.1:(\d+)/", server.messages(), re.M)
    pod = Pod(name, server, {"http": server.address[1], "stats": int(stats)})
    pod.kubelet = threading.Thread(target=pod.look_after, name=name)
    pod.kubelet.start()
    return pod


# ---- a Service ----


class Service:
    """Balances connections among the pods that are ready: one after the other, at layer 4."""

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address: tuple[str, int] = self.listening.getsockname()
        self.turn = 0
        self.unserved = 0  # connections for which there was nobody
        self.sent_to: dict[str, int] = {}
        self.relays: list[threading.Thread] = []
        self.accepting = threading.Thread(target=self.accept)
        self.accepting.start()

    def close(self) -> None:
        self.listening.shutdown(socket.SHUT_RDWR)
        self.accepting.join()
        self.listening.close()
        for relay in self.relays:
            relay.join()

    def connect(self) -> socket.socket:
        """To the pod whose turn it is."""
        ready = [pod for pod in list(self.pods) if pod.ready]
        if not ready:
            raise ConnectionRefusedError
        self.turn += 1
        pod = ready[self.turn % len(ready)]
        self.sent_to[pod.name] = self.sent_to.get(pod.name, 0) + 1
        return socket.create_connection(("127.0.0.1", pod.ports["http"]))

    def accept(self) -> None:
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:
                return
            try:
                server = self.connect()
            except OSError:
                self.unserved += 1
                client.close()
                continue
            relay = threading.Thread(target=pass_on, args=(client, server))
            relay.start()
            self.relays = [each for each in self.relays if each.is_alive()] + [relay]


def pass_on(client: socket.socket, server: socket.socket) -> None:
    """What comes from one goes to the other, until one of them ends."""
    with client, server, contextlib.suppress(OSError):
        other = {client: server, server: client}
        while True:
            for source in select.select([client, server], [], [])[0]:
                if not (data := source.recv(65536)):
                    return
                other[source].sendall(data)


@contextlib.contextmanager
def deployed(folder: Path, count: int) -> Iterator[tuple[Service, Cluster]]:
    """A Service with so many pods that are ready."""
    lay_out(folder)
    service = Service()
    cluster = Cluster(folder, service)
    try:
        for _ in range(count):
            cluster.add()
        yield service, cluster
    finally:
        service.close()
        for pod in cluster.all:
            pod.end()


@dataclass
class Cluster:
    folder: Path
    service: Service
    all: list[Pod] = field(default_factory=list)

    def add(self) -> Pod:
        """One pod more, which gets connections once it is ready."""
        name = f"weir-{len(self.all)}"
        pod = run_pod(name, self.folder, self.folder / f"{name}.log")
        self.all.append(pod)
        deadline = time.monotonic() + 20
        while not pod.ready:
            assert time.monotonic() < deadline, pod.server.messages()
            time.sleep(0.01)
        self.service.pods.append(pod)
        return pod
