"""What each way of talking to the API server costs: `python -m bench.kubernetes_client [--pods N] [--json]`.

Each figure comes from a process of its own: import seconds and resident memory, then listing pods in pages of 500 from
an HTTPS server on the loopback, each way keeping only the `Pod` records that Firstbell works with. Medians of five.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

WAYS = ("plain REST", "client's transport", "client whole")
RUNS = 5
PAGE_PODS = 500
ROOT = Path(__file__).parent.parent


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--pods", type=int, default=5000)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--measure", nargs=3, metavar=("WAY", "ENDPOINT", "CA_FILE"), help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.measure:
        print(json.dumps(measure(*chosen.measure)))
        return
    rows = compare(chosen.pods)
    print(json.dumps(rows) if chosen.json else _table(rows, chosen.pods))


def compare(pods: int) -> dict[str, dict[str, float]]:
    """Way -> medians, against an API server of `pods` pods that lives in this process."""
    from tests.fakes.api_server import ScriptedApiServer, page

    pages = [
        page((a_pod(number) for number in range(start, min(pods, start + PAGE_PODS))), more=str(start + PAGE_PODS))
        for start in range(0, pods, PAGE_PODS)
    ]
    pages[-1].body["metadata"]["continue"] = ""
    with ScriptedApiServer() as server, tempfile.NamedTemporaryFile("w", suffix=".pem") as ca_file:
        ca_file.write(server.ca_data)
        ca_file.flush()
        server.answer("GET", "/api/v1/pods", lambda request: pages[_page_number(request.query)])
        return {way: _medians(way, server.endpoint, ca_file.name) for way in WAYS}


def measure(way: str, endpoint: str, ca_file: str) -> dict[str, float]:
    """In a fresh process: import, then list."""
    began = time.perf_counter()
    lister = {"plain REST": plain_rest, "client's transport": transport, "client whole": whole}[way]()
    import_seconds = time.perf_counter() - began
    import_mib = _resident_mib()
    began, cpu_began = time.perf_counter(), time.process_time()
    pods = lister(endpoint, Path(ca_file))
    return {
        "import_seconds": import_seconds,
        "import_mib": import_mib,
        "list_seconds": time.perf_counter() - began,
        "list_cpu_seconds": time.process_time() - cpu_began,
        "peak_mib": _peak_mib(),
        "pods": len(pods),
    }


Lister = Callable[[str, Path], list[Any]]


def plain_rest() -> Lister:
    """Ours: urllib3, json, one page at a time."""
    from firstbell.cluster.client import ApiServer
    from firstbell.cluster.kubernetes import KubernetesCluster

    def list_pods(endpoint: str, ca_file: Path) -> list[Any]:
        api = ApiServer(endpoint, ca_file.read_text(), lambda: "token", time.time)
        return KubernetesCluster(api).pods()

    return list_pods


def transport() -> Lister:
    """The usual client for connections only; the JSON is parsed as ours is."""
    import kubernetes.client

    from firstbell.cluster.pods import UNFINISHED, parse_pod

    def list_pods(endpoint: str, ca_file: Path) -> list[Any]:
        core: Any = kubernetes.client.CoreV1Api(_client(endpoint, ca_file))
        pods: list[Any] = []
        token = None
        while True:
            answer = core.list_pod_for_all_namespaces(
                limit=PAGE_PODS, field_selector=UNFINISHED, _preload_content=False, **_continued(token)
            )
            document = json.loads(answer.data)
            pods += map(parse_pod, document["items"])
            token = document["metadata"]["continue"]
            if not token:
                return pods

    return list_pods


def whole() -> Lister:
    """The usual client with its models, from which the same few fields are kept, page by page."""
    import kubernetes.client

    def list_pods(endpoint: str, ca_file: Path) -> list[Any]:
        core: Any = kubernetes.client.CoreV1Api(_client(endpoint, ca_file))
        pods: list[Any] = []
        token = None
        while True:
            document = core.list_pod_for_all_namespaces(
                limit=PAGE_PODS, field_selector="status.phase!=Succeeded", **_continued(token)
            )
            pods += map(_kept, document.items)
            token = document.metadata._continue
            if not token:
                return pods

    return list_pods


def a_pod(number: int) -> dict[str, Any]:
    """A notebook pod of the size that the API server sends: about 8 KB, managedFields included."""
    environment = [{"name": f"JUPYTERHUB_SETTING_{i}", "value": f"a value of some length {i}"} for i in range(30)]
    container = {
        "name": "notebook",
        "image": "example.com/hub/user:2026-12-01",
        "env": environment,
        "resources": {"requests": {"cpu": "500m", "memory": "2Gi"}, "limits": {"memory": "2Gi"}},
        "volumeMounts": [{"name": "home", "mountPath": "/home/jovyan", "subPath": f"student-{number}"}],
    }
    fields: dict[str, Any] = {f"f:{name}": {"f:value": {}, ".": {}} for name in (f"k{i}" for i in range(60))}
    at = "2026-12-01T09:00:00Z"
    conditions = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"jupyter-student-{number}",
            "namespace": "hub",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "resourceVersion": str(number),
            "creationTimestamp": at,
            "labels": {"app": "jupyterhub", "component": "singleuser-server", "hub.jupyter.org/username": f"s{number}"},
            "annotations": {"hub.jupyter.org/username": f"student-{number}"},
            "managedFields": [
                {
                    "manager": manager,
                    "operation": "Update",
                    "apiVersion": "v1",
                    "time": at,
                    "fieldsType": "FieldsV1",
                    "fieldsV1": fields,
                }
                for manager in ("OpenAPI-Generator", "kubelet")
            ],
        },
        "spec": {
            "nodeName": f"ip-10-0-{number // 250 % 250}-{number % 250}.us-west-2.compute.internal",
            "schedulerName": "default-scheduler",
            "serviceAccountName": "default",
            "terminationGracePeriodSeconds": 30,
            "priority": 0,
            "nodeSelector": {"hub.jupyter.org/node-purpose": "user"},
            "tolerations": [
                {"key": "hub.jupyter.org/dedicated", "operator": "Equal", "value": "user", "effect": "NoSchedule"},
                {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute"},
            ],
            "containers": [container],
            "volumes": [{"name": "home", "persistentVolumeClaim": {"claimName": "home-nfs"}}],
        },
        "status": {
            "phase": "Running",
            "podIP": "10.0.0.1",
            "startTime": at,
            "conditions": [{"type": name, "status": "True", "lastTransitionTime": at} for name in conditions],
            "containerStatuses": [
                {
                    "name": "notebook",
                    "ready": True,
                    "restartCount": 0,
                    "image": "example.com/hub/user:2026-12-01",
                    "imageID": "example.com/hub/user@sha256:0",
                    "state": {"running": {"startedAt": at}},
                }
            ],
        },
    }


def _kept(pod: Any) -> tuple[Any, ...]:
    return (
        pod.metadata.uid,
        pod.metadata.name,
        pod.metadata.namespace,
        pod.metadata.labels,
        pod.spec.node_name,
        [container.resources.requests for container in pod.spec.containers],
        [(toleration.key, toleration.value) for toleration in pod.spec.tolerations],
        pod.spec.node_selector,
        pod.metadata.creation_timestamp,
    )


def _client(endpoint: str, ca_file: Path) -> Any:
    import kubernetes.client

    configuration = kubernetes.client.Configuration(host=endpoint, api_key={"authorization": "Bearer token"})
    configuration.ssl_ca_cert = str(ca_file)
    return kubernetes.client.ApiClient(configuration)


def _continued(token: str | None) -> dict[str, str]:
    return {"_continue": token} if token else {}


def _page_number(query: Any) -> int:
    return int(query.get("continue") or 0) // PAGE_PODS


def _resident_mib() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def _peak_mib() -> float:
    """The kernel's high-water mark since exec; getrusage would count the parent that forked us."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def _medians(way: str, endpoint: str, ca_file: str) -> dict[str, float]:
    _fresh_process(way, endpoint, ca_file)  # writes the bytecode that the others find
    results = [_fresh_process(way, endpoint, ca_file) for _ in range(RUNS)]
    medians = {name: round(statistics.median(result[name] for result in results), 3) for name in results[0]}
    with tempfile.TemporaryDirectory() as no_bytecode:
        bare = _fresh_process(way, endpoint, ca_file, PYTHONPYCACHEPREFIX=no_bytecode, PYTHONDONTWRITEBYTECODE="1")
    return medians | {"import_seconds_without_bytecode": round(bare["import_seconds"], 3)}


def _fresh_process(way: str, endpoint: str, ca_file: str, **environment: str) -> dict[str, float]:
    finished = subprocess.run(
        [sys.executable, "-m", "bench.kubernetes_client", "--measure", way, endpoint, ca_file],
        check=True,
        capture_output=True,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}", **environment},
    )
    result: dict[str, float] = json.loads(finished.stdout)
    return result


def _table(rows: dict[str, dict[str, float]], pods: int) -> str:
    columns = {
        "import s": "import_seconds",
        "import s, no bytecode": "import_seconds_without_bytecode",
        "RSS after import MiB": "import_mib",
        f"list {pods} pods s": "list_seconds",
        "CPU s": "list_cpu_seconds",
        "peak RSS MiB": "peak_mib",
    }
    lines = ["| way | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for way, row in rows.items():
        lines.append(f"| {way} | " + " | ".join(f"{row[name]:.2f}" for name in columns.values()) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
