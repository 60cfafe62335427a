"""What pools cost: prices from a small file, asked for again by a command."""

from __future__ import annotations

import json
from pathlib import Path

from infra.operator_file import load
from infra.prices import load_prices, renewed
from tests.infra import documents
from tests.infra.named_metrics import dashboard
from tests.infra.stacks import synthesize


def test_a_pool_is_priced_where_the_price_of_each_of_its_types_is_known() -> None:
    pools = [
        documents.created(),
        documents.created("rare", create={"instances": [{"type": "x2idn.16xlarge"}]}),
        documents.pool("given"),
    ]
    stack = synthesize(documents.text(documents.cluster(pools=pools, api_server=documents.API_SERVER)))
    money = next(w for w in dashboard(stack)["widgets"] if w["properties"].get("markdown", "").startswith("## Money"))
    assert "Not priced: rare, given." in money["properties"]["markdown"]
    price = load_prices().on_demand("us-west-2", "m5.xlarge")
    expressions = [
        row[0]["expression"]
        for w in dashboard(stack)["widgets"]
        for row in w["properties"].get("metrics", [])
        if isinstance(row[0], dict)
    ]
    assert [e for e in expressions if e.endswith(f"* {price:g}")] == [
        f"RUNNING_SUM(FILL(instances0, 0)) * 5 / 60 * {price:g}",
        f"RUNNING_SUM(FILL(hours0, 0)) * {price:g}",
    ]


def test_prices_are_asked_for_the_types_that_the_file_names(tmp_path: Path) -> None:
    class PriceList:
        def get_products(self, *, ServiceCode: str, Filters: list[dict[str, str]]) -> dict[str, list[str]]:  # noqa: N803
            wanted = {entry["Field"]: entry["Value"] for entry in Filters}
            assert (ServiceCode, wanted["regionCode"], wanted["operatingSystem"]) == ("AmazonEC2", "us-west-2", "Linux")
            terms = {"a": {"priceDimensions": {"b": {"pricePerUnit": {"USD": "0.1920000000"}}}}}
            known = wanted["instanceType"] == "m5.xlarge"
            return {"PriceList": [json.dumps({"terms": {"OnDemand": terms}})] if known else []}

    path = tmp_path / "firstbell.yaml"
    pools = [documents.created(), documents.created("rare", create={"instances": [{"type": "x9.large"}]})]
    path.write_text(documents.text(documents.cluster(pools=pools, api_server=documents.API_SERVER)), encoding="utf-8")
    answer = renewed(PriceList(), load(path), "2026-12-01")
    assert answer["as_of"] == "2026-12-01"
    assert answer["on_demand"] == {"us-west-2": {"m5.xlarge": 0.192}}
