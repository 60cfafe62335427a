"""Lambda execution environments: one process each, with its role's own credentials, reused while it is warm.

Missing upstream: without AUTH every function runs as the account's root, so GetCallerIdentity cannot tell one
function's role from another's; it inherits the whole environment and site-packages of the launcher; it outlives it.

https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html
https://docs.aws.amazon.com/lambda/latest/dg/configuration-envvars.html#configuration-envvars-runtime
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import queue
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import zipfile
from pathlib import Path
from typing import IO, Any

from localcloud.aws.runtime import END_OF_LOG
from localcloud.aws.upstream import replace, require
from localcloud.aws.wiring import Wiring

LOG_WAIT_SECONDS = 2.0
RUNTIME = Path(__file__).with_name("runtime.py")
# What Lambda's Python runtime brings besides the standard library: the AWS SDK and what it needs.
RUNTIME_PACKAGES = ("boto3", "botocore", "s3transfer", "jmespath", "dateutil", "six", "urllib3")

_extraction = threading.Lock()


class Measured(threading.local):
    """What the last invocation on this thread took; ministack's result dictionary has no place for it."""

    duration_ms: float | None = None
    init_ms: float | None = None
    max_memory_mb: int | None = None
    log_stream: str | None = None

    def clear(self) -> None:
        self.duration_ms = self.init_ms = self.max_memory_mb = self.log_stream = None


measured = Measured()


def install(wiring: Wiring) -> None:
    """Let ministack run Python functions in environments of ours. UpstreamChanged where its pool has changed."""
    from ministack.core import lambda_runtime
    from ministack.services import lambda_svc

    packages = link_runtime_packages(wiring.folder / "runtime-packages")
    lifeline, keep_open = os.pipe()
    os.set_inheritable(keep_open, False)
    environment_class = _environment_class(wiring, packages, lifeline)

    def class_for(config: dict[str, Any]) -> Any:
        return environment_class if config["Runtime"].startswith("python") else upstream_class(config)

    upstream_class = replace(lambda_runtime, "_worker_class_for", "config", class_for)
    require(lambda_runtime, "Worker", "_workers")
    for module in (lambda_runtime, lambda_svc):
        replace(module, "execution_credentials", "config", role_session)
    if upstream_class({"Runtime": "python3.13"}) is not lambda_runtime.Worker:
        raise RuntimeError("ministack runs Python functions in something else than Worker")


def link_runtime_packages(folder: Path) -> Path:
    """A folder with links to the packages of Lambda's runtime alone, for the end of a function's import path."""
    folder.mkdir(parents=True)
    for name in RUNTIME_PACKAGES:
        found = importlib.util.find_spec(name)
        if found is None or found.origin is None:
            raise RuntimeError(f"{name}, a part of Lambda's Python runtime, is not installed")
        origin = Path(found.origin)
        source = origin.parent if origin.name == "__init__.py" else origin
        (folder / source.name).symlink_to(source)
    return folder


def role_session(config: dict[str, Any]) -> dict[str, str]:
    """Fresh credentials of the function's role; the session's name is the function's, as Lambda names it.

    https://docs.aws.amazon.com/lambda/latest/dg/permissions-source-function-arn.html
    """
    from ministack.services import iam, sts

    _, _, _, _, account, role_path = config["Role"].split(":", 5)
    role_name = role_path.rsplit("/", 1)[-1]
    role = iam._roles.get_scoped(account, None, role_name) or {}
    session_name = config["FunctionName"]
    credentials = {
        "AWS_ACCESS_KEY_ID": "ASIA" + secrets.token_hex(8).upper(),
        "AWS_SECRET_ACCESS_KEY": secrets.token_urlsafe(30),
        "AWS_SESSION_TOKEN": secrets.token_urlsafe(120),
    }
    sts.register_session(
        credentials["AWS_ACCESS_KEY_ID"],
        {
            "Arn": f"arn:aws:sts::{account}:assumed-role/{role_name}/{session_name}",
            "UserId": f"{role.get('RoleId', 'AROALOCALCLOUD')}:{session_name}",
            "SecretAccessKey": credentials["AWS_SECRET_ACCESS_KEY"],
            "SessionToken": credentials["AWS_SESSION_TOKEN"],
        },
    )
    return credentials


def extract_code(code_zip: bytes, folder: Path) -> Path:
    """The unpacked zip, shared by the environments of one version of the code: AWS's own work, not the function's."""
    target = folder / hashlib.sha256(code_zip).hexdigest()[:24]
    with _extraction:
        if not target.exists():
            unpacking = Path(tempfile.mkdtemp(dir=folder))
            archive = unpacking / "code.zip"
            archive.write_bytes(code_zip)
            with zipfile.ZipFile(archive) as opened:
                opened.extractall(unpacking / "code")
            (unpacking / "code").rename(target)
            shutil.rmtree(unpacking)
    return target


