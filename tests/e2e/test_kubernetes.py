# SPDX-License-Identifier: MIT
"""The manifests: Kubernetes accepts them, they agree with each other and with weir, and a roll-out
under load fails no request."""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families as read_prometheus

from tests.e2e.kubernetes import (
    FOLDER,
    Manifest,
    Pod,
    Probe,
    container,
    deployed,
    explained,
    lay_out,
    manifests,
    pod_spec,
    seconds,
    secret,
    the,
)
from tests.e2e.load import Load
from tests.e2e.wire import connect
from tests.waiting import wait_until

VERSIONS = ("1.30", "1.37")  # the oldest and the newest supported version
MONITORING = FOLDER / "monitoring"
OPERATOR = "monitoring.coreos.com/v1"


def name_of(manifest: Manifest) -> str:
    return f"{manifest['kind']}-{manifest['metadata']['name']}"


def scrape(pod: Pod) -> str:
    known = secret()
    token = base64.b64encode(f"{known['username']}:{known['password']}".encode()).decode()
    (endpoint,) = the("PodMonitor", MONITORING)["spec"]["podMetricsEndpoints"]
    with connect(("127.0.0.1", pod.ports[endpoint["port"]])) as connection:
        answer = connection.get(endpoint["path"], "10.1.2.3", f"Authorization: Basic {token}")
    assert answer.status == 200
    return answer.body.decode()


# ---- what they say ----


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("manifest", manifests(), ids=name_of)
def test_kubernetes_accepts_each_manifest(manifest: Manifest, version: str) -> None:
    kubernetes_validate.validate(manifest, version, strict=True)


def test_a_misspelt_member_is_rejected() -> None:
    manifest = the("Deployment")
    manifest["spec"]["template"]["spec"]["terminationGracePeriod"] = 45
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)


@pytest.mark.parametrize("folder", [FOLDER, MONITORING], ids=lambda folder: folder.name)
def test_every_file_is_named_in_its_kustomization(folder: Path) -> None:
    kustomization = yaml.safe_load((folder / "kustomization.yaml").read_text())
    named = set(kustomization["resources"])
    for generated in kustomization.get("configMapGenerator", []):
        named.update(generated["files"])
    there = {each.name for each in folder.iterdir() if each.is_file()}
    assert there == named | {"kustomization.yaml"}


def test_all_manifests_select_the_same_pods() -> None:
    labels = the("Deployment")["spec"]["template"]["metadata"]["labels"]
    spread = pod_spec()["topologySpreadConstraints"]
    assert the("Deployment")["spec"]["selector"]["matchLabels"] == labels
    assert the("Service")["spec"]["selector"] == labels
    assert the("PodDisruptionBudget")["spec"]["selector"]["matchLabels"] == labels
    assert the("PodMonitor", MONITORING)["spec"]["selector"]["matchLabels"] == labels
    assert all(each["labelSelector"]["matchLabels"] == labels for each in spread)
    target = the("HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert target == {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "name": the("Deployment")["metadata"]["name"],
    }


def test_volumes_ports_and_secrets_are_used_by_their_names() -> None:
    volumes = {each["name"]: each for each in pod_spec()["volumes"]}
    assert {each["name"] for each in container()["volumeMounts"]} == set(volumes)
    assert volumes["conf"]["configMap"]["name"] == the("ConfigMap")["metadata"]["name"]
    ports = {each["name"] for each in container()["ports"]}
    probed = {Probe.of(kind).port for kind in ("startupProbe", "readinessProbe", "livenessProbe")}
    assert {each["targetPort"] for each in the("Service")["spec"]["ports"]} <= ports
    (endpoint,) = the("PodMonitor", MONITORING)["spec"]["podMetricsEndpoints"]
    assert probed | {endpoint["port"]} == {"stats"}
    reference = container()["env"][0]["valueFrom"]["secretKeyRef"]
    for each in endpoint["basicAuth"].values():
        assert each["name"] == reference["name"]
    # The head of the kustomization has the command that makes the secret.
    head = (FOLDER / "kustomization.yaml").read_text()
    keys = {reference["key"], *(each["key"] for each in endpoint["basicAuth"].values())}
    assert set(re.findall(r"--from-literal=(\w+)=", head)) == keys
    assert f"create secret generic {reference['name']} " in head


