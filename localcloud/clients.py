"""Clients of a local cloud, as anyone outside the project would make them."""

from __future__ import annotations

from typing import Any

import boto3
from botocore.config import Config
from kubernetes import config as kubernetes_config

from localcloud.cloud import LocalCloud

FLEET_SERVICES = frozenset({"autoscaling", "ec2"})


def aws_client(cloud: LocalCloud, service: str) -> Any:
    """A boto3 client that reaches nothing but the cloud. It is called by several threads, as boto3's clients may be."""
    settings = cloud.environment()
    make: Any = boto3.session.Session(
        aws_access_key_id=settings["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=settings["AWS_SECRET_ACCESS_KEY"],
        region_name=settings["AWS_REGION"],
    ).client
    return make(
        service,
        endpoint_url=cloud.fleet_endpoint if service in FLEET_SERVICES else cloud.aws_endpoint,
        config=Config(proxies={}, s3={"addressing_style": "path"}),
    )


def kubernetes_client(cloud: LocalCloud) -> Any:
    """An ApiClient of the cluster's administrator, for the Kubernetes client's CoreV1Api and the like."""
    make: Any = kubernetes_config.new_client_from_config
    return make(config_file=str(cloud.kubeconfig))
