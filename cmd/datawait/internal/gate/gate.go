// Package gate decides whether a result has findings that a pipeline should stop for (--fail-on).
//
// It refuses to pass what was not measured: a share that is unknown is an error of its own, neither a finding nor a pass.
package gate

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/datawait/datawait/analysis"
	"github.com/datawait/datawait/analysis/verdict"
)

// Gate is what counts as a finding. The zero Gate counts nothing.
type Gate struct {
	conditions []condition
}

// condition is one item of the list: a share of the step, a verdict, or a verdict from a share on.
type condition struct {
	verdict string  // "" = data wait itself
	share   float64 // 0–1; 0 = any
}

// Verdicts returns the names that --fail-on accepts: one that no report can give would pass for ever.
func Verdicts() []string { return verdict.Given() }

// Parse reads a list such as "30%", "storage-latency,hook-not-loaded" or "epoch-start=5%".
func Parse(list string) (Gate, error) {
	var g Gate
	for item := range strings.SplitSeq(list, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		c, err := parse(item)
		if err != nil {
			return Gate{}, err
		}
		g.conditions = append(g.conditions, c)
	}
	return g, nil
}

func parse(item string) (condition, error) {
	if share, err := parseShare(item); err == nil {
		return condition{share: share}, nil
	}
	name, text, limited := strings.Cut(item, "=")
	if !slices.Contains(Verdicts(), name) {
		return condition{}, fmt.Errorf("%q is neither a share such as 30%% nor the name of a verdict", item)
	}
	c := condition{verdict: name}
	if limited {
		share, err := parseShare(text)
		if err != nil {
			return condition{}, fmt.Errorf("%q: %w", item, err)
		}
		c.share = share
	}
	return c, nil
}

// parseShare reads "30%" or "0.3".
func parseShare(text string) (float64, error) {
	number, percent := strings.CutSuffix(text, "%")
	share, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	if percent {
		share /= 100
	}
	if err != nil || !(share > 0 && share <= 1) {
		return 0, fmt.Errorf("%q is not a share between 0 and 100 %%", text)
	}
	return share, nil
}

// Empty reports whether nothing counts as a finding.
func (g Gate) Empty() bool { return len(g.conditions) == 0 }

// Findings returns a sentence for every condition that the result meets, and an error if one cannot be judged.
func (g Gate) Findings(r *analysis.Result) (found []string, err error) {
	for _, c := range g.conditions {
		sentence, cerr := c.judge(r)
		if cerr != nil && err == nil {
			err = cerr
		}
		if sentence != "" {
			found = append(found, sentence)
		}
	}
	return found, err
}

func (c condition) judge(r *analysis.Result) (string, error) {
	if c.verdict == "" {
		wait, ok := r.Step.DataWaitShare.Get()
		if !ok {
			return "", fmt.Errorf("judging --fail-on %s: the share of data wait is not known", percent(c.share))
		}
		if wait.Value >= c.share {
			return fmt.Sprintf("data wait is %s of a step, at or above %s", percent(wait.Value), percent(c.share)), nil
		}
		return "", nil
	}
	for _, v := range r.Verdicts {
		if v.ID == c.verdict {
			return c.judgeVerdict(v)
		}
	}
	return "", nil
}

func (c condition) judgeVerdict(v analysis.Verdict) (string, error) {
	if c.share == 0 {
		return fmt.Sprintf("%s was found", v.ID), nil
	}
	share, ok := v.Share.Get()
	if !ok {
		return "", fmt.Errorf("judging --fail-on %s=%s: the verdict has no share", v.ID, percent(c.share))
	}
	if share >= c.share {
		return fmt.Sprintf("%s was found with a share of %s, at or above %s", v.ID, percent(share), percent(c.share)), nil
	}
	return "", nil
}

func percent(share float64) string { return strconv.FormatFloat(100*share, 'g', 3, 64) + " %" }
