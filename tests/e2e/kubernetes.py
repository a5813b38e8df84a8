# SPDX-License-Identifier: MIT
"""Does with processes on this machine what Kubernetes does with the manifests: containers, the
kubelet's probes, and a Service that sends connections to the pods that are ready.

The drain delay is a tenth of the manifests' value, and the probes come forty times as often. So on
a busy machine, too, the probes fail long before the delay is over. Ports are free ports of this
machine, and a folder holds what the manifests mount. Commands, variables, probes and configuration
are those of the manifests.
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
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.running import TOP, WEIR, Server, start
from tests.waiting import LIMIT_S, wait_until

FOLDER = TOP / "packaging/kubernetes"
DELAY_FASTER = 10
PROBES_FASTER = 40
POD_HOST = "10.1.2.3:8081"  # the kubelet addresses a pod by its IP address

Manifest = dict[str, Any]


def manifests(folder: Path = FOLDER) -> list[Manifest]:
    """The resources of a kustomization, also those that it generates."""
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
    """The seconds of a duration in weir's notation."""
    number, unit = re.fullmatch(r"(\d+)(ms|s|m|h|)", text).groups()  # type: ignore[union-attr]
    return int(number) * {"ms": 0.001, "s": 1, "": 1, "m": 60, "h": 3600}[unit]


def explained(conf: Path) -> dict[str, str]:
    """The settings in [server], as `weir check --explain` prints them."""
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
    """The secret that the command in the kustomization makes."""
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
    """Writes the configuration and a file to serve where the pod would mount them, below a folder.

    Returns the path of the configuration.
    """
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
    """One of a container's probes, as the kubelet reads it."""

    path: str
    port: str
    every_s: float
    failures: int

    @classmethod
    def of(cls, kind: str) -> Probe:
        about = container()[kind]
        return cls(
            about["httpGet"]["path"],
            about["httpGet"]["port"],
            about.get("periodSeconds", 10) / PROBES_FASTER,
            about.get("failureThreshold", 3),
        )


@dataclass
class Pod:
    """A server that is started as the manifests define, and the kubelet that probes it."""

    name: str
    server: Server
    ports: dict[str, int]
    ready: bool = False
    stopping: bool = False
    liveness_failed: int = 0
    kubelet: threading.Thread | None = field(default=None, repr=False)
    finish: threading.Event = field(default_factory=threading.Event)

    def probe(self, probe: Probe) -> bool:
        made = http.client.HTTPConnection("127.0.0.1", self.ports[probe.port], timeout=LIMIT_S)
        try:
            made.request("GET", probe.path, headers={"Host": POD_HOST, "Connection": "close"})
            return 200 <= made.getresponse().status < 400
        except (OSError, http.client.HTTPException):
            return False
        finally:
            made.close()

    def look_after(self) -> None:
        """Probes startup first, then readiness and, until the pod is stopped, liveness."""
        startup, readiness = Probe.of("startupProbe"), Probe.of("readinessProbe")
        liveness = Probe.of("livenessProbe")
        for _ in range(startup.failures):
            if self.probe(startup) or self.finish.wait(startup.every_s):
                break
        failed = 0
        while not self.finish.is_set():
            failed = 0 if self.probe(readiness) else failed + 1
            self.ready = failed == 0 or (self.ready and failed < readiness.failures)
            if not self.stopping and not self.probe(liveness) and not self.stopping:
                self.liveness_failed += 1
            self.finish.wait(readiness.every_s)

    def stop(self) -> int:
        """Sends SIGTERM and waits; returns the exit status."""
        self.stopping = True
        self.server.signal(signal.SIGTERM)
        return self.server.wait()

    def end(self) -> None:
        self.finish.set()
        if self.kubelet:
            self.kubelet.join()
        if self.server.popen.poll() is None:
            self.server.stop()


def run_pod(name: str, folder: Path, log: Path) -> Pod:
    """Starts a container of the Deployment with the folder that lay_out has filled."""
    program, command, *arguments = container()["command"]
    assert (program, command) == ("/usr/bin/weir", "serve")
    assert "lifecycle" not in container(), "there would be a hook to run"
    mount = mounted("conf")
    arguments = [
        str(folder / word.lstrip("/")) if word.startswith(f"{mount}/") else word
        for word in arguments
    ]
    said = explained(folder / mount.lstrip("/") / "weir.conf")
    faster = {"WEIR_DRAIN_DELAY": f"{seconds(said['drain-delay']) * 1000 / DELAY_FASTER:.0f}ms"}
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
    """Sends each connection to the next pod that is ready (layer 4, round robin)."""

    def __init__(self) -> None:
        self.pods: list[Pod] = []
        self.listening = socket.create_server(("127.0.0.1", 0), backlog=1024)
        self.address: tuple[str, int] = self.listening.getsockname()
        self.turn = 0
        self.unserved = 0  # connections for which no pod was ready
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
        """Connects to the next pod."""
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
    """Copies bytes in both directions until one side closes."""
    with client, server, contextlib.suppress(OSError):
        other = {client: server, server: client}
        while True:
            for source in select.select([client, server], [], [])[0]:
                if not (data := source.recv(65536)):
                    return
                other[source].sendall(data)


@contextlib.contextmanager
def deployed(folder: Path, count: int) -> Iterator[tuple[Service, Cluster]]:
    """A Service with this many ready pods."""
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
        """Adds a pod, which receives connections once it is ready."""
        name = f"weir-{len(self.all)}"
        pod = run_pod(name, self.folder, self.folder / f"{name}.log")
        self.all.append(pod)
        wait_until(lambda: pod.ready, pod.server.messages)
        self.service.pods.append(pod)
        return pod
