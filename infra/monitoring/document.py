"""docs/metrics.md: every metric and every alarm, from the tables in the code.

python -m infra.monitoring.document write
python -m infra.monitoring.document check    1 where the file is not what the code says
"""

from __future__ import annotations

import sys
from pathlib import Path

from firstbell.telemetry import METRICS, NAMESPACE
from infra.monitoring.conditions import CONDITIONS, Condition

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def text() -> str:
    """The document as it is kept in the repository."""
    return "\n".join([*_introduction(), *_metrics(), "", *_alarms()]) + "\n"


def _introduction() -> list[str]:
    return [
        "# Metrics and alarms",
        "",
        "Written by `python -m infra.monitoring.document write` from `functions/firstbell/telemetry.py` and",
        "`infra/monitoring/conditions.py`; `make check` finds a difference.",
        "",
        f"Namespace `{NAMESPACE}`. Every metric has the dimension `cluster` besides those below, and exactly those: a",
        "query that names others finds nothing. References and instance ids are never dimensions; they are in the logs",
        "(kept for 30 days), where the saved queries under `Firstbell/<cluster>/` find them.",
        "",
        "## Metrics",
        "",
        "| Metric | Unit | Dimensions | Meaning | Alarm |",
        "|---|---|---|---|---|",
    ]


def _metrics() -> list[str]:
    alarms: dict[str, list[str]] = {}
    for condition in CONDITIONS:
        alarms.setdefault(condition.metric, []).append(f"[{condition.name}](#{condition.name})")
    return [
        f"| `{name}` | {metric.unit.value} | {', '.join(metric.dimensions) or '-'} | {metric.meaning} "
        f"| {', '.join(alarms.get(name, ())) or '-'} |"
        for name, metric in METRICS.items()
    ]


def _alarms() -> list[str]:
    lines = [
        "## Alarms",
        "",
        "Named `firstbell-<cluster>-<alarm>`. Those on a metric with dimensions have a contributor for each pool (and",
        "reason), which the notification names. `students-affected` is up while any alarm marked * is. On AWS's own",
        "metrics there are also `signals-lost` and `interruptions-lost` (dead-letter queues), `interruption-waiting`,",
        "and `<function>-errors`, `-throttled` and `-slow`.",
    ]
    for condition in CONDITIONS:
        mark = " *" if condition.students else ""
        lines += ["", f'<a id="{condition.name}"></a>', f"### {condition.name}{mark}", "", _when(condition), ""]
        lines += [f"- What happened: {condition.happened}", f"- What students feel: {condition.felt}"]
        lines += [f"- First: {condition.first}"]
    return lines


def _when(condition: Condition) -> str:
    sign = "<" if condition.when_absent else ">="
    period = "minute" if condition.period_minutes == 1 else f"{condition.period_minutes} minutes"
    when = f"`{condition.statistic}({condition.metric})` {sign} {condition.threshold:g} a {period}, in "
    when += f"{condition.breaching} of {condition.periods}."
    return f"{when} {'Missing data is the alarm.' if condition.when_absent else 'Missing data is well.'}"


def main() -> int:
    match sys.argv[1:]:
        case ["write"]:
            DOCUMENT.write_text(text(), encoding="utf-8")
            return 0
        case ["check"]:
            if DOCUMENT.read_text(encoding="utf-8") == text():
                return 0
            print(f"{DOCUMENT} is not what the code says: python -m infra.monitoring.document write", file=sys.stderr)
            return 1
    print(__doc__, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
