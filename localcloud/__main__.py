"""`python -m localcloud up|status|logs|down`: keep a local cloud running beside other work."""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from localcloud.cloud import CloudRuns, LocalCloud, LocalCloudConfig, Occupancy
from localcloud.controlplane.build import BuildFailed
from localcloud.supervision import ChildFailed

POLL_SECONDS = 0.2
DOWN_WITHIN_SECONDS = 60.0
TAIL_LINES = 20


def main() -> int:
    """Run one command; the exit code: 0 done, 1 failed, 3 (status, logs, down) no such cloud runs."""
    parser = argparse.ArgumentParser(prog="python -m localcloud", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="command")
    up_parser = _add(commands, "up", "start a cloud and return when it is ready", up)
    up_parser.add_argument("--boot-seconds", type=float, default=30.0, help="from an instance's launch to its node")
    up_parser.add_argument("--image-pull-seconds", type=float, default=3.0, help="what each pod takes to pull")
    up_parser.add_argument("--foreground", action="store_true", help="stay, and end the cloud with Ctrl-C")
    _add(commands, "status", "say what runs and where", status)
    logs_parser = _add(commands, "logs", "show what the parts have written", logs)
    logs_parser.add_argument("component", nargs="?", help="one part's whole log instead of the end of each")
    _add(commands, "down", "end the cloud", down)
    arguments = parser.parse_args()
    run: Callable[[argparse.Namespace], int] = arguments.run
    return run(arguments)


def _add(
    commands: argparse._SubParsersAction[argparse.ArgumentParser],
    name: str,
    help_line: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=help_line)
    parser.add_argument("--name", default="hub", help="which cloud (default: hub)")
    parser.set_defaults(run=run)
    return parser


def up(arguments: argparse.Namespace) -> int:
    if arguments.foreground:
        return _hold(arguments)
    state_dir = LocalCloudConfig(name=arguments.name).state_dir
    if Occupancy.holder(state_dir) is not None:
        print(f"{arguments.name} runs already")
        return status(arguments)
    state_dir.parent.mkdir(parents=True, exist_ok=True)
    log = state_dir.parent / f"{arguments.name}.log"
    with log.open("wb") as output:
        holder = subprocess.Popen(
            [sys.executable, "-m", "localcloud", *sys.argv[1:], "--foreground"],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        return _follow(holder, log, _ready_file(state_dir))
    except KeyboardInterrupt:
        holder.terminate()
        holder.wait()
        return 130


def _follow(holder: subprocess.Popen[bytes], log: Path, ready: Path) -> int:
    """Pass on what the holder of the cloud says until the cloud is ready or the holder has ended."""
    with log.open() as lines:
        while True:
            ended, is_ready = holder.poll() is not None, _is_ready(ready, holder.pid)
            sys.stdout.write(lines.read())
            sys.stdout.flush()
            if is_ready:
                return 0
            if ended:
                return holder.returncode or 1
            time.sleep(POLL_SECONDS)


def _hold(arguments: argparse.Namespace) -> int:
    """Be the parent of the cloud until a signal or the end of one of its parts."""
    started = time.monotonic()

    def report(line: str) -> None:
        print(f"[{time.monotonic() - started:6.1f} s] {line}", flush=True)

    signal.signal(signal.SIGTERM, signal.default_int_handler)
    config = LocalCloudConfig(
        name=arguments.name, boot_seconds=arguments.boot_seconds, image_pull_seconds=arguments.image_pull_seconds
    )
    try:
        with LocalCloud.start(config, report) as cloud:
            _ready_file(cloud.state_dir).write_text(
                json.dumps({"pid": os.getpid(), "children": {child.name: child.pid for child in cloud.children}})
            )
            report(f"ready: export KUBECONFIG={cloud.kubeconfig} AWS_ENDPOINT_URL={cloud.aws_endpoint}")
            while True:
                cloud.raise_if_any_ended()
                time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        report("ended")
        return 0
    except (BuildFailed, CloudRuns, ChildFailed) as failure:
        print(failure, file=sys.stderr, flush=True)
        return 1


def status(arguments: argparse.Namespace) -> int:
    state_dir = LocalCloudConfig(name=arguments.name).state_dir
    holder = Occupancy.holder(state_dir)
    if holder is None:
        return _not_running(arguments)
    if not _is_ready(_ready_file(state_dir), holder):
        print(f"{arguments.name} is starting (process {holder}); see {state_dir.parent / arguments.name}.log")
        return 0
    wiring = json.loads((state_dir / "cloud.json").read_text())
    endpoints = {
        "kube-apiserver": wiring["kubernetes"]["endpoint"],
        "aws": wiring["aws_endpoint"],
        "fleet": f"{wiring['fleet_endpoint']} (Auto Scaling, EC2)",
    }
    for name, pid in json.loads(_ready_file(state_dir).read_text())["children"].items():
        print(f"{name:24} process {pid:<8} {endpoints.get(name, '')}".rstrip())
    print(f"kubeconfig {wiring['kubernetes']['kubeconfig']}\naudit log  {wiring['audit_log']}")
    return 0


def logs(arguments: argparse.Namespace) -> int:
    folder = LocalCloudConfig(name=arguments.name).state_dir / "logs"
    found = sorted(folder.glob(f"{arguments.component or '*'}.log"))
    if not found:
        print(f"{arguments.name} has written no {arguments.component or 'logs'} in {folder}")
        return 3
    for log in found:
        lines = log.read_text(errors="replace").splitlines()
        print(f"== {log}")
        print("\n".join(lines if arguments.component else lines[-TAIL_LINES:]))
    return 0


def down(arguments: argparse.Namespace) -> int:
    state_dir = LocalCloudConfig(name=arguments.name).state_dir
    holder = Occupancy.holder(state_dir)
    if holder is None:
        return _not_running(arguments)
    os.kill(holder, signal.SIGTERM)
    deadline = time.monotonic() + DOWN_WITHIN_SECONDS
    while Occupancy.holder(state_dir) is not None:
        if time.monotonic() > deadline:
            print(f"process {holder} has not ended within {DOWN_WITHIN_SECONDS:.0f} s: end it with `kill -9 {holder}`")
            return 1
        time.sleep(POLL_SECONDS)
    print(f"{arguments.name} has ended; its logs stay in {state_dir / 'logs'}")
    return 0


def _not_running(arguments: argparse.Namespace) -> int:
    print(f"{arguments.name} does not run: start it with `python -m localcloud up --name {arguments.name}`")
    return 3


def _ready_file(state_dir: Path) -> Path:
    return state_dir / "ready.json"


def _is_ready(ready: Path, holder: int) -> bool:
    """The file counts only if this holder wrote it: an earlier cloud's stays until the next start."""
    try:
        return bool(json.loads(ready.read_text())["pid"] == holder)
    except (FileNotFoundError, json.JSONDecodeError):
        return False


if __name__ == "__main__":
    sys.exit(main())
