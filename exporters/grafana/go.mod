module github.com/datawait/datawait/exporters/grafana

go 1.26.8

require github.com/grafana/grafana-foundation-sdk/go v0.0.22
