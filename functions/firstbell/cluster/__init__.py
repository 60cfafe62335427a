"""The Kubernetes API: the only folder that speaks to it. Its door is `kubernetes.KubernetesCluster`."""