def test_the_pod_is_confined() -> None:
    for_all, for_one = pod_spec()["securityContext"], container()["securityContext"]
    assert for_all["runAsNonRoot"]
    assert for_all["runAsUser"] >= 1024
    assert for_all["seccompProfile"] == {"type": "RuntimeDefault"}
    assert for_one == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod_spec()["automountServiceAccountToken"] is False
    assert pod_spec()["enableServiceLinks"] is False


# ---- whether they agree with weir ----


def test_the_configuration_is_valid_and_has_the_ports_of_the_container(tmp_path: Path) -> None:
    said = explained(lay_out(tmp_path))
    ports = {each["name"]: each["containerPort"] for each in container()["ports"]}
    assert said["listen"] == f"*:{ports['http']}"
    assert said["stats-listen"] == f"*:{ports['stats']}"


def test_the_grace_period_is_long_enough_for_weir_to_stop(tmp_path: Path) -> None:
    said = explained(lay_out(tmp_path))
    takes = sum(seconds(said[name]) for name in ("drain-delay", "drain-timeout", "kill-timeout"))
    assert takes < pod_spec()["terminationGracePeriodSeconds"] <= takes + 10


def test_the_readiness_probe_fails_before_connections_are_refused(tmp_path: Path) -> None:
    probe = container()["readinessProbe"]
    noticed = (probe["periodSeconds"] + probe["timeoutSeconds"]) * probe["failureThreshold"]
    # Every balancer needs time to learn of it, too.
    assert noticed + 3 < seconds(explained(lay_out(tmp_path))["drain-delay"])


def test_the_pod_requests_whole_cpus_and_the_cache_fits_its_memory(tmp_path: Path) -> None:
    resources = container()["resources"]
    assert resources["requests"] == resources["limits"]
    assert resources["limits"]["cpu"].isdigit()
    cache = explained(lay_out(tmp_path))["cache-size"]
    assert cache.endswith("M")
    assert resources["limits"]["memory"].endswith("Mi")
    assert 2 * int(cache[:-1]) <= int(resources["limits"]["memory"][:-2])


def test_the_remaining_pods_can_serve_all_requests() -> None:
    spec = the("HorizontalPodAutoscaler")["spec"]
    (metric,) = spec["metrics"]
    target = metric["resource"]["target"]["averageUtilization"] / 100
    least = spec["minReplicas"]
    gone = the("PodDisruptionBudget")["spec"]["maxUnavailable"]
    assert target * least / (least - gone) <= 0.9


# ---- a roll-out ----


@pytest.mark.parametrize("keep", [True, False])
def test_a_roll_out_under_load_fails_no_request(tmp_path: Path, keep: bool) -> None:
    strategy = the("Deployment")["spec"]["strategy"]["rollingUpdate"]
    assert strategy == {"maxUnavailable": 0, "maxSurge": 1}
    body = b"<!doctype html><title>pods</title>\n"
    with deployed(tmp_path, the("HorizontalPodAutoscaler")["spec"]["minReplicas"]) as (
        service,
        cluster,
    ):
        old = list(service.pods)
        with Load(service.address, "/", body, clients=6, keep=keep) as load:
            load.wait_for(100)
            for pod in old:
                cluster.add()
                load.wait_for(20)
                assert pod.stop() == 0
                service.pods.remove(pod)
            load.wait_for(100)
            count = load.stop()
        assert count.failed == 0, count
        assert service.unserved == 0
        # A request that is sent while its connection closes is sent again, once per connection.
        assert count.parted <= len(load.clients) * len(old)
        for pod in old:
            wait_until(lambda pod=pod: not pod.ready, "the pod is not ready")  # type: ignore[misc]
            assert "stopping in" in pod.server.messages()
        assert [pod.liveness_failed for pod in cluster.all] == [0] * len(cluster.all)
        assert set(service.sent_to) >= {pod.name for pod in service.pods}


