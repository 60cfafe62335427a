"""What one run of prescale takes of memory and CPU on a large cluster: 1,000 nodes and 30,000 pods, a page at a time.

    python -m bench.prescale_memory [--nodes N] [--pods N] [--json]

A process of its own imports what the function imports, makes its AWS clients, reads the cluster from an HTTPS server on
the loopback and sizes the pool for a class. Ends with 1 if its peak of resident memory is above what the design allows.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench.kubernetes_client import ROOT, a_pod

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.api_server import Answer, Request

NODES = 1_000
PODS = 30_000
ALLOWED_MIB = 256
GIB = 2**30
IMAGES = 50
"""What kubelet reports of its images by default (nodeStatusMaxImages)."""


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--nodes", type=int, default=NODES)
    arguments.add_argument("--pods", type=int, default=PODS)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--measure", nargs=2, metavar=("ENDPOINT", "CA_FILE"), help=argparse.SUPPRESS)
    chosen = arguments.parse_args()
    if chosen.measure:
        print(json.dumps(measure(*chosen.measure)))
        return 0
    measured = run_apart(chosen.nodes, chosen.pods)
    if chosen.json:
        print(json.dumps(measured))
    else:
        print(
            f"{measured['nodes']:.0f} nodes, {measured['pods']:.0f} pods: peak {measured['peak_mib']:.0f} MiB "
            f"(allowed {ALLOWED_MIB}), of which {measured['imported_mib']:.0f} before the cluster was read; "
            f"{measured['cpu_seconds']:.1f} s of CPU, {measured['plan_milliseconds']:.0f} ms of it to size the pool"
        )
    return 0 if measured["peak_mib"] <= ALLOWED_MIB else 1


def run_apart(nodes: int, pods: int) -> dict[str, float]:
    """What a fresh process measures of itself; objects are made as they are asked for, so that none waits in memory."""
    from tests.fakes.api_server import ScriptedApiServer

    with ScriptedApiServer() as server, tempfile.NamedTemporaryFile("w", suffix=".pem") as ca_file:
        ca_file.write(server.ca_data)
        ca_file.flush()
        server.answer("GET", "/api/v1/nodes", _pages(a_node, nodes))
        server.answer("GET", "/api/v1/pods", _pages(lambda number: _on_node(number, nodes), pods))
        for path in ("/apis/storage.k8s.io/v1/csinodes", "/api/v1/persistentvolumes", "/apis/apps/v1/daemonsets"):
            server.answer("GET", path, _pages(a_pod, 0))
        finished = subprocess.run(
            [sys.executable, "-m", "bench.prescale_memory", "--measure", server.endpoint, ca_file.name],
            check=True,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'functions'}", **_NO_ACCOUNT},
        )
    measured: dict[str, float] = json.loads(finished.stdout)
    return measured


_NO_ACCOUNT = {"AWS_DEFAULT_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": "none", "AWS_SECRET_ACCESS_KEY": "none"}


def measure(endpoint: str, ca_file: str) -> dict[str, float]:
    """In the fresh process."""
    import firstbell.prescale.handler
    from firstbell.capacity.demand import pool_demand
    from firstbell.capacity.density import NodeShape
    from firstbell.capacity.groups import Group, Member
    from firstbell.capacity.pool_state import PoolState
    from firstbell.capacity.pools import Pool
    from firstbell.capacity.reservations import Reservation
    from firstbell.capacity.resources import Resources
    from firstbell.capacity.sizing import plan_size
    from firstbell.cloud.session import Clients
    from firstbell.cluster.client import ApiServer
    from firstbell.cluster.kubernetes import KubernetesCluster
    from firstbell.reconcile.reading import ClusterReading
    from firstbell.settings import Cluster

    assert firstbell.prescale.handler
    clients = Clients()
    for service in ("autoscaling", "dynamodb", "ec2", "eks", "events", "sts"):
        getattr(clients, service)
    imported_mib = _peak_mib()
    began = time.process_time()
    api = ApiServer(endpoint, Path(ca_file).read_text(), lambda: "token", time.time)
    selector = {"hub.jupyter.org/node-purpose": "user"}
    pool = Pool("notebook", Resources(500, 2 * GIB, pods=1), labels=selector, group="asg-notebook")
    reading = ClusterReading(lambda: KubernetesCluster(api), Cluster("hub", "us-west-2", "notebook", (pool,)))
    members = tuple(Member(f"i-{n:017x}", "InService", "m5.4xlarge", "us-west-2a") for n in range(NODES))
    group = Group("asg-notebook", len(members), 0, 2 * NODES, members, zones=("us-west-2a",))
    now = time.time()
    seen = reading.of_pool(pool, group, expected_overhead={}, now=now)
    assert seen.sight.known, reading.failure
    classes = Reservation("bio101", "notebook", 10_000, pool.pod, now, now + 3600, now, now, "teachers")
    demand = pool_demand(pool, [classes], bound=seen.bound, pending=seen.pending, lead_seconds=300)
    shape = NodeShape("m5.4xlarge", Resources(15890, 59 * GIB, pods=234))
    plan_began = time.process_time()
    plan = plan_size(pool, group, PoolState(), seen.sight, demand, [classes], [shape], failing=False, now=now)
    assert "bio101" in plan.coverage
    return {
        "nodes": len(seen.nodes),
        "pods": len(seen.bound) + len(seen.pending),
        "imported_mib": imported_mib,
        "peak_mib": _peak_mib(),
        "plan_milliseconds": (time.process_time() - plan_began) * 1000,
        "cpu_seconds": time.process_time() - began,
    }


def _pages(made: Callable[[int], dict[str, Any]], count: int) -> Callable[[Request], Answer]:
    """Answers with the page that is asked for, of as many objects as the client's limit says."""

    def answer(request: Request) -> Answer:
        from tests.fakes.api_server import page

        start, limit = int(request.query.get("continue") or 0), int(request.query["limit"])
        end = min(count, start + limit)
        return page((made(number) for number in range(start, end)), more=str(end) if end < count else "")

    return answer


