package verdict

import (
	"fmt"
	"time"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// soon is the time to the end of memory from which growth is worth a word: nobody's training runs longer without a look.
const soon = 7 * 24 * time.Hour

// memoryGrowth: workers take memory with every batch and do not give it back (F68; scenario S30). It slows nothing down until it ends the job.
func memoryGrowth(s *subject) opinion {
	g := s.p.Around.Growth
	left, ok := g.Left.Get()
	if g.Workers == 0 || !(g.Rate > 0) || !ok {
		return opinion{}
	}
	seconds := left / g.Rate
	if seconds > soon.Seconds() {
		return drop(fmt.Sprintf("workers grow by %s a minute, and memory lasts for more than a week of it", megabytes(60*g.Rate)))
	}
	o := find(Verdict{
		Title: fmt.Sprintf("%s grew by %s a minute together; what is left of the memory, %s, lasts for about %s", phrase.Workers(g.Workers), megabytes(60*g.Rate),
			megabytes(left), lasts(seconds)),
		Confidence:  0.7,
		Evidence:    evidence{}.value("bytes_per_batch_kept", g.PerBatch, "bytes", byHost).value("bytes_per_second_kept", g.Rate, "bytes", byHost).value("memory_left_bytes", left, "bytes", byHost).value("seconds_to_the_limit", seconds, "seconds", byHost),
		FalsifiedBy: "a longer run whose workers stop growing",
	}, 0)
	o.verdict.Share = noShare("it takes no time from a step until memory is gone")
	o.weight = 1.2 * Notable // after every problem of the step that counts, before compute
	return o
}

func lasts(seconds float64) string {
	if seconds < 2*3600 {
		return fmt.Sprintf("%.0f minutes", seconds/60)
	}
	return fmt.Sprintf("%.0f hours", seconds/3600)
}
