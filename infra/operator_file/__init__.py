"""The operator's file, `firstbell.yaml`: read, checked, and resolved for the functions."""

from infra.operator_file.loading import WrongFile, load
from infra.operator_file.models import ClusterEntry, OperatorFile
from infra.operator_file.pools import PoolEntry
from infra.operator_file.resolving import group_name, parse_taint, resolve

__all__ = [
    "ClusterEntry",
    "OperatorFile",
    "PoolEntry",
    "WrongFile",
    "group_name",
    "load",
    "parse_taint",
    "resolve",
]
