"""Spans of traces in OpenTelemetry's format. Modules of this folder are imported only while tracing is on."""
