package fleet

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// All of what is asked. Plain PromQL: nothing here is newer than Prometheus 2.20, which brought the operator group.
//
// A question is asked about a piece of the time, a day or less, at its end; the answers of pieces are added up. What is exact:
//
//   - The growth of a counter comes from increase(), so a counter that began anew within a piece is seen (Prometheus, "increase").
//     It reads the first and the last value in the piece and extends the slope to the borders of the piece, by one scrape interval
//     at most: where scrapes go on over a border, the pieces on its two sides add up to what happened. A job that begins or ends
//     within a piece is known to half a scrape interval at each end, since its counters begin at 0 and extension never goes below
//     that. What was counted while nobody scraped is seen where the gap lies within a piece; what is counted in a gap over a border
//     of pieces is missed, and such a gap shows in the share of the window that was seen.
//   - A series that ended is not missed: increase() reads what is in the range, whether or not it is still there at its end.
//   - The same counter may be there twice, where two scrape jobs or two replicas read one agent; or one after the other, where an
//     agent was restarted under another name. Added up, the first would count twice; the larger of them alone would lose half of the
//     second. So [QueryOverlap] asks first whether any tenancy has several series in the piece. If so, growth is read in slices of
//     ten minutes, of each slice the largest is taken, and the slices are added: a slice in which an agent was restarted loses
//     at most half of itself, and what was counted in a gap that is longer than a slice is missed.
//   - All of it takes a scrape every few minutes, as Prometheus' own look-back of five minutes does. With fewer, gauges are not seen at
//     every look, and the share of the window that was seen says so.
//   - Gauges are looked at once a minute. A series that nobody ended (its server vanished) is seen for five minutes more.
const (
	// look is how often gauges are looked at: dcgm-exporter renews its values every 30 s (pkg/cmd/app.go, collect-interval).
	look = time.Minute
	// slice is the length in which growth is read where a counter may be there several times.
	slice = 10 * time.Minute
)

// Step divides the borders of every piece: a whole number of looks and of slices lies between two of them.
const Step = slice

// The names of queries, under which [Answers] holds what came back.
const (
	QuerySeen      = "seen"      // seconds of the window in which any GPU was seen
	QueryOverlap   = "overlap"   // the most series of one tenancy
	QueryGPUs      = "gpus"      // what agents say of GPUs
	QueryWatched   = "watched"   // seconds an agent watched each GPU
	QueryAssigned  = "assigned"  // GPUs of which an agent knows whether they are somebody's
	QueryAllocated = "allocated" // seconds, by job and GPU
	QueryAccounts  = "accounts"  // seconds, by job and account
	QueryBound     = "bound"     // seconds of the account unattributed that may be waiting, by job
	QueryCovered   = "covered"   // seconds seen by trustworthy counters, by job
	QueryActive    = "sm_active" // seconds of SM activity, by job
	QueryActiveOf  = "sm_seen"   // seconds in which SM activity was read, by job
	QueryTraining  = "training"  // seconds of the training loop, by job and rank
	QueryWait      = "data_wait" // of them inside next()
	QueryHooked    = "hooked"    // GPUs on whose rank a hook looks, by job
	QueryHolders   = "holders"   // who has the GPUs that are shared
	QueryExporter  = "exporter"  // seconds an exporter named each holder of each GPU
	QueryPresent   = "present"   // seconds an exporter saw each GPU
	QueryHeld      = "held"      // of them with any holder
	QueryShared    = "shared"    // of them with several
	activityOf     = "activity_" // + kind: seconds of activity, by GPU and holder
	activitySeenOf = "read_"     // + kind: seconds in which it was read
	idleOf         = "idle_"     // + kind: seconds in which it was next to nothing
)

// Query is one question.
type Query struct {
	Name  string
	Of    Source // it is asked only where this source has series in the piece
	Flags bool   // the answer is there or not: pieces are joined, not added

	plain  func(piece string) string
	merged func(piece string) string // where a counter may be there several times; nil = as plain
}

// Source is where series come from.
type Source string

// The sources.
const (
	Any      Source = ""
	Agent    Source = "datawait"
	Exporter Source = "dcgm-exporter"
)

// Expr returns the question about a piece that ends at the time of evaluation. severally says that a tenancy has several series.
func (q Query) Expr(piece time.Duration, severally bool) string {
	if severally && q.merged != nil {
		return q.merged(seconds(piece))
	}
	return q.plain(seconds(piece))
}

func seconds(d time.Duration) string { return fmt.Sprintf("%ds", int64(d/time.Second)) }

// tenant is whose time is counted, and device adds the GPU.
const (
	tenant = "training_job, training_namespace, training_pod"
	device = tenant + ", gpu_uuid"
)

