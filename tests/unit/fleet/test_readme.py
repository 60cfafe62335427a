"""The behaviour table does not drift from the tests that it names."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
ROW = re.compile(r"^\| (?P<page>[^|]+) \| (?P<rule>[^|]+) \| (?P<test>test_\w+) \|$", re.MULTILINE)


def test_every_row_of_the_behaviour_table_names_a_page_a_rule_and_a_test_that_exists() -> None:
    rows = list(ROW.finditer((ROOT / "localcloud" / "README.md").read_text()))
    assert len(rows) > 50
    files = (ROOT / "tests" / "functional" / "fleet").glob("test_*.py")
    tests = set(re.findall(r"^def (test_\w+)", "\n".join(file.read_text() for file in files), re.MULTILINE))
    assert [row["test"] for row in rows if row["test"] not in tests] == []
    for row in rows:
        assert row["page"].strip() == "*ours*" or row["page"].split()[0].startswith(("UG", "API", "EC2", "https://"))
