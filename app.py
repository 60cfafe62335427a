"""The CDK app: a stack for each cluster of the operator's file.

Context: `-c file=<path>` reads another operator's file than firstbell.yaml; `-c target=host` bundles the functions for
this machine's Python, which is what the local cloud runs them with.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent
sys.path[:0] = [str(ROOT), str(ROOT / "functions")]
os.environ.setdefault("JSII_SILENCE_WARNING_UNTESTED_NODE_VERSION", "1")

from aws_cdk import App  # noqa: E402

from infra.bundling import CannotBundle  # noqa: E402
from infra.operator_file import WrongFile, load  # noqa: E402
from infra.stack import FirstbellStack  # noqa: E402
from infra.wheels import LAMBDA, TARGETS  # noqa: E402


def main() -> None:
    app = App()
    path = Path(app.node.try_get_context("file") or ROOT / "firstbell.yaml")
    name = app.node.try_get_context("target") or LAMBDA.name
    if name not in TARGETS:
        sys.exit(f"context target: {name!r} is not allowed; allowed: {', '.join(TARGETS)}")
    try:
        file = load(path)
        for cluster in file.clusters:
            FirstbellStack(app, file=file, cluster=cluster, target=TARGETS[name])
    except (WrongFile, CannotBundle) as error:
        sys.exit(str(error))
    app.synth()


if __name__ == "__main__":
    main()
