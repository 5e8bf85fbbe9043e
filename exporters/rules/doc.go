// Package rules holds the alerts that are shipped with datawait: plain rule files for Prometheus (datawait.rules.yml) and a runbook.
// There is no code in it; its tests hold the rules to the metrics that are exported (exporters/prometheus/METRICS.md), to the runbook,
// and, by promtool, to the time series of testdata.
package rules
