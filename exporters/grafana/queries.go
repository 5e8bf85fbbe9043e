package main

import (
	"bytes"
	"fmt"
	"strings"
)

// chosen are the values of the variables when nothing is chosen. The windows are those of a dashboard over an hour that is
// scraped every 15 seconds: Grafana's $__rate_interval is four scrapes (grafana.com/docs/grafana/latest/datasources/prometheus/template-variables).
var chosen = strings.NewReplacer("$__rate_interval", "1m", "$__range", "1h", "$training_namespace", ".*", "$training_job", ".*", "$gpu_uuid", ".*", "$instance", ".*")

// queryList is every query of every panel, one a line, after a line that says whose it is.
func queryList() []byte {
	var list bytes.Buffer
	list.WriteString("# The queries of the dashboards, with everything chosen. Written by go generate.\n")
	for _, b := range boards() {
		for _, r := range b.rows {
			for _, p := range r.panels {
				fmt.Fprintf(&list, "# %s: %s\n", b.uid, p.title)
				for _, q := range p.queries {
					fmt.Fprintln(&list, chosen.Replace(q.expr))
				}
			}
		}
	}
	return list.Bytes()
}
