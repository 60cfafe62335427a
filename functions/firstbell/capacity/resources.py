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
        return Resources(  # written out, as in what follows: a plan for 1,000 nodes comes here 20,000 times
            self.cpu_millicores + other.cpu_millicores,
            self.memory_bytes + other.memory_bytes,
            self.ephemeral_storage_bytes + other.ephemeral_storage_bytes,
            self.pods + other.pods,
            self.gpus + other.gpus,
            self.volumes + other.volumes,
        )

    def __sub__(self, other: Resources) -> Resources:
        return Resources(
            self.cpu_millicores - other.cpu_millicores,
            self.memory_bytes - other.memory_bytes,
            self.ephemeral_storage_bytes - other.ephemeral_storage_bytes,
            self.pods - other.pods,
            self.gpus - other.gpus,
            self.volumes - other.volumes,
        )

    def times(self, count: int) -> Resources:
        return Resources(
            self.cpu_millicores * count,
            self.memory_bytes * count,
            self.ephemeral_storage_bytes * count,
            self.pods * count,
            self.gpus * count,
            self.volumes * count,
        )

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