# ---- Prometheus ----


def rules() -> list[dict[str, Any]]:
    groups = the("PrometheusRule", MONITORING)["spec"]["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_the_rules_use_existing_metrics_and_labels(tmp_path: Path) -> None:
    used: dict[str, set[str]] = {}
    for rule in rules():
        for name, labels in re.findall(r"(?<!:)\b(weir_\w+)\b(?!:)(?:{([^}]*)})?", rule["expr"]):
            used.setdefault(name, set()).update(re.findall(r"(\w+)\s*=", labels))
    assert len(used) >= 10
    with deployed(tmp_path, 1) as (service, _):
        (pod,) = service.pods
        there: dict[str, set[str]] = {}
        text = scrape(pod)
        # This metric appears after the first eviction from the cache; test_stats.py covers it.
        text += 'weir_cache_hit_ratio{size="1"} 1\n'
        # A page that root started may not read these; the pods start as another user.
        if os.getuid() == 0:
            text += "weir_descriptors_fullest 1\nweir_descriptors_fullest_limit 2\n"
        for family in read_prometheus(text):
            for sample in family.samples:
                there.setdefault(sample.name, set()).update(sample.labels)
    assert {name: labels - there.get(name, set()) for name, labels in used.items()} == {
        name: set() for name in used
    }
    assert set(used) <= set(there)


def value_of(expression: str, text: str) -> float:
    """An expression of sums of counters, of a pod that has just started. So a rate is a total."""

    def total(each: re.Match[str]) -> str:
        name, label, values = each.groups()
        samples = [sample for family in read_prometheus(text) for sample in family.samples]
        return str(
            sum(
                sample.value
                for sample in samples
                if sample.name == name
                and (label is None or re.fullmatch(values, sample.labels[label]))
            )
        )

    pattern = r'sum by \(\w+\) \(rate\((\w+)(?:{(\w+)=~"([^"]*)"})?\[5m\]\)\)'
    sums = re.sub(pattern, total, expression)
    assert re.fullmatch(r"[-\d. ()/+]+", sums), sums
    return float(eval(sums))  # numbers alone


def test_answers_that_depend_on_the_request_cause_no_alert(tmp_path: Path) -> None:
    (rule,) = [each for each in rules() if each.get("alert") == "WeirAnswers5xx"]
    share, _, limit = rule["expr"].rpartition(" > ")
    with deployed(tmp_path, 1) as (service, _):
        (pod,) = service.pods
        with connect(("127.0.0.1", pod.ports["http"])) as connection:
            connection.send(b"BREW / HTTP/1.1\r\nHost: pods.example\r\n\r\n")
            assert connection.read().status == 501
        wait_until(lambda: 'status="501"} 1\n' in scrape(pod), "the answer is counted")
        assert value_of(share, scrape(pod)) <= float(limit)


def test_the_rules_that_alerts_use_are_recorded() -> None:
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    for rule in rules():
        assert set(re.findall(r"\w+:\w+:\w+", rule["expr"])) <= recorded
        if "alert" in rule:
            assert rule["annotations"]["summary"]
            assert rule["labels"]["severity"] in ("info", "warning", "critical")


def test_the_monitoring_resources_have_the_version_of_the_operator() -> None:
    assert {each["apiVersion"] for each in manifests(MONITORING)} == {OPERATOR}


def test_only_prometheus_needs_the_password(tmp_path: Path) -> None:
    with deployed(tmp_path, 1) as (service, _):
        (pod,) = service.pods
        with connect(("127.0.0.1", pod.ports["stats"])) as connection:
            assert connection.get("/healthz", "10.1.2.3").status == 200
            assert connection.get("/metrics", "10.1.2.3").status == 401
        assert "weir_up 1\n" in scrape(pod)
