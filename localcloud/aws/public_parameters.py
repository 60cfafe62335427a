"""The Parameter Store entries that AWS itself publishes: which machine image an EKS node starts from.

Missing upstream, where nobody publishes them (and PutParameter refuses names of AWS's, rightly). The image ids are made
up: nothing here boots an image.

https://docs.aws.amazon.com/eks/latest/userguide/retrieve-ami-id.html
"""

from __future__ import annotations

import time
import zlib
from itertools import product
from typing import Any

from localcloud.aws.upstream import require

VERSIONS = ("1.32", "1.33", "1.34", "1.35", "1.36")
IMAGES = ("x86_64/standard", "x86_64/nvidia", "arm64/standard")


def install() -> None:
    """Publish them in ministack's own account and region. UpstreamChanged where they are kept elsewhere."""
    from ministack.services import ssm

    require(ssm, "_parameters", "_param_arn")
    for version, image in product(VERSIONS, IMAGES):
        name = f"/aws/service/eks/optimized-ami/{version}/amazon-linux-2023/{image}/recommended/image_id"
        ssm._parameters[name] = record(name, ssm._param_arn(name))


def record(name: str, arn: str) -> dict[str, Any]:
    """A parameter as the store keeps it; its value looks like an image id and stays the same from run to run."""
    image_id = f"ami-{zlib.crc32(name.encode()):017x}"
    return {
        "Name": name,
        "Value": image_id,
        "OriginalValue": image_id,
        "Type": "String",
        "KeyId": "",
        "Version": 1,
        "ARN": arn,
        "LastModifiedDate": time.time(),
        "DataType": "aws:ec2:image",
        "Description": "",
        "Tier": "Standard",
        "AllowedPattern": "",
        "Policies": [],
        "Labels": [],
    }