def function_environment(config: dict[str, Any], code: Path) -> dict[str, str]:
    """All environment variables of a function: its own, then the ones that Lambda reserves."""
    name, version = config["FunctionName"], config.get("Version", "$LATEST")
    logging = config.get("LoggingConfig") or {}
    endpoints = {key: value for key, value in os.environ.items() if key.startswith("AWS_ENDPOINT_URL")}
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "LANG": "en_US.UTF-8",
        "TZ": ":UTC",
        "HOME": tempfile.gettempdir(),
        "TMPDIR": tempfile.gettempdir(),
        **endpoints,
        **(config.get("Environment") or {}).get("Variables", {}),
        "_HANDLER": config["Handler"],
        "AWS_REGION": config["FunctionArn"].split(":")[3],
        "AWS_DEFAULT_REGION": config["FunctionArn"].split(":")[3],
        "AWS_EXECUTION_ENV": f"AWS_Lambda_{config['Runtime']}",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_LAMBDA_FUNCTION_NAME": name,
        "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": str(config.get("MemorySize", 128)),
        "AWS_LAMBDA_FUNCTION_VERSION": version,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand",
        "AWS_LAMBDA_LOG_GROUP_NAME": logging.get("LogGroup") or f"/aws/lambda/{name}",
        "AWS_LAMBDA_LOG_STREAM_NAME": f"{time.strftime('%Y/%m/%d', time.gmtime())}/[{version}]{secrets.token_hex(16)}",
        "LAMBDA_TASK_ROOT": str(code),
        **role_session(config),
    }


def read_log(stderr: IO[str], lines: queue.Queue[str]) -> None:
    """Move an environment's log lines into `lines`; its death ends the log of the invocation at hand."""
    for line in stderr:
        lines.put(line.rstrip("\n"))
    lines.put(END_OF_LOG)


def take_log(lines: queue.Queue[str]) -> str:
    """The log up to the end of the invocation. Upstream waits 50 ms, which a busy machine makes too short."""
    taken = []
    deadline = time.monotonic() + LOG_WAIT_SECONDS
    with contextlib.suppress(queue.Empty):
        while (line := lines.get(timeout=max(0.0, deadline - time.monotonic()))) != END_OF_LOG:
            taken.append(line)
    return "\n".join(taken)


def _environment_class(wiring: Wiring, packages: Path, lifeline: int) -> type:
    from ministack.core.lambda_runtime import Worker

    code_folder = wiring.folder / "code"
    code_folder.mkdir()

    class Environment(Worker):  # type: ignore[misc]  # ministack ships no types
        """ministack's worker with a start of its own: upstream keeps pooling, timeouts and log collection."""

        init_ms: float | None = None
        log_stream: str | None = None

        def _spawn(self) -> None:
            code = extract_code(self.code_zip, code_folder)
            variables = function_environment(self.config, code)
            self.log_stream = variables["AWS_LAMBDA_LOG_STREAM_NAME"]
            process = self._proc = subprocess.Popen(
                [sys.executable, "-I", "-S", "-X", "utf8", str(RUNTIME)],
                cwd=code,
                env={
                    **variables,
                    "_LOCALCLOUD_LIFELINE": str(lifeline),
                    "_LOCALCLOUD_RUNTIME_PACKAGES": str(packages),
                },
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                bufsize=1,
                pass_fds=[lifeline],
            )
            self._stderr_queue: queue.Queue[str] = queue.Queue()
            threading.Thread(target=read_log, args=(process.stderr, self._stderr_queue), daemon=True).start()
            line = process.stdout.readline() if process.stdout else ""
            answer: dict[str, Any] = json.loads(line) if line else {"error": "Runtime exited before it was ready"}
            if answer.get("status") != "ready":
                raise RuntimeError(f"{answer['error']}\n{self._drain_stderr()}")
            self.init_ms = answer["init_ms"]

        def _drain_stderr(self, *_arguments: Any, **_named: Any) -> str:
            return take_log(self._stderr_queue)

        _drain_stderr_bounded = _drain_stderr

        def invoke(self, *arguments: Any, **named: Any) -> dict[str, Any]:
            try:
                response: dict[str, Any] = super().invoke(*arguments, **named)
            finally:
                measured.log_stream = self.log_stream
            measured.duration_ms = response.get("duration_ms")
            measured.max_memory_mb = response.get("max_memory_mb")
            measured.init_ms = self.init_ms if response.get("cold_start") else None
            return response

    return Environment
