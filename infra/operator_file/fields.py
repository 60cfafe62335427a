"""Field types of the operator's file. Each carries the words that an error and the JSON Schema say it in."""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from datetime import date, time
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field
from pydantic_core import PydanticCustomError, core_schema

from firstbell.capacity.quantities import cpu_millicores, whole_units
from firstbell.errors import FirstbellError

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
    from pydantic.json_schema import JsonSchemaValue

WORDS = "patternErrorMessage"
"""JSON Schema keyword that says what a text may be; editors with a YAML language server show it."""


@dataclass(frozen=True)
class Text:
    """A text of a form: a pattern (of the whole text) and, where that cannot tell, a check.

    The check raises ValueError or FirstbellError.
    """

    words: str
    pattern: str
    check: Callable[[str], object] | None = None
    numbers_too: bool = False
    """Whether YAML may read it as a number (12 digits, `cpu: 2`)."""

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
        checked = core_schema.no_info_after_validator_function(self._checked, handler(source))
        return core_schema.no_info_before_validator_function(self._as_text, checked) if self.numbers_too else checked

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        described = handler(schema)
        described.update({"pattern": f"^(?:{self.pattern})$", WORDS: self.words})
        if self.numbers_too:
            described["type"] = ["string", "number"]
        return described

    def _checked(self, value: str) -> str:
        if not re.fullmatch(self.pattern, value):
            raise PydanticCustomError("wrong_text", "wrong text")
        if self.check is not None:
            try:
                self.check(value)
            except (ValueError, FirstbellError):
                raise PydanticCustomError("wrong_text", "wrong text") from None
        return value

    @staticmethod
    def _as_text(value: object) -> object:
        return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _known_zone(name: str) -> None:
    if name not in zoneinfo.available_timezones():
        raise ValueError(name)


LABEL_NAME = r"[A-Za-z0-9]([A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
LABEL_KEY = rf"([a-z0-9]([a-z0-9.-]{{0,251}}[a-z0-9])?/)?{LABEL_NAME}"
DAYS_OF_WEEK = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_DAY = "|".join(DAYS_OF_WEEK)
_QUANTITY = r"[0-9][0-9.eE+-]*([numkMGTPE]|[KMGTPE]i)?"
ROLE = r"arn:(aws|aws-cn|aws-us-gov):iam::(?P<account>\d{12}):role/[A-Za-z0-9+=,.@_/-]+"

ClusterName = Annotated[
    str, Text("an EKS cluster's name: letters, digits, - and _, at most 100", r"[0-9A-Za-z][\w-]{0,99}")
]
PoolName = Annotated[str, Text("letters, digits, '.' and '-', at most 63, such as notebook-m5-xlarge", LABEL_NAME)]
Region = Annotated[str, Text("an AWS region, such as us-west-2", r"[a-z]{2}(-[a-z]+)+-\d")]
Namespace = Annotated[str, Text("a Kubernetes namespace, such as kube-system", r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")]
Principal = Annotated[
    str, Text("a 12-digit AWS account, or the ARN of an IAM role", rf"\d{{12}}|{ROLE}", numbers_too=True)
]
Source = Annotated[
    str,
    Text(
        "an event source such as edu.example.portal; not aws.* or firstbell*, which are not a portal's",
        r"(?!aws\.|firstbell)[A-Za-z0-9_][\w./-]{0,255}",
    ),
]
PortalName = Annotated[str, Text("letters, digits, '.', '_' and '-', at most 63", LABEL_NAME)]
GroupName = Annotated[str, Text("an Auto Scaling group's name, not its ARN", r"[^:\s][^:]{0,254}")]
HookName = Annotated[str, Text("a lifecycle hook's name", r"[A-Za-z0-9_/-]{1,255}")]
NodegroupName = Annotated[str, Text("a managed node group's name, not its ARN", r"[0-9A-Za-z][\w-]{0,62}")]
LabelKey = Annotated[str, Text("a Kubernetes label key, such as hub.jupyter.org/pool-name", LABEL_KEY)]
LabelValue = Annotated[str, Text("a Kubernetes label value in quotes, at most 63 characters", rf"({LABEL_NAME})?")]
TaintText = Annotated[
    str,
    Text(
        "<key>[=<value>]:NoSchedule, PreferNoSchedule or NoExecute, as kubectl writes a taint",
        rf"{LABEL_KEY}(=({LABEL_NAME})?)?:(NoSchedule|PreferNoSchedule|NoExecute)",
    ),
]
CpuQuantity = Annotated[str, Text("CPUs, such as 500m, 2 or 0.5", _QUANTITY, check=cpu_millicores, numbers_too=True)]
MemoryQuantity = Annotated[
    str, Text("an amount of bytes, such as 2Gi, 512Mi or 1.5Gi", _QUANTITY, check=whole_units, numbers_too=True)
]
VpcId = Annotated[str, Text("a VPC's id, such as vpc-0a1b2c3d", r"vpc-[0-9a-f]{8,17}")]
SubnetId = Annotated[str, Text("a subnet's id, such as subnet-0a1b2c3d", r"subnet-[0-9a-f]{8,17}")]
SecurityGroupId = Annotated[str, Text("a security group's id, such as sg-0a1b2c3d", r"sg-[0-9a-f]{8,17}")]
InstanceType = Annotated[str, Text("an EC2 instance type, such as m5.xlarge", r"[a-z][a-z0-9-]*\.[a-z0-9-]+")]
Ami = Annotated[
    str,
    Text(
        "an image id (ami-...), or a public parameter such as "
        "/aws/service/eks/optimized-ami/1.34/amazon-linux-2023/x86_64/standard/recommended/image_id",
        r"ami-[0-9a-f]{8,17}|/[\w./-]+",
    ),
]
Endpoint = Annotated[str, Text("the cluster's https:// endpoint, as eks describe-cluster says", r"https://[^\s/]+")]
CertificateAuthority = Annotated[
    str, Text("certificateAuthority.data of eks describe-cluster (base64)", r"[A-Za-z0-9+/]+={0,2}")
]
Cidr = Annotated[str, Text("an address block, such as 10.100.0.0/16", r"[0-9a-f:.]+/\d{1,3}")]
Email = Annotated[str, Text("an e-mail address", r"[^@\s]+@[^@\s]+\.[^@\s]+")]
TopicArn = Annotated[
    str, Text("the ARN of an SNS topic", r"arn:(aws|aws-cn|aws-us-gov):sns:[a-z0-9-]+:\d{12}:[\w-]{1,256}")
]
TimeZone = Annotated[
    str, Text("a zone name of the IANA database, such as Europe/Berlin or UTC", r"[A-Za-z0-9_+/-]+", check=_known_zone)
]
Days = Annotated[
    str, Text("days such as Mon-Fri, Sat,Sun or Sun-Fri", rf"({_DAY})(-({_DAY}))?(,({_DAY})(-({_DAY}))?)*")
]
LocalTime = Annotated[
    str, Text("a time of day from 00:00 to 23:59 (to: 00:00 is midnight)", r"\d{2}:\d{2}", check=time.fromisoformat)
]
LocalDate = Annotated[str, Text("a date that exists, as YYYY-MM-DD", r"\d{4}-\d{2}-\d{2}", check=date.fromisoformat)]
LeadMinutes = Annotated[
    Literal["auto"] | Annotated[float, Field(ge=0, le=1440)],
    Field(json_schema_extra={WORDS: "minutes from 0 to 1440, or auto"}),
]


def account_of(principal: str) -> str:
    """The account of an account number or of a role's ARN."""
    role = re.fullmatch(ROLE, principal)
    return role["account"] if role else principal
