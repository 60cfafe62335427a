"""What a pod asks for and what a node gives, in the scheduler's own integer units."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class Resources:
    """An amount of every resource that Firstbell places by; absent means zero.

    The units are the scheduler's: kube-scheduler counts CPU in millicores and everything else in whole units,
    rounding a request up (`MilliValue()` and `Value()` of k8s.io/apimachinery/pkg/api/resource.Quantity).
    """

    cpu_millicores: int = 0
    memory_bytes: int = 0
    ephemeral_storage_bytes: int = 0
    pods: int = 0
    gpus: int = 0
    volumes: int = 0
    """CSI volumes that count against the node's attach limit (CSINode `allocatable.count`)."""

    def __add__(self, other: Resources) -> Resources:
        return Resources(*(getattr(self, n) + getattr(other, n) for n in RESOURCE_NAMES))

    def __sub__(self, other: Resources) -> Resources:
        return Resources(*(getattr(self, n) - getattr(other, n) for n in RESOURCE_NAMES))

    def times(self, count: int) -> Resources:
        return Resources(*(getattr(self, n) * count for n in RESOURCE_NAMES))

    def covers(self, request: Resources) -> bool:
        """Whether `request` fits. A resource that is not asked for never refuses, even where we are overcommitted."""
        return (
            (not request.cpu_millicores or request.cpu_millicores <= self.cpu_millicores)
            and (not request.memory_bytes or request.memory_bytes <= self.memory_bytes)
            and (not request.pods or request.pods <= self.pods)
            and (not request.ephemeral_storage_bytes or request.ephemeral_storage_bytes <= self.ephemeral_storage_bytes)
            and (not request.gpus or request.gpus <= self.gpus)
            and (not request.volumes or request.volumes <= self.volumes)
        )


RESOURCE_NAMES: tuple[str, ...] = tuple(f.name for f in fields(Resources))