// growth sums the growth of a counter by labels. identity is what makes two series the same counter; of one GPU that is its UUID. A
// rank that has none is told apart by the address it was scraped at: on bare hosts two jobs may have one name.
func growth(name, metric, identity, by string) Query {
	return Query{Name: name, Of: Agent,
		plain: func(piece string) string { return fmt.Sprintf("sum by (%s) (increase(%s[%s]))", by, metric, piece) },
		merged: func(piece string) string {
			return fmt.Sprintf("sum by (%s) (sum_over_time((max by (%s) (increase(%s[%s])))%s))", by, identity, metric, seconds(slice), within(piece, slice))
		}}
}

// within is a subquery over a piece. It begins a second later than the piece: Prometheus before 3.0 takes in both ends of a range
// (3.0 migration guide, "Range selectors and lookback exclude samples coinciding with the left boundary"), and a look at the border
// belongs to one piece.
func within(piece string, every time.Duration) string {
	d, err := time.ParseDuration(piece)
	if err != nil {
		panic(err) // seconds wrote it
	}
	return fmt.Sprintf("[%s:%s]", seconds(d-time.Second), seconds(every))
}

// looks counts the seconds in which something was there, once a look.
func looks(name string, of Source, by, what string) Query {
	return Query{Name: name, Of: of, plain: func(piece string) string {
		return fmt.Sprintf("sum by (%s) (%d * count_over_time((%s)%s))", by, int(look.Seconds()), what, within(piece, look))
	}}
}

// flags lists label sets that were there.
func flags(name, by, metric string) Query {
	return Query{Name: name, Of: Agent, Flags: true, plain: func(piece string) string {
		return fmt.Sprintf("group by (%s) (max_over_time(%s[%s]))", by, metric, piece)
	}}
}

// Queries returns all questions, in the order in which they are to be asked: of a source of which the first one finds nothing, the
// others need not be asked.
func Queries() []Query {
	job := "training_job, training_namespace"
	rank := tenant + ", rank, instance"
	return slices.Concat([]Query{
		// For how long any GPU was seen, by an agent or an exporter: what is missing is time that nobody knows of.
		looks(QuerySeen, Any, "", `group({__name__=~"datawait_gpu_info|`+exporterMetrics+`"})`),

		// What agents say of each GPU: a label set was there or not.
		flags(QueryGPUs, "gpu_uuid, name, source, grade, emulated", "datawait_gpu_info"),
		// The most series that one tenancy of one GPU has: more than 1 where it was scraped twice or its agent was restarted.
		{Name: QueryOverlap, Of: Agent, Flags: true, plain: func(piece string) string {
			return fmt.Sprintf("max(count by (%s) (count_over_time(datawait_gpu_allocated_seconds_total[%s])))", device, piece)
		}},
		// For how long an agent watched each GPU, allocated or not.
		looks(QueryWatched, Agent, "gpu_uuid", "group by (gpu_uuid) (datawait_gpu_info)"),
		// Of which GPUs it knows whether they are somebody's: the time of the others is nobody's to call free.
		flags(QueryAssigned, "gpu_uuid", "datawait_gpu_assigned"),
		// Allocated time: the denominator of everything. By GPU, so that no GPU can have more of it than has passed.
		growth(QueryAllocated, "datawait_gpu_allocated_seconds_total", device, job+", gpu_uuid"),
		// Where it went.
		growth(QueryAccounts, "datawait_gpu_account_seconds_total", device+", account", job+", account"),
		// Of account unattributed: the process waited for data, and no device clock says whether the GPU did.
		growth(QueryBound, "datawait_gpu_wait_upper_bound_seconds_total", device, job),
		// Of the allocated time: seen by trustworthy counters.
		growth(QueryCovered, "datawait_gpu_covered_seconds_total", device, job),
		// SM activity is the first divided by the second.
		growth(QueryActive, "datawait_gpu_sm_active_seconds_total", device, job),
		growth(QueryActiveOf, "datawait_gpu_sm_seen_seconds_total", device, job),
		// The wait share of a job or a rank is the second divided by the first.
		growth(QueryTraining, "datawait_training_seconds_total", rank, job+", rank"),
		growth(QueryWait, "datawait_data_wait_seconds_total", rank, job+", rank"),
		// On which GPUs of a job a hook looks: of the others nobody knows whether they waited.
		flags(QueryHooked, job+", gpu_uuid", "datawait_rank_info"),
		// Whose the shared GPUs are; their time is that of the job "(shared)".
		{Name: QueryHolders, Of: Agent, Flags: true, plain: func(piece string) string {
			return fmt.Sprintf(`group by (%s) (max_over_time(datawait_gpu_holder_info[%[2]s])) and on (gpu_uuid) group by (gpu_uuid) (count_over_time(datawait_gpu_allocated_seconds_total{training_job="(shared)"}[%[2]s]))`,
				job+", gpu_uuid", piece)
		}},
	}, exporterQueries())
}