def a_node(number: int) -> dict[str, Any]:
    """A node of the size that the API server sends: some 20 KB, most of it the images."""
    name = f"ip-10-0-{number // 250}-{number % 250}.us-west-2.compute.internal"
    digest = "@sha256:" + "0" * 64
    images = [
        {"names": [f"example.com/{n}/image{digest}", f"example.com/{n}/image:2026"], "sizeBytes": n}
        for n in range(IMAGES)
    ]
    return {
        "metadata": {
            "name": name,
            "labels": {
                "hub.jupyter.org/node-purpose": "user",
                "node.kubernetes.io/instance-type": "m5.4xlarge",
                "topology.kubernetes.io/zone": "us-west-2a",
                "kubernetes.io/hostname": name,
                **{f"example.com/label-{n}": f"value-{n}" for n in range(15)},
            },
            "annotations": {f"example.com/annotation-{n}": "x" * 60 for n in range(5)},
            "creationTimestamp": "2026-12-01T07:00:00Z",
            "resourceVersion": str(number),
        },
        "spec": {"providerID": f"aws:///us-west-2a/i-{number:017x}"},
        "status": {
            "allocatable": {"cpu": "15890m", "memory": "59Gi", "pods": "234", "ephemeral-storage": "18Gi"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-12-01T07:01:00Z"}],
            "images": images,
        },
    }


def _on_node(number: int, nodes: int) -> dict[str, Any]:
    """A notebook pod on one of the nodes, and every thirtieth without one."""
    made = a_pod(number)
    on = number % nodes
    made["spec"]["nodeName"] = "" if number % 30 == 0 else f"ip-10-0-{on // 250}-{on % 250}.us-west-2.compute.internal"
    made["status"]["phase"] = "Running" if made["spec"]["nodeName"] else "Pending"
    return made


def _peak_mib() -> float:
    """The kernel's high-water mark since exec."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


if __name__ == "__main__":
    sys.exit(main())
