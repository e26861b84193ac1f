"""Applications as pods of a Kubernetes cluster."""