// exporterQueries are about the series of a dcgm-exporter. Its labels differ by version and by how it is scraped; what they mean is
// found out from the answers ([pod], [entity]): PromQL would have to rename them at every look.
func exporterQueries() []Query {
	all, held := byHolder("group", `{__name__=~"`+exporterMetrics+`", %s}`), heldOnly()
	queries := []Query{
		// For how long each GPU was there, and for how long with each holder; without one, the labels are empty.
		looks(QueryPresent, Exporter, gpuLabels, fmt.Sprintf(`group by (%s) ({__name__=~"%s"})`, gpuLabels, exporterMetrics)),
		looks(QueryExporter, Exporter, allLabels, all),
		// For how long with any holder, and with several: an exporter repeats the values of a shared GPU for every pod
		// (dcgm-exporter#587), so they must not be added up.
		looks(QueryHeld, Exporter, gpuLabels, fmt.Sprintf("count by (%s) (%s)", gpuLabels, held)),
		looks(QueryShared, Exporter, gpuLabels, fmt.Sprintf("count by (%s) (%s) > 1", gpuLabels, held)),
	}
	for _, k := range kinds {
		value := byHolder("max", k.metric+"{%s}")
		// Values that cannot be: DCGM writes what it does not know as a huge number (dcgm_structs.h, DCGM_*_BLANK).
		possible := fmt.Sprintf("(%s) <= %g", value, k.whole)
		queries = append(queries,
			Query{Name: activityOf + k.id, Of: Exporter, plain: func(piece string) string {
				return fmt.Sprintf("sum by (%s) (%g * sum_over_time((%s)%s))", allLabels, look.Seconds()/k.whole, possible, within(piece, look))
			}},
			looks(activitySeenOf+k.id, Exporter, allLabels, possible),
			looks(idleOf+k.id, Exporter, allLabels, fmt.Sprintf("(%s) <= %g", value, k.whole*idleBelow)))
	}
	return queries
}

// The labels of an exporter. It calls the GPU UUID, and uuid in old versions; the pod pod, or pod_name in old versions. A server that
// does not honour the labels of targets calls the pod exported_pod, and puts the exporter's own into pod (Prometheus, scrape_config,
// honor_labels): that one is left out, since it changes when the exporter is restarted.
const (
	gpuLabels    = "UUID, uuid, GPU_I_ID"
	renamedPod   = gpuLabels + ", exported_pod, exported_namespace, hpc_job"
	ownPod       = gpuLabels + ", pod, namespace, container, pod_name, pod_namespace, hpc_job"
	allLabels    = ownPod + ", exported_pod, exported_namespace"
	podIsRenamed = `exported_pod!=""`
)

// byHolder groups series by GPU and holder. selector has a place for a matcher.
func byHolder(operator, selector string) string {
	return fmt.Sprintf("%s by (%s) (%s) or %[1]s by (%[4]s) (%[5]s)", operator, renamedPod, fmt.Sprintf(selector, podIsRenamed), ownPod, fmt.Sprintf(selector, `exported_pod=""`))
}

// heldOnly is every GPU with everyone who has it.
func heldOnly() string {
	one := func(by, matchers string) string {
		return fmt.Sprintf(`group by (%s) ({__name__=~"%s", %s})`, by, exporterMetrics, matchers)
	}
	return strings.Join([]string{one(renamedPod, podIsRenamed), one(ownPod, `exported_pod="", pod!="", pod!~"`+itself+`", container!~"`+itself+`"`),
		one(ownPod, `exported_pod="", pod_name!=""`), one(ownPod, `exported_pod="", hpc_job!=""`)}, " or ")
}

// kind is a counter that stands for work, best first.
type kind struct {
	id, metric string
	whole      float64 // the value of a GPU that is busy all the time
}

// kinds: the first is SM activity. A stock exporter does not serve it (dcgm-exporter, etc/default-counters.csv has it commented out);
// the others say that some kernel was there, however small, and are an upper bound of work.
var kinds = []kind{{"sm", "DCGM_FI_PROF_SM_ACTIVE", 1}, {"engine", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", 1}, {"util", "DCGM_FI_DEV_GPU_UTIL", 100}}

// idleBelow is the activity up to which a GPU counts as idle: a job that waits between short steps shows more in 30 s.
const idleBelow = 0.01

// exporterMetrics are names of which an exporter serves at least one for each GPU.
const exporterMetrics = "DCGM_FI_DEV_GPU_TEMP|DCGM_FI_DEV_FB_USED|DCGM_FI_DEV_GPU_UTIL|DCGM_FI_PROF_GR_ENGINE_ACTIVE|DCGM_FI_PROF_SM_ACTIVE"

// itself matches the exporter's own pod: a server that honours an exporter's labels gives a GPU that nobody has those of the target.
const itself = ".*dcgm-exporter.*"
