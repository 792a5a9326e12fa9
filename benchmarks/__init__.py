"""Workloads behind the promises of speed: `make bench`."""
