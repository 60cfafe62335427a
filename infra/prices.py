"""On-demand prices of the instance types that firstbell.yaml names, in a small file that is reviewed like code.

python -m infra.prices renew [firstbell.yaml]    ask the AWS Price List again (needs pricing:GetProducts)
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infra.operator_file import load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from infra.operator_file import OperatorFile

PRICES_FILE = Path(__file__).parent / "prices.json"
SOURCE = "https://aws.amazon.com/ec2/pricing/on-demand/ (Linux, USD an hour)"
PRICE_LIST_REGION = "us-east-1"
"""Where the Price List answers for every region:
https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-the-aws-price-list-bulk-api.html"""


@dataclass(frozen=True, slots=True)
class Prices:
    as_of: str
    _on_demand: Mapping[str, Mapping[str, float]]

    def on_demand(self, region: str, instance_type: str) -> float | None:
        """USD an hour; None where the file does not say."""
        return self._on_demand.get(region, {}).get(instance_type)


def load_prices(path: Path = PRICES_FILE) -> Prices:
    document = json.loads(path.read_text(encoding="utf-8"))
    return Prices(document["as_of"], document["on_demand"])


def types_by_region(file: OperatorFile) -> dict[str, list[str]]:
    """Region -> the types that its pools launch, as far as the file says."""
    found: dict[str, set[str]] = {}
    for cluster in file.clusters:
        for pool in cluster.pools:
            for instance in pool.create.instances if pool.create else []:
                found.setdefault(cluster.region, set()).add(instance.type)
    return {region: sorted(types) for region, types in sorted(found.items())}


def price_of(product: str) -> float:
    """USD an hour of one entry of GetProducts' PriceList."""
    terms = json.loads(product)["terms"]["OnDemand"]
    return next(
        float(dimension["pricePerUnit"]["USD"])
        for term in terms.values()
        for dimension in term["priceDimensions"].values()
    )


def ask(pricing: Any, region: str, instance_type: str) -> float | None:
    """What the Price List says of a shared Linux instance without extra software; None for a type that it lacks."""
    wanted = {
        "regionCode": region,
        "instanceType": instance_type,
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
    }
    filters = [{"Type": "TERM_MATCH", "Field": field, "Value": value} for field, value in wanted.items()]
    products = pricing.get_products(ServiceCode="AmazonEC2", Filters=filters)["PriceList"]
    return price_of(products[0]) if products else None


def renewed(pricing: Any, file: OperatorFile, today: str) -> dict[str, Any]:
    answers = {
        region: {name: price for name in types if (price := ask(pricing, region, name)) is not None}
        for region, types in types_by_region(file).items()
    }
    return {"as_of": today, "source": SOURCE, "on_demand": answers}


def main() -> int:
    if sys.argv[1:2] != ["renew"]:
        print(__doc__, file=sys.stderr)
        return 2
    import boto3

    file = load(Path(sys.argv[2] if len(sys.argv) > 2 else "firstbell.yaml"))
    pricing = boto3.client("pricing", region_name=PRICE_LIST_REGION)
    document = renewed(pricing, file, datetime.now(UTC).date().isoformat())
    PRICES_FILE.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
