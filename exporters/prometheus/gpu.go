package prometheus

import (
	"strconv"
	"strings"

	"github.com/datawait/datawait/analysis/ledger"
	"github.com/datawait/datawait/analysis/live"
)

// tenancyTable is the time a tenant had a GPU. An account that nothing was ever booked on is 0 and there: a sum over accounts is
// the allocated time from the first scrape on.
var tenancyTable = table[live.Tenancy]{
	title:   "Time of GPUs, by whom they were allocated to",
	subject: "one GPU and one tenant; a GPU that several share at once has one set, whose `training_job` is `" + live.Shared + "`",
	labels:  tenantAnd("gpu_uuid"),
	values:  func(t *live.Tenancy) values { return tenantValues(t.Tenant, Clean(t.GPU)) },
	merge: func(into, from *live.Tenancy) {
		into.Running, into.Carried = into.Running || from.Running, into.Carried || from.Carried
		into.Books = into.Books.Add(from.Books)
		into.Activity = addActivity(into.Activity, from.Activity)
	},
	carried: func(t *live.Tenancy) bool { return t.Carried },
	since:   func(t *live.Tenancy) uint64 { return t.Since },
	order: func(t *live.Tenancy) order {
		if t.Running {
			return heldNow
		}
		return ended
	},
	families: []family[live.Tenancy]{
		{metric: metric{name: "datawait_gpu_account_seconds_total",
			help: "Seconds of the allocated GPU, each booked on one account.",
			from: "`Tenancy.Books.NS`; the accounts are " + strings.Join(accounts, ", ") + "; their sum is `datawait_gpu_allocated_seconds_total`",
			more: []string{"account"}, most: len(accounts)},
			of: func(t *live.Tenancy, e emit) {
				for i := range accounts {
					e(seconds(t.Books.NS[i]), accounts[i])
				}
			}},
		total("datawait_gpu_allocated_seconds_total", "Seconds the GPU was allocated to the tenant.", "`Tenancy.Books.Allocated`",
			func(t *live.Tenancy) float64 { return seconds(t.Books.Allocated) }),
		total("datawait_gpu_covered_seconds_total", "Seconds of the allocation that trustworthy counters of the GPU saw.", "`Tenancy.Books.Covered`",
			func(t *live.Tenancy) float64 { return seconds(t.Books.Covered) }),
		total("datawait_gpu_wait_upper_bound_seconds_total",
			"Seconds of account unattributed in which the process waited for data and no device clock says whether the GPU did: at most these were lost.",
			"`Tenancy.Books.WaitUpperBound`; evidence grade C",
			func(t *live.Tenancy) float64 { return seconds(t.Books.WaitUpperBound) }),
		total("datawait_gpu_untrusted_seconds_total", "Seconds whose counters contradict one another; they are in no activity.", "`Tenancy.Activity.Untrusted`",
			func(t *live.Tenancy) float64 { return t.Activity.Untrusted }),
		total("datawait_gpu_sm_active_seconds_total", "Seconds of SM activity: the share of SM cycles with a warp, integrated over the allocated time that was seen.",
			"`Tenancy.Activity.SMActive`; SM activity is this by `datawait_gpu_sm_seen_seconds_total`",
			func(t *live.Tenancy) float64 { return t.Activity.SMActive }),
		total("datawait_gpu_sm_seen_seconds_total", "Seconds of the allocation in which SM activity was read.", "`Tenancy.Activity.SMSeen`",
			func(t *live.Tenancy) float64 { return t.Activity.SMSeen }),
		total("datawait_gpu_resident_seconds_total", "Seconds in which a kernel was resident (what NVML calls GPU utilization).",
			"`Tenancy.Activity.Resident`; the share is this by `datawait_gpu_resident_seen_seconds_total`",
			func(t *live.Tenancy) float64 { return t.Activity.Resident }),
		total("datawait_gpu_resident_seen_seconds_total", "Seconds of the allocation in which it was read whether a kernel was resident.", "`Tenancy.Activity.ResidentSeen`",
			func(t *live.Tenancy) float64 { return t.Activity.ResidentSeen }),
		total("datawait_gpu_tensor_active_seconds_total", "Seconds of tensor core activity, integrated over the allocated time that was seen.",
			"`Tenancy.Activity.TensorActive`; the share is this by `datawait_gpu_tensor_seen_seconds_total`",
			func(t *live.Tenancy) float64 { return t.Activity.TensorActive }),
		total("datawait_gpu_tensor_seen_seconds_total", "Seconds of the allocation in which tensor core activity was read.", "`Tenancy.Activity.TensorSeen`",
			func(t *live.Tenancy) float64 { return t.Activity.TensorSeen }),
		total("datawait_gpu_held_seconds_total", "Seconds in which a process had a context on the GPU.",
			"`Tenancy.Activity.Held`; the share is this by `datawait_gpu_held_seen_seconds_total`",
			func(t *live.Tenancy) float64 { return t.Activity.Held }),
		total("datawait_gpu_held_seen_seconds_total", "Seconds of the allocation in which it was read whether a process had a context.", "`Tenancy.Activity.HeldSeen`",
			func(t *live.Tenancy) float64 { return t.Activity.HeldSeen }),
	},
}.made()

