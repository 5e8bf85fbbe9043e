package verdict

import (
	"fmt"

	"github.com/datawait/datawait/analysis/internal/phrase"
)

// rankStraggler: one rank waits for its data and the others, whose steps are as long, do not: they wait for it in the exchange of gradients
// (F62, F63; scenario S28). Times of backward or of collectives cannot name it, for those equalise.
func rankStraggler(s *subject) opinion {
	r := s.p.Around.Straggler
	switch {
	case r.Ranks < 2 || !s.waits():
		return opinion{}
	case !r.Straggles():
		return drop(fmt.Sprintf("rank %d waits for %s of its step, the others for %s", r.Rank, phrase.Percent(r.Wait), phrase.Percent(r.Others)))
	}
	share := min(s.gain, r.Wait-r.Others)
	o := find(Verdict{
		Title: fmt.Sprintf("rank %d holds up %s: it waits for its data for %s of a step, they for %s, and all steps are as long as its own", r.Rank,
			phrase.Count(float64(r.Ranks-1), "other rank"), phrase.Percent(r.Wait), phrase.Percent(r.Others)),
		Confidence: s.sure(0.9),
		Evidence: s.build(s.wait()).value("rank", float64(r.Rank), "count", bySteps).value("wait_share_of_rank", r.Wait, "ratio", bySteps).
			value("wait_share_of_others", r.Others, "ratio", bySteps).num("build_of_others_to_its_own", r.Build, "ratio", byBuilds),
		FalsifiedBy: fmt.Sprintf("a run in which rank %d reads what another rank reads now, and steps are no shorter", r.Rank),
	}, share)
	o.weight = s.gain // it says why there are too few workers, or why a store is slow
	return o
}
