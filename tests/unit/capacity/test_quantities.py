from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstbell.capacity.quantities import InvalidQuantity, cpu_millicores, parse_quantity, whole_units


@pytest.mark.parametrize(
    ("text", "exact"),
    [
        ("256m", Fraction(256, 1000)),
        ("3060164198400m", Fraction(30601641984, 10)),
        ("129e6", 129_000_000),
        ("1.5Gi", 3 * 2**29),
        ("500m", Fraction(1, 2)),
        ("0.5", Fraction(1, 2)),
        (".5", Fraction(1, 2)),
        ("2.", 2),
        ("+1", 1),
        ("1E", 10**18),
        ("1E3", 1000),
        ("12e-1", Fraction(12, 10)),
        ("1Ei", 2**60),
        ("7u", Fraction(7, 10**6)),
        ("1n", Fraction(1, 10**9)),
        ("3k", 3000),
        (0, 0),
        (2, 2),
        (0.1, Fraction(1, 10)),
        (1e-05, Fraction(1, 100_000)),
    ],
)
def test_a_quantity_is_read_exactly(text: str | float, exact: Fraction) -> None:
    """Case 48."""
    assert parse_quantity(text) == exact


@pytest.mark.parametrize(
    ("text", "whole", "millicores"),
    [
        ("256m", 1, 256),
        ("3060164198400m", 3_060_164_199, 3_060_164_198_400),
        ("1.5Gi", 3 * 2**29, 3 * 2**29 * 1000),
        ("100.1m", 1, 101),
        ("1n", 1, 1),
        ("0", 0, 0),
    ],
)
def test_a_fraction_of_a_unit_counts_as_a_whole_one(text: str, whole: int, millicores: int) -> None:
    """Case 48: kube-scheduler rounds up, so 0.256 byte is one byte."""
    assert whole_units(text) == whole
    assert cpu_millicores(text) == millicores


@pytest.mark.parametrize(
    "value",
    [
        "", " 1", "1 ", "-1", "-0.5", "1.5.0", "Gi", "1KB", "1K i", "1Mib", "0x10", "1e", "1e1000", "1e99", "9Ei",
        "\uff11", "1_000", "nan", "inf", "9" * 65, True, None, float("nan"), float("inf"), -3, ["1"],
    ],
)  # fmt: skip
def test_what_is_no_quantity_is_refused_by_its_name_and_what_is_allowed(value: object) -> None:
    with pytest.raises(InvalidQuantity, match=r"is no quantity: allowed is .* Gi .*1\.5Gi") as refusal:
        parse_quantity(value)  # type: ignore[arg-type]
    assert repr(value)[:20] in str(refusal.value)
    assert len(str(refusal.value)) < 300


@given(st.integers(0, 10**6), st.sampled_from(["", "m", "k", "M", "Ki", "Mi", "Gi"]))
def test_rounding_up_adds_less_than_one_unit(number: int, suffix: str) -> None:
    exact = parse_quantity(f"{number}{suffix}")
    assert 0 <= whole_units(f"{number}{suffix}") - exact < 1
    assert 0 <= cpu_millicores(f"{number}{suffix}") - exact * 1000 < 1
