package main

import (
	"encoding/json"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// source is the server that is chosen at the top.
var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

// tag links the dashboards to one another.
const tag = "datawait"

// json is the dashboard in the classic form, which every Grafana since 10 loads from a file; the form that the SDK prefers does not go back so far.
func (b board) json() ([]byte, error) {
	//lint:ignore SA1019 see above
	d := dashboard.NewDashboardBuilder(b.title).Uid(b.uid).Description(b.about).Tags([]string{tag}).Editable().
		Time("now-6h", "now").Refresh("1m").Timezone("browser").Tooltip(dashboard.DashboardCursorSyncCrosshair).
		Link(dashboard.NewDashboardLinkBuilder("datawait").Type(dashboard.DashboardLinkTypeDashboards).Tags([]string{tag}).AsDropdown(false).
			Placement(dashboard.DashboardLinkPlacementInControlsMenu).IncludeVars(true).KeepTime(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Prometheus").Type("prometheus"))
	for _, v := range b.variables {
		d.WithVariable(v.choice())
	}
	id := uint32(0)
	for _, r := range b.rows {
		id++
		d.WithRow(dashboard.NewRowBuilder(r.title).Id(id))
		for _, p := range r.panels {
			id++
			d.WithPanel(p.drawn(id))
		}
	}
	built, err := d.Build()
	if err != nil {
		return nil, err
	}
	text, err := json.MarshalIndent(built, "", "  ")
	return append(text, '\n'), err
}

// choice offers the values that a label has in the range that is shown.
func (v variable) choice() *dashboard.QueryVariableBuilder {
	query := "label_values(" + v.metric + ", " + v.label + ")"
	c := dashboard.NewQueryVariableBuilder(v.name).Label(v.title).Datasource(source).Definition(query).
		Query(dashboard.StringOrMap{Map: map[string]any{"qryType": 1, "query": query, "refId": "PrometheusVariableQueryEditor-VariableQuery"}}).
		Refresh(dashboard.VariableRefreshOnTimeRangeChanged).Sort(dashboard.VariableSortNaturalAsc).Multi(true)
	if v.all {
		c.IncludeAll(true).AllValue(".*").Current(dashboard.VariableOption{
			Text: dashboard.StringOrArrayOfString{String: cog.ToPtr("All")}, Value: dashboard.StringOrArrayOfString{String: cog.ToPtr("$__all")}})
	}
	return c
}
