package main

import (
	"maps"
	"slices"

	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/heatmap"
	"github.com/grafana/grafana-foundation-sdk/go/prometheus"
	"github.com/grafana/grafana-foundation-sdk/go/stat"
	"github.com/grafana/grafana-foundation-sdk/go/statetimeline"
	"github.com/grafana/grafana-foundation-sdk/go/table"
	"github.com/grafana/grafana-foundation-sdk/go/timeseries"
)

// nothing stands where a number would, and none came.
const nothing = "not measured"

// drawing is a panel that is complete.
type drawing struct {
	dashboard.Panel
	err error
}

func (d drawing) Build() (dashboard.Panel, error) { return d.Panel, d.err }

// drawn makes Grafana's panel: what is of its kind, and what all have.
func (p panel) drawn(id uint32) drawing {
	of, err := p.ofKind().Build()
	if err != nil {
		return drawing{err: err}
	}
	of.Id, of.Title, of.Description, of.Datasource = &id, &p.title, &p.about, &source
	of.GridPos = &dashboard.GridPos{W: p.width, H: p.height}
	if of.FieldConfig == nil {
		of.FieldConfig = dashboard.NewFieldConfigSource()
	}
	of.FieldConfig.Defaults.Unit, of.FieldConfig.Defaults.NoValue = &p.unit, cog.ToPtr(nothing)
	for i := range p.queries {
		target, err := p.target(i).Build()
		if err != nil {
			return drawing{err: err}
		}
		of.Targets = append(of.Targets, target)
	}
	return drawing{Panel: of}
}

func (p panel) ofKind() cog.Builder[dashboard.Panel] {
	switch p.kind {
	case number:
		// The value of now, and not the last one that there was.
		return stat.NewPanelBuilder().GraphMode(common.BigValueGraphModeNone).ColorMode(common.BigValueColorModeNone).Orientation(common.VizOrientationAuto).
			ReduceOptions(common.NewReduceDataOptionsBuilder().Calcs([]string{"last"}).Values(false))
	case grid:
		return p.rows()
	case heat:
		return heatmap.NewPanelBuilder().Calculate(false).YAxis(heatmap.NewYAxisConfigBuilder().Unit(p.unit)).
			CellValues(heatmap.NewCellValuesBuilder().Unit("ops"))
	case onOff:
		return statetimeline.NewPanelBuilder().ShowValue(common.VisibilityModeNever).NeverSpanNulls().
			Mappings([]dashboard.ValueMapping{{ValueMap: &dashboard.ValueMap{Type: dashboard.MappingTypeValueToText, Options: map[string]dashboard.ValueMappingResult{
				"0": {Text: cog.ToPtr("down"), Color: cog.ToPtr("red"), Index: cog.ToPtr(int32(0))},
				"1": {Text: cog.ToPtr("works"), Color: cog.ToPtr("green"), Index: cog.ToPtr(int32(1))},
			}}}})
	}
	return p.overTime()
}

// overTime draws lines. A gap stays a gap.
func (p panel) overTime() *timeseries.PanelBuilder {
	t := timeseries.NewPanelBuilder().Min(0).LineWidth(1).ShowPoints(common.VisibilityModeAuto).SpanNulls(common.BoolOrFloat64{Bool: cog.ToPtr(false)}).
		Legend(common.NewVizLegendOptionsBuilder().ShowLegend(true).DisplayMode(common.LegendDisplayModeList).Placement(common.LegendPlacementBottom).Calcs([]string{})).
		Tooltip(common.NewVizTooltipOptionsBuilder().Mode(common.TooltipDisplayModeMulti).Sort(common.SortOrderDescending))
	if p.most > 0 {
		t.Max(p.most)
	}
	if p.kind == stack {
		t.FillOpacity(70).LineWidth(0).Stacking(common.NewStackingConfigBuilder().Mode(common.StackingModeNormal))
	}
	for _, legend := range slices.Sorted(maps.Keys(p.colors)) {
		t.OverrideByName(legend, []dashboard.DynamicConfigValue{{Id: "color", Value: dashboard.FieldColor{Mode: dashboard.FieldColorModeIdFixed, FixedColor: cog.ToPtr(p.colors[legend])}}})
	}
	return t
}

// target is a query as the panel asks it.
func (p panel) target(i int) *prometheus.DataqueryBuilder {
	q := p.queries[i]
	t := prometheus.NewDataqueryBuilder().Expr(q.expr).Datasource(source).EditorMode(prometheus.QueryEditorModeCode).RefId(p.ref(i))
	switch p.kind {
	case number:
		return t.Instant().LegendFormat(q.legend)
	case grid:
		return t.Instant().Format(prometheus.PromQueryFormatTable)
	case heat:
		t.Format(prometheus.PromQueryFormatHeatmap)
	}
	return t.Range().LegendFormat(q.legend)
}

// ref names a query within its panel.
func (p panel) ref(i int) string { return string(rune('A' + i)) }

// rows makes a table: labels and values of all queries in one row for each set of labels.
func (p panel) rows() *table.PanelBuilder {
	t := table.NewPanelBuilder()
	if len(p.queries) > 1 {
		t.WithTransformation(dashboard.DataTransformerConfig{Id: "merge", Options: map[string]any{}})
	}
	names := map[string]string{}
	for i, q := range p.queries {
		names[q.legend] = p.value(i)
	}
	index, rename, exclude := map[string]int{}, map[string]string{}, map[string]bool{"Time": true}
	for i, c := range p.columns {
		name := c.name
		if value, ok := names[name]; ok {
			name = value
			delete(names, c.name)
		}
		index[name], rename[name] = i, c.title
		p.column(t, c)
	}
	for _, value := range names {
		exclude[value] = true
	}
	return t.WithTransformation(dashboard.DataTransformerConfig{Id: "organize", Options: map[string]any{
		"indexByName": index, "renameByName": rename, "excludeByName": exclude}})
}

// value is what Grafana calls the column of a query's values (transformV2 in its Prometheus data source, getValueText).
func (p panel) value(i int) string {
	if len(p.queries) == 1 {
		return "Value"
	}
	return "Value #" + p.ref(i)
}

// column gives a column its unit, sorts by the first number, and leads from a job to its dashboard.
func (p panel) column(t *table.PanelBuilder, c column) {
	if c.unit != "" {
		t.OverrideByName(c.title, []dashboard.DynamicConfigValue{{Id: "unit", Value: c.unit}})
		if c == p.firstNumber() {
			t.SortBy([]cog.Builder[common.TableSortByFieldState]{common.NewTableSortByFieldStateBuilder().DisplayName(c.title).Desc(true)})
		}
	}
	if c.name == "training_job" && p.has("training_namespace") {
		t.OverrideByName(c.title, []dashboard.DynamicConfigValue{{Id: "links", Value: []map[string]any{{"title": "Open the job", "url": toJob}}}})
	}
}

// Grafana escapes what it puts into a link (github.com/grafana/grafana/issues/26861, since 9.0).
const toJob = "/d/datawait-job?var-datasource=${datasource}&var-training_job=${__data.fields.Job}&var-training_namespace=${__data.fields.Namespace}&${__url_time_range}"

func (p panel) firstNumber() column {
	for _, c := range p.columns {
		if c.unit != "" {
			return c
		}
	}
	return column{}
}

func (p panel) has(name string) bool {
	for _, c := range p.columns {
		if c.name == name {
			return true
		}
	}
	return false
}
