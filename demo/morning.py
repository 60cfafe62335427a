"""`python -m demo.morning`: a school morning on the local cloud, with Firstbell on one pool and without it on its twin.

Ends with 0 only if the morning went as promised (`demo.verdict`), and writes the numbers to demo-report.json. The clock
is real; "07:55" and "08:00" are labels.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console

from demo.board import Board, PoolBoard
from demo.story import CLASSES, POOL, TWIN, Morning, WentWrong
from demo.summary import Evidence, side, table
from demo.verdict import Promise, broken, report
from demo.view import View
from localcloud.cloud import CloudRuns, LocalCloud, LocalCloudConfig
from localcloud.controlplane.build import BuildFailed
from localcloud.deploy import DeploymentFailed
from localcloud.supervision import ChildFailed

PLAIN_WIDTH = 120
EXPECTED_TROUBLE = (WentWrong, CloudRuns, BuildFailed, ChildFailed, DeploymentFailed)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m demo.morning", description=__doc__)
    parser.add_argument("--boot-seconds", type=float, default=30.0, help="an instance's way to a Ready node")
    parser.add_argument("--name", default="demo", help="name of the local cloud, whose logs stay in .localcloud/<name>")
    parser.add_argument("--report", type=Path, default=Path("demo-report.json"), help="where the numbers go")
    options = parser.parse_args()
    console = Console() if sys.stdout.isatty() else Console(width=PLAIN_WIDTH)
    options.report.unlink(missing_ok=True)
    board = Board(pools={POOL: PoolBoard(POOL, "announced"), TWIN: PoolBoard(TWIN, "unannounced")})
    try:
        with View(board, console):
            evidence = play(board, LocalCloudConfig(name=options.name, boot_seconds=options.boot_seconds))
    except EXPECTED_TROUBLE as trouble:
        console.print(f"The morning could not be played: {trouble}", markup=False, highlight=False)
        console.print(f"What each part wrote: .localcloud/{options.name}/logs (functions: aws.log)", highlight=False)
        return 1
    except KeyboardInterrupt:
        console.print("Interrupted; the local cloud is down.")
        return 130
    return conclude(evidence, options.report, console)


def play(board: Board, config: LocalCloudConfig) -> Evidence:
    with LocalCloud.start(config, lambda line: board.say("cloud", line)) as cloud:
        morning = Morning(cloud, board)
        morning.prepare()
        return morning.live()


def conclude(evidence: Evidence, path: Path, console: Console) -> int:
    """Print the table, write the report, and say whether the promise held. Returns the exit code."""
    ours, reactive = side(evidence, evidence.announced), side(evidence, evidence.twin)
    console.print(table(evidence))
    path.write_text(json.dumps(report(ours, reactive), indent=2) + "\n")
    promise = Promise(pods=sum(CLASSES.values()), references=list(CLASSES), malformed=1)
    told_ready = [heard.detail["reference"] for heard in evidence.said("Capacity Ready")]
    wrong = broken(promise, ours, reactive, told_ready, evidence.ready_before_class)
    if evidence.disturbed:
        wrong.append(f"somebody deleted or evicted the student's pod {evidence.disturbed}")
    for words in wrong:
        console.print(f"NOT as promised: {words}", markup=False, highlight=False)
    console.print(
        f"The numbers are in {path}." if wrong else f"As promised. The numbers are in {path}.", highlight=False
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