// accounts are the names of the ledger's accounts, at their numbers.
var accounts = func() (names []string) {
	for _, a := range ledger.Accounts() {
		names = append(names, a.String())
	}
	return names
}()

func addActivity(a, b live.Activity) live.Activity {
	return live.Activity{Untrusted: a.Untrusted + b.Untrusted, Resident: a.Resident + b.Resident, ResidentSeen: a.ResidentSeen + b.ResidentSeen,
		SMActive: a.SMActive + b.SMActive, SMSeen: a.SMSeen + b.SMSeen, TensorActive: a.TensorActive + b.TensorActive,
		TensorSeen: a.TensorSeen + b.TensorSeen, Held: a.Held + b.Held, HeldSeen: a.HeldSeen + b.HeldSeen}
}

// device is a GPU whose times are Unix times.
type device struct {
	live.GPU
	window float64 // s since 1970; 0 = none came
}

var deviceTable = table[device]{
	title:   "GPUs",
	subject: "one GPU, or one MIG slice",
	labels:  []string{"gpu_uuid"},
	values:  func(d *device) values { return values{Clean(d.UUID)} },
	merge:   func(into, from *device) { into.window = max(into.window, from.window) },
	order:   func(*device) order { return devices },
	families: []family[device]{
		{metric: metric{name: "datawait_gpu_info", kind: gauge,
			help: "1, and what the GPU is: its name, the source its counters come from, the evidence grade of that, and whether it is emulated.",
			from: "`GPU`; grade A, B or C; whatever comes from an emulated device says so here", more: []string{"name", "source", "grade", "emulated", "index"}},
			of: func(d *device, e emit) {
				e(1, Clean(d.Name), Clean(d.Source), Clean(d.Grade), strconv.FormatBool(d.Emulated), number(d.Index.Get()))
			}},
		shown("datawait_gpu_assigned", "1 if the GPU is assigned to a job, by a scheduler or by processes that hold it; 0 if it is not.",
			"`GPU.Assigned`", "neither a scheduler nor the GPU's processes could be asked",
			func(d *device) (float64, bool) {
				assigned, known := d.Assigned.Get()
				return truth(assigned), known
			}),
		shown("datawait_gpu_last_window_timestamp_seconds", "Unix time of the end of the newest window of the GPU's counters, in seconds.",
			"`GPU.Window`", "no window ever came", func(d *device) (float64, bool) { return d.window, d.window > 0 }),
	},
}.made()

var holderTable = table[live.Holder]{
	title:   "Who has a GPU now",
	subject: "one GPU and one tenant that has it now",
	labels:  tenantAnd("gpu_uuid"),
	values:  func(h *live.Holder) values { return tenantValues(h.Tenant, Clean(h.GPU)) },
	merge:   func(_, _ *live.Holder) {},
	order:   func(*live.Holder) order { return holders },
	families: []family[live.Holder]{
		shown("datawait_gpu_holder_info", "1: the tenant has the GPU now. Of a shared GPU every holder has a series.", "`Holder`",
			"the tenant does not have the GPU", func(*live.Holder) (float64, bool) { return 1, true }),
	},
}.made()

// total is a counter of a subject.
func total[T any](name, help, from string, value func(*T) float64) family[T] {
	return family[T]{metric: metric{name: name, help: help, from: from}, of: one(value)}
}

// level is a gauge that is always known.
func level[T any](name, help, from string, value func(*T) float64) family[T] {
	return family[T]{metric: metric{name: name, kind: gauge, help: help, from: from}, of: one(value)}
}

// shown is a gauge that may not be known.
func shown[T any](name, help, from, gone string, value func(*T) (float64, bool)) family[T] {
	return family[T]{metric: metric{name: name, kind: gauge, help: help, from: from, gone: gone}, of: maybe(value)}
}
