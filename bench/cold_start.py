"""What a cold start costs: `python -m bench.cold_start [--json]`.

The bundle is the deployed one, for this machine's Python. Each figure is the median of five fresh, bare interpreters
(`-I -S`, as Lambda's runtime is one), in CPU seconds, which another program on the machine disturbs less than a clock:
`init` imports the handler, which every event pays; `work` is what the first event pays that asks something: the other
imports, the clients, and 500 pods of one node listed and parsed. `sources` are both without the bundle's bytecode.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import zipfile
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RUNS = 5
PODS = 500
CALLED = {
    "prescale": ("firstbell.prescale.service", ("dynamodb", "autoscaling", "ec2", "eks", "sts", "events")),
    "tick": ("firstbell.tick.service", ("dynamodb", "autoscaling", "ec2", "eks", "sts", "events", "sqs")),
    "interruption": (
        "firstbell.interruption.assembly",
        ("sqs", "dynamodb", "autoscaling", "eks", "sts", "events", "elbv2"),
    ),
    "idle": ("firstbell.idle.service", ("dynamodb", "autoscaling", "eks", "sts", "events")),
}
"""Capability -> what its handler imports when there is something to do, and the services that it then calls."""


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--json", action="store_true")
    arguments.add_argument("--measure", nargs=4, metavar=("CAPABILITY", "CODE", "ENDPOINT", "CA_FILE"))
    chosen = arguments.parse_args()
    if chosen.measure:
        print(json.dumps(measure(*chosen.measure)))
        return
    figures = compare()
    print(json.dumps(figures) if chosen.json else table(figures))


def compare() -> dict[str, Any]:
    """Sizes of the bundle, and for each capability the medians."""
    from bench.kubernetes_client import a_pod
    from infra.bundling import bundle
    from infra.operator_file import load, resolve
    from infra.wheels import HOST
    from tests.fakes.api_server import ScriptedApiServer, page

    with ScriptedApiServer() as server, tempfile.TemporaryDirectory() as folder:
        code, ca_file = Path(folder) / "code", Path(folder) / "ca.pem"
        ca_file.write_text(server.ca_data)
        answer = page(a_pod(number) for number in range(PODS))
        server.answer("GET", "/api/v1/pods", lambda request: answer)
        bundle(code, resolve(load(ROOT / "firstbell.yaml"), "hub"), HOST)
        sizes = {"zip_mib": zipped_mib(code, Path(folder) / "code.zip"), "unzipped_mib": unzipped_mib(code)}
        compiled = {name: medians(name, code, server.endpoint, ca_file) for name in CALLED}
        for cache in list(code.rglob("__pycache__")):
            shutil.rmtree(cache)
        sources = {name: medians(name, code, server.endpoint, ca_file) for name in CALLED}
    functions = {
        name: {**compiled[name], "sources_init_s": sources[name]["init_s"], "sources_work_s": sources[name]["work_s"]}
        for name in CALLED
    }
    return {**sizes, "functions": functions}


def measure(capability: str, code: str, endpoint: str, ca_file: str) -> dict[str, float]:
    """In a fresh process that sees nothing but the standard library and the bundle."""
    sys.path.insert(0, code)
    began = cpu_seconds()
    import_module(f"firstbell.{capability}.handler")
    loaded = cpu_seconds()
    service, names = CALLED[capability]
    import_module(service)
    clients = import_module("firstbell.cloud.session").Clients("us-west-2")
    for name in names:
        getattr(clients, name)
    api = import_module("firstbell.cluster.client").ApiServer(
        endpoint, Path(ca_file).read_text(), lambda: "token", lambda: 0.0
    )
    pods = import_module("firstbell.cluster.kubernetes").KubernetesCluster(api).pods_on_node("any")
    worked = cpu_seconds()
    assert len(pods) == PODS
    return {"init_s": loaded - began, "work_s": worked - loaded, "peak_mib": peak_mib()}


def medians(capability: str, code: Path, endpoint: str, ca_file: Path) -> dict[str, float]:
    environment = {
        "PATH": os.environ["PATH"],
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "POWERTOOLS_METRICS_NAMESPACE": "Firstbell",
        "FIRSTBELL_BUS": "bus",
        "FIRSTBELL_LEDGER": "ledger",
        "FIRSTBELL_QUEUE_URL": "http://127.0.0.1/queue",
        "FIRSTBELL_DEAD_LETTER_URL": "http://127.0.0.1/letters",
        "LAMBDA_TASK_ROOT": str(code),
    }
    arguments = ("--measure", capability, str(code), endpoint, str(ca_file))
    command = [sys.executable, "-I", "-S", "-B", __file__, *arguments]
    runs = [
        json.loads(subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout)
        for _ in range(RUNS)
    ]
    return {name: round(statistics.median(run[name] for run in runs), 3) for name in runs[0]}


def cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def peak_mib() -> float:
    """Of this program: getrusage would know its parent's, too (proc(5), VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:")) / 1024


def zipped_mib(code: Path, archive: Path) -> float:
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as opened:
        for path in sorted(code.rglob("*")):
            opened.write(path, path.relative_to(code))
    return round(archive.stat().st_size / 2**20, 1)


def unzipped_mib(code: Path) -> float:
    return round(sum(path.stat().st_size for path in code.rglob("*") if path.is_file()) / 2**20, 1)


def table(figures: dict[str, Any]) -> str:
    names = ("init_s", "work_s", "sources_init_s", "sources_work_s", "peak_mib")
    lines = [f"zip {figures['zip_mib']} MiB, unzipped {figures['unzipped_mib']} MiB"]
    lines.append(f"{'':14}" + "".join(f"{name:>16}" for name in names))
    for capability, row in figures["functions"].items():
        lines.append(f"{capability:14}" + "".join(f"{row[name]:>16}" for name in names))
    return "\n".join(lines)


if __name__ == "__main__":
    main()
