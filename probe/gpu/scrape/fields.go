package scrape

import (
	"cmp"
	"math"
)

// field is a value of a GPU that is read from a page.
type field int

const (
	fieldSM field = iota
	fieldEngine
	fieldOccupancy
	fieldTensor
	fieldDRAM
	fieldFP32
	fieldPCIeIn
	fieldPCIeOut
	fieldNVLinkIn
	fieldNVLinkOut
	fieldUtil
	fieldPower
	fieldClock
	fieldMemory
	fieldEnergy
	fieldXid
	fieldTemperature // like energy: shows that a page is new
	fields
)

// profiling is where the fields end that DCGM's profiling module counts.
const profiling = fieldUtil

// meaning is what a metric holds.
type meaning struct {
	field
	scale float64 // to ratios, W, Hz and bytes
	most  float64 // a raw value of this size or more is none: DCGM writes "not known" as 2^31, 2^47 or 2^63 (dcgm_structs.h, DCGM_*_BLANK)
}

// metrics are the names of a page in lower case: the exporter writes the names of its counter list, which are DCGM's, before 4.6 and
// from 4.6 on (dcgm_fields.h), and version 1 had some of its own (dcgm-exporter 1.7, etc/dcgm-exporter).
//
// A byte goes in that the GPU receives: PCIE_RX and NVLINK_RX count on the GPU's side (dcgm_fields.h, 1009 to 1012).
var metrics = map[string]meaning{
	"dcgm_fi_prof_sm_active":               {fieldSM, 1, 100},
	"dcgm_fi_prof_sm_util_ratio":           {fieldSM, 1, 100},
	"dcgm_fi_prof_gr_engine_active":        {fieldEngine, 1, 100},
	"dcgm_fi_prof_gr_engine_util_ratio":    {fieldEngine, 1, 100},
	"dcgm_fi_prof_sm_occupancy":            {fieldOccupancy, 1, 100},
	"dcgm_fi_prof_sm_occupancy_ratio":      {fieldOccupancy, 1, 100},
	"dcgm_fi_prof_pipe_tensor_active":      {fieldTensor, 1, 100},
	"dcgm_fi_prof_tensor_util_ratio":       {fieldTensor, 1, 100},
	"dcgm_fi_prof_dram_active":             {fieldDRAM, 1, 100},
	"dcgm_fi_prof_dram_util_ratio":         {fieldDRAM, 1, 100},
	"dcgm_fi_prof_pipe_fp32_active":        {fieldFP32, 1, 100},
	"dcgm_fi_prof_fp32_util_ratio":         {fieldFP32, 1, 100},
	"dcgm_fi_prof_pcie_rx_bytes":           {fieldPCIeIn, 1, 1e15},
	"dcgm_fi_prof_pcie_tx_bytes":           {fieldPCIeOut, 1, 1e15},
	"dcgm_fi_prof_nvlink_rx_bytes":         {fieldNVLinkIn, 1, 1e15},
	"dcgm_fi_prof_nvlink_tx_bytes":         {fieldNVLinkOut, 1, 1e15},
	"dcgm_fi_dev_gpu_util":                 {fieldUtil, 0.01, 1e4},
	"dcgm_gpu_utilization":                 {fieldUtil, 0.01, 1e4},
	"dcgm_fi_dev_power_usage":              {fieldPower, 1, 1e5},
	"dcgm_power_usage":                     {fieldPower, 1, 1e5},
	"dcgm_fi_dev_sm_clock":                 {fieldClock, 1e6, 1e5},
	"dcgm_sm_clock":                        {fieldClock, 1e6, 1e5},
	"dcgm_fi_dev_fb_used":                  {fieldMemory, 1 << 20, 1e9},
	"dcgm_fb_used":                         {fieldMemory, 1 << 20, 1e9},
	"dcgm_fi_dev_total_energy_consumption": {fieldEnergy, 1, 1e18},
	"dcgm_total_energy_consumption":        {fieldEnergy, 1, 1e18},
	"dcgm_fi_dev_xid_errors":               {fieldXid, 1, 1e6},
	"dcgm_xid_errors":                      {fieldXid, 1, 1e6},
	"dcgm_fi_dev_gpu_temp":                 {fieldTemperature, 1, 1e4},
	"dcgm_gpu_temp":                        {fieldTemperature, 1, 1e4},
}

// longest is the length of the longest name.
var longest = func() (n int) {
	for name := range metrics {
		n = max(n, len(name))
	}
	return n
}()

// of returns the value in its unit, NaN for what cannot be true. A ratio a little above 1 stays: it makes its window untrusted.
func (m meaning) of(raw float64) float64 {
	if !(raw >= 0 && raw < m.most) {
		return math.NaN()
	}
	return raw * m.scale
}

// values are a GPU's, NaN where they are not known.
type values [fields]float64

func unknown() (v values) {
	for i := range v {
		v[i] = math.NaN()
	}
	return v
}

// differ reports whether any of the first values, all with 0, is another one.
func (v *values) differ(other *values, first field) bool {
	for i := range v[:cmp.Or(first, fields)] {
		if v[i] != other[i] && (v[i] == v[i] || other[i] == other[i]) {
			return true
		}
	}
	return false
}

// still reports whether no profiling counter is known to move: those of an idle GPU read 0 again and again.
func (v *values) still() bool {
	for _, one := range v[:profiling] {
		if one > 0 {
			return false
		}
	}
	return true
}

// counted reports whether any value is of the profiling module.
func (v *values) counted() bool {
	for _, one := range v[:profiling] {
		if one == one {
			return true
		}
	}
	return false
}
