"""What a function logs, in CloudWatch Logs: one stream an environment, and reports with real figures.

Wrong upstream: each invocation gets a stream of its own that `context.log_stream_name` does not name, the report's
duration includes the start of the environment, and its memory is the launcher's.

https://docs.aws.amazon.com/lambda/latest/dg/python-logging.html
"""

from __future__ import annotations

import time
from typing import Any

from localcloud.aws.environments import measured
from localcloud.aws.metrics import store_embedded
from localcloud.aws.upstream import replace, require


def install() -> None:
    """Replace ministack's writing of function logs. UpstreamChanged where its log store has changed."""
    from ministack.services import cloudwatch_logs, lambda_svc

    require(cloudwatch_logs, "_log_groups", "_append_log_events", "_create_log_group", "_create_log_stream")
    replace(lambda_svc, "_emit_lambda_logs", "func request_id log_text error duration_ms log_source", write_logs)


def write_logs(
    func: dict[str, Any],
    request_id: str,
    log_text: str,
    error: bool,  # noqa: ARG001 - ministack's signature; the log itself says what failed
    duration_ms: float,
    *,
    log_source: str | None = None,  # noqa: ARG001 - likewise: nothing runs in containers here
) -> None:
    """Write one invocation's lines; metrics embedded in them are stored as CloudWatch does."""
    from ministack.services import cloudwatch_logs

    config = func.get("config") or func
    group_name = (config.get("LoggingConfig") or {}).get("LogGroup") or f"/aws/lambda/{config['FunctionName']}"
    stream_name = measured.log_stream or "unstarted"
    group = cloudwatch_logs._log_groups.get(group_name)
    if group is None:
        cloudwatch_logs._create_log_group({"logGroupName": group_name})
        group = cloudwatch_logs._log_groups[group_name]
    if stream_name not in group["streams"]:
        cloudwatch_logs._create_log_stream({"logGroupName": group_name, "logStreamName": stream_name})
    lines = [
        f"START RequestId: {request_id} Version: {config.get('Version', '$LATEST')}",
        *log_text.splitlines(),
        f"END RequestId: {request_id}",
        report(request_id, config, duration_ms),
    ]
    now_ms = int(time.time() * 1000)
    events = [{"timestamp": now_ms, "message": line, "ingestionTime": now_ms} for line in lines]
    cloudwatch_logs._append_log_events(group["streams"][stream_name], events)
    for line in lines:
        store_embedded(line)


def report(request_id: str, config: dict[str, Any], duration_ms: float) -> str:
    duration_ms = measured.duration_ms or duration_ms
    parts = [
        f"REPORT RequestId: {request_id}",
        f"Duration: {duration_ms:.2f} ms",
        f"Billed Duration: {int(duration_ms) + 1} ms",
        f"Memory Size: {config.get('MemorySize', 128)} MB",
        f"Max Memory Used: {measured.max_memory_mb or 0} MB",
    ]
    if measured.init_ms is not None:
        parts.append(f"Init Duration: {measured.init_ms:.2f} ms")
    return "\t".join(parts)
