package analysis

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/datawait/datawait/analysis/load"
	"github.com/datawait/datawait/analysis/reuse"
	"github.com/datawait/datawait/analysis/stat"
	"github.com/datawait/datawait/probe/unit"
)

// Reads is what the builders of a loader read, told from a sample of the files they opened and the objects they asked for. The numbers
// are of the node on which most was read, for it is a node's cache that would keep it.
type Reads struct {
	Sampled    unit.Maybe[int]  `json:"sampled"`                     // readings in the sample
	NamesShare Ratio            `json:"sampled_names_ratio"`         // of all names
	Names      Est              `json:"names"`                       // different files and objects
	Complete   unit.Maybe[bool] `json:"complete"`                    // hardly any of them was new at the end
	PerEpoch   Ratio            `json:"readings_per_name_and_epoch"` // 1 = each is read once
	Again      Ratio            `json:"read_again_ratio"`            // readings whose name had been read before
	Bytes      Ratio            `json:"bytes_per_reading"`
	SetBytes   Ratio            `json:"set_bytes"` // of all names
	PerReading Est              `json:"seconds_per_reading"`
	PerSecond  Ratio            `json:"bytes_per_second"` // of one builder, once a file is open
	CacheHits  []CacheHits      `json:"cache_hits"`       // of an LRU cache on the node; none before all was read twice
}

// CacheHits is the share of readings that a cache serves once it is warm.
type CacheHits struct {
	SetRatio float64 `json:"set_ratio"` // how much of all names it holds
	Bytes    Ratio   `json:"bytes"`
	Hits     float64 `json:"hits_ratio"`
}

const noReads = "no builder was seen to open a file or to ask for an object"

// cacheSizes are parts of the set for which it is told what a cache hits.
var cacheSizes = []float64{0.1, 0.25, 0.5, 0.75, 0.9, 1}

// reads tells what the crew read; bytes is what it read per batch.
func (b *crew) reads(bytes, files, requests Ratio) Reads {
	r, ok := b.reuse()
	out := Reads{Bytes: perReading(bytes, files, requests)}
	out.PerReading, out.PerSecond = b.cost.split()
	if !ok {
		out.Sampled, out.Complete = unit.None[int](noReads), unit.None[bool](noReads)
		out.NamesShare, out.PerEpoch, out.Again = unit.None[float64](noReads), unit.None[float64](noReads), unit.None[float64](noReads)
		out.Names, out.SetBytes = unit.None[stat.Estimate](noReads), unit.None[float64](noReads)
		return out
	}
	out.Sampled, out.NamesShare = unit.Some(r.Readings), unit.Some(r.Share)
	out.Complete, out.PerEpoch, out.Again = unit.Some(r.Complete), unit.Some(r.PerEpoch), unit.Some(r.Again)
	few := fmt.Sprintf("only %d names are in the sample, too few to tell how many there are", r.Names)
	out.Names, out.SetBytes = unit.None[stat.Estimate](few), unit.None[float64](few)
	names, low, high, ok := r.All()
	if !ok {
		return out
	}
	out.Names = unit.Some(stat.Interval{Value: names, Low: low, High: high}.Estimate(r.Names, stat.GradeB, "sample of names by hash"))
	out.SetBytes = scaledBy(out.Bytes, names)
	for _, part := range cacheSizes {
		if hits, ok := r.Hits(part * names); ok {
			out.CacheHits = append(out.CacheHits, CacheHits{SetRatio: part, Bytes: scaledBy(out.SetBytes, part), Hits: hits})
		}
	}
	return out
}

// reuse studies the node on which most was read.
func (b *crew) reuse() (most reuse.Reuse, ok bool) {
	for _, node := range slices.SortedFunc(maps.Keys(b.samples), func(a, b *load.Node) int { return cmp.Compare(a.Index, b.Index) }) {
		r, read := reuse.Study(b.samples[node])
		if read && float64(r.Readings)/r.Share > float64(most.Readings)/max(most.Share, math.SmallestNonzeroFloat64) {
			most, ok = r, true
		}
	}
	return most, ok
}

func perReading(bytes, files, requests Ratio) Ratio {
	if !bytes.IsKnown() {
		return bytes
	}
	n := files.Or(0) + requests.Or(0)
	if n < 0.01 {
		return unit.None[float64](noReads)
	}
	return scaledBy(bytes, 1/n)
}

func scaledBy(r Ratio, factor float64) Ratio {
	if v, ok := r.Get(); ok {
		return unit.Some(v * factor)
	}
	return r
}

// readCost gathers what batches waited, per file they opened, against the bytes they read from each.
type readCost struct {
	bytes, seconds []float64
	stride         int
	next           int
}

const mostCosts = 8192

// add takes the readings of one process in live time.
func (c *readCost) add(costs *load.Series, keep func(int64) bool) {
	for i := range costs.Len() {
		begin, end, _, files := costs.At(i, load.CostFiles)
		_, _, _, read := costs.At(i, load.CostRChar)
		off, ok := offAt(costs, i)
		if !ok || !(files >= 1) || !(read >= few) || !keep(begin+(end-begin)/2) {
			continue
		}
		if c.next++; c.next <= c.stride {
			continue
		}
		c.next = 0
		c.bytes, c.seconds = append(c.bytes, float64(read)/float64(files)), append(c.seconds, off/float64(files))
		if len(c.bytes) == mostCosts {
			c.thin()
		}
	}
}

// thin keeps every other pair, of those that come as well.
func (c *readCost) thin() {
	for i := range mostCosts / 2 {
		c.bytes[i], c.seconds[i] = c.bytes[2*i], c.seconds[2*i]
	}
	c.bytes, c.seconds = c.bytes[:mostCosts/2], c.seconds[:mostCosts/2]
	c.stride = 2*c.stride + 1
}

const (
	fewestCosts = 30
	surelyRises = 4 // standard errors by which the slope has to differ from none
)

// split fits seconds per file = s + bytes / rate. Both are unknown where files are all of a size: what one costs by itself cannot
// then be told from what its bytes cost.
func (c *readCost) split() (seconds Est, rate Ratio) {
	no := func(why string) (Est, Ratio) { return unit.None[stat.Estimate](why), unit.None[float64](why) }
	n := len(c.bytes)
	if n < fewestCosts {
		return no(fmt.Sprintf("%d batches of which both the files opened and the bytes read were seen; %d are needed", n, fewestCosts))
	}
	mean := 0.0
	for _, v := range c.bytes {
		mean += v / float64(n)
	}
	x := make([]float64, n)
	for i, v := range c.bytes {
		x[i] = v / mean
	}
	line, ok := stat.Fit(x, c.seconds)
	if !ok || line.Slope <= 0 || math.Sqrt(line.R2*float64(n-2)/math.Max(1e-12, 1-line.R2)) < surelyRises {
		return no("the wait does not grow with the bytes of a file beyond chance: files may be alike, or bytes cost next to nothing")
	}
	if line.Zero.High <= 0 {
		return no("large files take longer than their bytes explain")
	}
	zero := line.Zero.Clamp(0, math.Inf(1))
	return unit.Some(zero.Estimate(n, stat.GradeC, "line through off-CPU time and bytes per file")), unit.Some(mean / line.Slope)
}
