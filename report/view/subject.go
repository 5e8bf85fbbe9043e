package view

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/datawait/datawait/analysis"
)

// subject says what ran: job, ranks and nodes, steps and time, and whether the GPU was real.
func subject(r *analysis.Result) []Phrase {
	out := []Phrase{{jobName(r), true}, {extent(r), false}, {length(r), false}}
	if r.Emulated {
		out = append(out, Phrase{"EMULATED GPU", false})
	}
	return out
}

// when says in UTC when the run began.
func when(r *analysis.Result) string {
	t, ok := r.StartedAt.Get()
	if !ok || t.Year() < 1 || t.Year() > 9999 {
		return ""
	}
	return t.UTC().Format("2006-01-02 15:04") + " UTC"
}

func jobName(r *analysis.Result) string {
	if s := cleanName(r.Job.Name); s != "" {
		return s
	}
	return "unnamed job"
}

func extent(r *analysis.Result) string {
	switch {
	case r.Job.Ranks == 0:
		return "no rank seen"
	case len(r.Nodes) == 0:
		return plural(r.Job.Ranks, "rank")
	}
	return plural(r.Job.Ranks, "rank") + " on " + plural(len(r.Nodes), "node")
}

func length(r *analysis.Result) string {
	steps := "no step seen"
	if n := r.Job.Steps; n > 0 {
		steps = plural(n, "step")
	}
	if wall := seconds(r.Job.WallSeconds); wall.Known {
		return steps + " in " + wall.Text
	}
	return steps + ", length of the run unknown"
}

// banners are what a reader must know before any number: an emulated device, a recording cut short or damaged, predictions withheld,
// counters that contradict themselves, a GPU nobody measured.
func banners(r *analysis.Result) []Banner {
	var out []Banner
	add := func(kind, lead, text string) { out = append(out, Banner{kind, lead, text}) }
	if r.Emulated {
		add("emulated", "Emulated GPU", "The GPU is a program that keeps a log, not hardware. What is said about the input pipeline is real; GPU numbers hold for the emulation only.")
	}
	if r.Quality.Damage.Unfinished {
		add("unfinished", "Cut short", "The recording ends before the run did: the agent was stopped or killed, or the disk was full. Everything up to there is counted, nothing after it.")
	}
	if r.EndedBy.Or("") == "slice" {
		add("slice", "A slice", "The job is watched for longer than this: what came before and after is in other recordings.")
	}
	if text := leftEarly(r.Ranks); text != "" {
		add("left", "A rank ended early", text)
	}
	if text := unread(r.Quality.Damage); text != "" {
		add("damaged", "Damaged", text)
	}
	if reason, bad := untrusted(r); bad {
		add("untrusted", "Counters not trusted", upper(reason))
	} else if reason, none := noSM(r); none {
		add("unmeasured", "Not measured", "SM activity unknown: "+reason+".")
	}
	if reason, held := withheld(r); held && !(len(r.Verdicts) > 0 && blind(r.Verdicts[0].ID)) { // nothing seen is nothing to predict from
		add("withheld", "Predictions withheld", reason)
	}
	return out
}

// untrusted reports counters that contradict themselves.
func untrusted(r *analysis.Result) (string, bool) {
	for _, v := range r.Verdicts {
		if v.ID == "metric-untrusted" {
			return sentence(v.Title), true
		}
	}
	return "", false
}

// noSM reports that SM activity is known for no GPU, and why.
func noSM(r *analysis.Result) (string, bool) {
	if len(r.GPUs) == 0 {
		if why := clause(r.Quality.GPU.Why); why != "" {
			return why, true
		}
		return "no GPU was sampled", true
	}
	why := ""
	for _, g := range r.GPUs {
		if g.SMActiveRatio.IsKnown() {
			return "", false
		}
		if why == "" {
			why = clause(g.SMActiveRatio.Why())
		}
	}
	if why == "" {
		why = "no counter covered it"
	}
	return why, true
}

// withheld reports that predictions are not shown, and why.
func withheld(r *analysis.Result) (string, bool) {
	if r.Model.Trusted {
		return "", false
	}
	if why := sentence(r.Model.Reason); why != "" {
		return upper(why), true
	}
	return "The recorded run could not be reproduced by the model, so no fix is ranked.", true
}

// reproduce gives the commands that make this report again.
func reproduce(r *analysis.Result) []string {
	if len(r.Job.Command) == 0 {
		return nil
	}
	verb := "record"
	if r.Baseline != nil || r.Job.Throwaway {
		verb = "diagnose"
	}
	gpu := ""
	if r.Emulated {
		gpu = " --gpu emulated"
	}
	line := "datawait " + verb + gpu + " -- " + shell(r.Job.Command)
	if n := utf8.RuneCountInString(line); n > shellRunes {
		return []string{"# The command is " + count(n) + " characters long; it stands in the JSON report under job.command."}
	}
	return []string{line}
}

// shell writes a command so that it can be pasted into a shell and means the same.
func shell(command []string) string {
	quoted := make([]string, len(command))
	for i, s := range command {
		quoted[i] = shellWord(s)
	}
	return strings.Join(quoted, " ")
}

// shellWord quotes a word where it must. What cannot be seen is written as an escape in $'…', which bash and zsh read back.
func shellWord(s string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./=:,@%+"
	switch {
	case s != "" && strings.Trim(s, plain) == "":
		return s
	case strings.IndexFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || r == utf8.RuneError }) < 0:
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	body := strconv.QuoteToGraphic(s)
	body = strings.ReplaceAll(body[1:len(body)-1], `\"`, `"`)
	return "$'" + strings.ReplaceAll(body, "'", `\'`) + "'"
}
