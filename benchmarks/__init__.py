"""The measurements of docs/benchmarks.md: `make bench` runs them all and writes that page."""
