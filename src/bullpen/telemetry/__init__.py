"""Seen from outside: turns as OpenTelemetry traces and Prometheus metrics. Loaded only if BULLPEN_TELEMETRY asks."""
