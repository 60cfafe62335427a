"""What runs inside a Lambda execution environment: loads the handler once, then serves one event after the other.

Started by path in a bare interpreter (`python -I -S`), as Lambda's own runtime is: a function sees the standard
library, its own zip and boto3, and nothing of the machine's site-packages, so a dependency missing from the zip fails
here as it would on AWS. Lines of JSON on stdin and stdout are ministack's protocol (`core/lambda_runtime.py`).

https://docs.aws.amazon.com/lambda/latest/dg/lambda-python.html
"""

import importlib
import json
import os
import resource
import sys
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any, TextIO

TRACE = "_X_AMZN_TRACE_ID"
# The last line of an invocation's log, so that the launcher knows when it has read all of it.
END_OF_LOG = "\x04"


class Context:
    """https://docs.aws.amazon.com/lambda/latest/dg/python-context.html"""

    identity = None
    client_context = None

    def __init__(self, request_id: str, arn: str, deadline: float) -> None:
        self.aws_request_id = request_id
        self.invoked_function_arn = arn
        self.function_name = os.environ["AWS_LAMBDA_FUNCTION_NAME"]
        self.function_version = os.environ["AWS_LAMBDA_FUNCTION_VERSION"]
        self.memory_limit_in_mb = os.environ["AWS_LAMBDA_FUNCTION_MEMORY_SIZE"]
        self.log_group_name = os.environ["AWS_LAMBDA_LOG_GROUP_NAME"]
        self.log_stream_name = os.environ["AWS_LAMBDA_LOG_STREAM_NAME"]
        self._deadline = deadline

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self._deadline - time.time()) * 1000))


def die_with_the_cloud(lifeline: int) -> None:
    """The launcher holds the other end of this pipe; that end closes however the launcher dies."""

    def wait() -> None:
        os.read(lifeline, 1)
        os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def take_stdout() -> TextIO:
    """The protocol keeps stdout; whatever the function prints goes to stderr, which is its log."""
    protocol = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return protocol


def load_handler() -> Callable[[Any, Context], Any]:
    module, _, function = os.environ["_HANDLER"].rpartition(".")
    handler: Callable[[Any, Context], Any] = getattr(importlib.import_module(module.replace("/", ".")), function)
    return handler


def serve_event(handler: Callable[[Any, Context], Any], line: str) -> dict[str, Any]:
    message = json.loads(line)
    about = message.get("ctx") or {}
    os.environ.pop(TRACE, None)
    if about.get("trace_id"):
        os.environ[TRACE] = about["trace_id"]
    deadline = time.time() + about["timeout_ms"] / 1000
    context = Context(about["request_id"], about["invoked_function_arn"], deadline)
    started = time.perf_counter()
    try:
        answer: dict[str, Any] = {"status": "ok", "result": json.loads(json.dumps(handler(message["event"], context)))}
    except Exception as raised:  # noqa: BLE001 - whatever a function raises is its answer
        answer = {"status": "error", "error": f"{type(raised).__name__}: {raised}", "trace": traceback.format_exc()}
    answer["duration_ms"] = (time.perf_counter() - started) * 1000
    print(END_OF_LOG, file=sys.stderr, flush=True)
    answer["max_memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    return answer


def main() -> None:
    die_with_the_cloud(int(os.environ.pop("_LOCALCLOUD_LIFELINE")))
    protocol = take_stdout()
    sys.path[:0] = [os.environ["LAMBDA_TASK_ROOT"]]
    sys.path.append(os.environ.pop("_LOCALCLOUD_RUNTIME_PACKAGES"))
    started = time.perf_counter()
    try:
        handler = load_handler()
    except Exception as raised:  # noqa: BLE001 - a handler that cannot be loaded is the function's fault
        traceback.print_exc()
        print(json.dumps({"status": "error", "error": f"{type(raised).__name__}: {raised}"}), file=protocol)
        return
    print(json.dumps({"status": "ready", "init_ms": (time.perf_counter() - started) * 1000}), file=protocol)
    for line in sys.stdin:
        print(json.dumps(serve_event(handler, line)), file=protocol)


if __name__ == "__main__":
    main()
