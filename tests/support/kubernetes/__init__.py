"""Helm, and the schemas of the Kubernetes kinds that the chart uses."""
