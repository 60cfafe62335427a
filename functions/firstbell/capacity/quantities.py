"""Kubernetes quantities, read exactly and rounded as kube-scheduler rounds them.

Grammar: k8s.io/apimachinery/pkg/api/resource (quantity.go): a decimal number with an SI suffix (n u m k M G T P E), a
binary one (Ki Mi Gi Ti Pi Ei) or a decimal exponent (`129e6`). `1E` is exa, `1E3` an exponent.
"""

from __future__ import annotations

import functools
import math
import re
from fractions import Fraction

from firstbell.errors import FirstbellError

_QUANTITY = re.compile(
    r"\+?(?P<number>[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE](?P<exponent>[+-]?[0-9]{1,3})|(?P<suffix>[numkMGTPE]|[KMGTPE]i)?)"
)
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_LARGEST = 2**63 - 1
"""Kubernetes caps a quantity here; nothing that large is a pod, so we refuse it."""
_LONGEST = 64
"""Characters. A signal is not ours: an exponent or a number of any length would be computed in full."""
_ALLOWED = (
    "allowed is a number from 0 to 2^63-1, plain (2, 0.5, 129e6) or with one suffix of "
    "n u m k M G T P E Ki Mi Gi Ti Pi Ei (256m, 1.5Gi)"
)


class InvalidQuantity(FirstbellError):
    """Not a quantity, or a negative one. Names the value and what is allowed."""

    def __init__(self, value: object) -> None:
        shown = repr(value)
        super().__init__(f"{shown if len(shown) <= _LONGEST else shown[:_LONGEST] + '...'} is no quantity: {_ALLOWED}")


def parse_quantity(value: str | float) -> Fraction:
    """The exact value, in whole units (cores, bytes). Raises InvalidQuantity, whatever `value` is."""
    amount = _parsed(str(value)) if isinstance(value, (str, int, float)) and not isinstance(value, bool) else None
    if amount is None:
        raise InvalidQuantity(value)
    return amount


def whole_units(value: str | float) -> int:
    """Bytes or counts, rounded up (`Quantity.Value()`). Raises InvalidQuantity."""
    return math.ceil(parse_quantity(value))


def cpu_millicores(value: str | float) -> int:
    """Thousandths of a core, rounded up (`Quantity.MilliValue()`). Raises InvalidQuantity."""
    return math.ceil(parse_quantity(value) * 1000)


@functools.lru_cache(maxsize=4096)
def _parsed(text: str) -> Fraction | None:
    """Remembered: 30,000 pods name a few dozen quantities."""
    match = _QUANTITY.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None:
        return None
    suffix = match["suffix"] or ""
    if suffix in _BINARY:
        scale = Fraction(2 ** _BINARY[suffix])
    else:
        scale = Fraction(10) ** (int(match["exponent"]) if match["exponent"] else _DECIMAL[suffix])
    amount = Fraction(match["number"]) * scale
    return amount if amount <= _LARGEST else None
