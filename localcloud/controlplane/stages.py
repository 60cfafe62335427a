"""The kwok configuration: our Stage files with the configured times filled in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

FOLDER = Path(__file__).parent / "stages"

# A class arrives at once, and each of its pods takes five calls; kwok's own default of four at a time would queue them.
# A configuration that names one of these has to name all: kwok fills in no defaults then.
_CONFIGURATION = {
    "apiVersion": "config.kwok.x-k8s.io/v1alpha1",
    "kind": "KwokConfiguration",
    "options": {
        "podPlayStageParallelism": 16,
        "nodePlayStageParallelism": 4,
        "nodeLeaseParallelism": 4,
        "podsOnNodeSyncParallelism": 1,
    },
}

# The event as a kubelet records it (kwok's own event steps have fixed messages and another source).
_EVENT = """\
{{ $container := index .spec.containers 0 }}
apiVersion: v1
kind: Event
metadata:
  name: {{ printf "%s.%s.%s" (trunc 200 .metadata.name) (trunc 8 .metadata.uid) (lower $reason) }}
  namespace: {{ .metadata.namespace }}
type: Normal
reason: {{ $reason }}
message: {{ $message | Quote }}
count: 1
firstTimestamp: {{ Now | Quote }}
lastTimestamp: {{ Now | Quote }}
source: {component: kubelet, host: {{ .spec.nodeName }}}
reportingComponent: kubelet
reportingInstance: {{ .spec.nodeName }}
involvedObject:
  apiVersion: v1
  kind: Pod
  name: {{ .metadata.name }}
  namespace: {{ .metadata.namespace }}
  uid: {{ .metadata.uid }}
  fieldPath: {{ printf "spec.containers{%s}" $container.name | Quote }}
"""


def kwok_configuration(*, image_pull_seconds: float, start_seconds: float) -> str:
    """Return the YAML documents that kwok reads: pods take these times to pull their image and then to start."""
    stages = [stage for file in ("node.yaml", "pod.yaml") for stage in yaml.safe_load_all((FOLDER / file).read_text())]
    delays = {"pod-pulls-image": image_pull_seconds, "pod-starts": start_seconds}
    for stage in stages:
        if stage["metadata"]["name"] in delays:
            stage["spec"]["delay"] = {"durationMilliseconds": round(delays[stage["metadata"]["name"]] * 1000)}
        for step in stage["spec"]["steps"]:
            _fill_in(step, image_pull_seconds)
    return yaml.safe_dump_all([_CONFIGURATION, *stages])


def _fill_in(step: dict[str, Any], image_pull_seconds: float) -> None:
    if "apply" in step:
        template = step["apply"]["template"].replace("IMAGE_PULL_DURATION", f"{image_pull_seconds:.3g}s")
        step["apply"]["template"] = template.replace("EVENT\n", _EVENT)
