"""A real Kubernetes control plane (etcd, API server, scheduler, controller manager) with kwok as the kubelets."""
