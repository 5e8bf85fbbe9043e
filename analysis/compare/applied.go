package compare

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/fixes"
	"github.com/datawait/datawait/analysis/internal/phrase"
)

// sign is something seen in the second run that shows that a fix was applied. Several fixes may look alike.
type sign struct {
	fixes []string
	text  string
}

// signs are those that the two runs show, whatever was ranked.
func signs(b, a side) []sign {
	if b.loader == nil || a.loader == nil {
		return nil
	}
	out := argumentSigns(b, a)
	for _, s := range []sign{readSign(b, a), cacheSign(b, a), cpuSign(b, a), coreSign(b, a), workSign(b, a)} {
		if s.text != "" {
			out = append(out, s)
		}
	}
	return out
}

// argumentSigns are read off the loader's call.
func argumentSigns(b, a side) (out []sign) {
	for _, x := range []struct{ argument, up, down string }{
		{"num_workers", fixes.MoreWorkers, fixes.FewerWorkers},
		{"prefetch_factor", fixes.PrefetchFactor, ""},
	} {
		n, known := b.number(x.argument)
		m, also := a.number(x.argument)
		text := fmt.Sprintf("%s is %d instead of %d", x.argument, m, n)
		switch {
		case !known || !also || n == m:
		case m > n:
			out = append(out, sign{[]string{x.up}, text})
		case x.down != "":
			out = append(out, sign{[]string{x.down}, text})
		}
	}
	for _, x := range []struct{ argument, before, after, fix string }{
		{"in_order", "true", "false", fixes.OutOfOrder},
		{"persistent_workers", "false", "true", fixes.PersistentWorkers},
		{"pin_memory", "false", "true", fixes.PinMemory},
	} {
		if b.argument(x.argument) == x.before && a.argument(x.argument) == x.after {
			out = append(out, sign{[]string{x.fix}, x.argument + " is " + plainWord(x.after)})
		}
	}
	return out
}

// How much less of something is the mark of a fix and not of chance.
const (
	fewerReads = 0.75
	lessCPU    = 0.7
)

// readSign: a batch opens fewer files, or makes fewer requests.
func readSign(b, a side) sign {
	x, y := reads(b.loader), reads(a.loader)
	if b.sampleSize(a) || x < 2 || y < 0 || y > fewerReads*x {
		return sign{}
	}
	return sign{[]string{fixes.ShardFiles}, fmt.Sprintf("a batch takes %.3g files or requests instead of %.3g", y, x)}
}

// reads is the larger of both counts, as the fix has it; negative where neither is known.
func reads(l *analysis.Loader) float64 { return max(l.Files.Or(-1), l.Requests.Or(-1)) }

// sampleSize reports whether a batch has another size, so that nothing per batch tells of a fix.
func (s side) sampleSize(o side) bool { return otherBatch(s, o) != "" }

// cacheSign: files are opened where requests were made.
func cacheSign(b, a side) sign {
	before, known := b.loader.Requests.Get()
	after, also := a.loader.Requests.Get()
	opened := a.loader.Files.Or(0) - b.loader.Files.Or(0)
	if b.sampleSize(a) || !known || !also || before < 1 || after > before/2 || opened < 1 {
		return sign{}
	}
	return sign{[]string{fixes.NVMeCache}, fmt.Sprintf("a batch takes %.3g requests instead of %.3g, and opens %.3g local files more", after, before, opened)}
}

// cpuSign: a batch takes less CPU. Many fixes do that, and nothing tells which.
func cpuSign(b, a side) sign {
	x, known := b.loader.CPUSeconds.Get()
	y, also := a.loader.CPUSeconds.Get()
	if b.sampleSize(a) || !known || !also || y > lessCPU*x || x < 1e-3 {
		return sign{}
	}
	ids := []string{fixes.PreprocessOnce, fixes.CheaperDecode, fixes.PrecomputeFeatures, fixes.AugmentOnGPU, fixes.VectorizeCollate, fixes.WorkerThreads, fixes.ArrayDataset}
	return sign{ids, fmt.Sprintf("a batch takes %s of CPU instead of %s", phrase.Duration(y), phrase.Duration(x))}
}

// coreSign: the job may use more cores.
func coreSign(b, a side) sign {
	n, m, known := usable(b, a)
	if !known || m <= n || near(n, m, 0.05) {
		return sign{}
	}
	return sign{[]string{fixes.CPULimit, fixes.CPUAffinity}, fmt.Sprintf("the job may use %.3g cores instead of %.3g", m, n)}
}

// workSign: a step takes less with its batches in memory.
func workSign(b, a side) sign {
	if otherWork(b, a) == "" || a.leg("host-cached").StepSeconds.Or(none0).Value > b.leg("host-cached").StepSeconds.Or(none0).Value {
		return sign{}
	}
	return sign{[]string{fixes.MixedPrecision, fixes.Compile, fixes.OverlapCopy, fixes.RemoveSync, fixes.MoveOffMain}, "a step takes less time with its batches in memory"}
}

// applied is a fix that was applied, and how that is known.
type applied struct {
	fix  analysis.Fix
	seen string
}

// findApplied tells which of the ranked fixes were applied. What cannot be told apart is said, and then nothing is judged.
func findApplied(b, a side, named []string) (found []applied, unclear []string) {
	if len(b.Fixes) == 0 && !b.Model.Trusted && len(named) > 0 {
		return nil, []string{"the run before ranked nothing: " + cmp.Or(b.Model.Reason, "its step could not be explained")}
	}
	if len(named) > 0 {
		for _, id := range named {
			if f, ok := ranked(b, id); ok {
				found = append(found, applied{f, "it was named (--applied)"})
			} else {
				unclear = append(unclear, id+": "+unranked(b, id))
			}
		}
		return found, unclear
	}
	seen := map[string][]string{}
	for _, s := range signs(b, a) {
		could := slices.DeleteFunc(slices.Clone(s.fixes), func(id string) bool { _, ok := ranked(b, id); return !ok })
		switch len(could) {
		case 0:
		case 1:
			seen[could[0]] = append(seen[could[0]], s.text)
		default:
			unclear = append(unclear, s.text+": that may be "+strings.Join(could, " or ")+"; --applied says which")
		}
	}
	for _, f := range b.Fixes {
		if texts := seen[f.ID]; len(texts) > 0 {
			found = append(found, applied{f, strings.Join(texts, "; ")})
		}
	}
	return found, unclear
}

func ranked(b side, id string) (analysis.Fix, bool) {
	i := slices.IndexFunc(b.Fixes, func(f analysis.Fix) bool { return f.ID == id })
	if i < 0 {
		return analysis.Fix{}, false
	}
	return b.Fixes[i], true
}

// unranked says why there is no prediction for a fix.
func unranked(b side, id string) string {
	for _, n := range b.NoHelp {
		if n.ID == id {
			return "the run before said that it wins nothing (" + n.Reason + ")"
		}
	}
	for _, u := range b.Unpriced {
		if u.ID == id {
			return "the run before could not price it (" + u.Reason + ")"
		}
	}
	return "the run before did not rank it"
}
