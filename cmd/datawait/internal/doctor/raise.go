package doctor

import "strings"

// remedies are what raises a grade, by what the reason of its lack contains: reasons are written by the sources themselves, and a test
// holds that each of these texts is still said.
var remedies = []struct{ says, do string }{
	{"built without cgo", "use the released binary, or build with CGO_ENABLED=1 and gcc"},
	{"profiling module is not installed", "apt-get install datacenter-gpu-manager-4-proprietary && systemctl restart nvidia-dcgm"},
	{"running as non-root", "run the nvidia-dcgm service as root (systemctl edit nvidia-dcgm, User=root)"},
	{"somebody else owns the counters", "end the other host engine or profiler, or let both use one engine: --gpu dcgm=HOST:5555"},
	{"other clients of this engine count metrics", "take DCP metrics out of dcgm-exporter's CSV until one pass is enough; datawait needs 1002 and 1003"},
	{"currently paused", "dcgmi profile --resume"},
	{"no profiling counters", "nothing: this GPU lacks them, and GPU-util is all there is"},
	{"no host engine at", "systemctl start nvidia-dcgm (package datacenter-gpu-manager-4-core), or name one: --gpu dcgm=HOST:5555"},
	{"host engine runs and sees no GPU", "restart nvidia-dcgm after the driver is loaded"},
	{"libnvidia-ml.so.1 is not here", "install NVIDIA's driver; in a container ask for the GPUs (docker run --gpus all)"},
	{"driver is not loaded", "modprobe nvidia"},
	{"before any source of GPU counters had answered", "see whether nvidia-smi hangs too: then it is the driver (dmesg | grep NVRM), and only loading it anew or a reboot helps"},
	{"they came with Hopper", "a host engine: systemctl start nvidia-dcgm (package datacenter-gpu-manager-4-core)"},
	{"lacks SM activity; these lines add it", "add them to the exporter's list of counters (--collectors FILE) and restart it"},
	{"no profiling counter at all", "apt-get install datacenter-gpu-manager-4-proprietary, add SM activity to the exporter's list of counters, and restart it"},
	{"its page is empty", "restart the exporter now that its host engine runs"},
	{"Insufficient Permissions", "run datawait as root, or load the driver with NVreg_RestrictProfilingToAdminUsers=0"},
	{"launcher drops environment", "pass PYTHONPATH and DATAWAIT_SPOOL on, or put datawait record inside the launcher"},
	{"DATAWAIT_HOOK=off", "unset DATAWAIT_HOOK"},
	{"older than 3.8", "train with Python 3.8 or newer"},
	{"received bytes", "modprobe tcp_diag; in a container share the host's network namespace or allow netlink"},
	{"pressure", "boot with psi=1"},
	{"read bytes", "a kernel with CONFIG_TASK_IO_ACCOUNTING"},
	{"quota", "mount the container's own control group (cgroup namespace), so that its CPU limit can be read"},
}

// raise returns the one thing to do about a reason, "" where none is known.
func raise(why string) string {
	for _, r := range remedies {
		if why != "" && strings.Contains(why, r.says) {
			return r.do
		}
	}
	return ""
}
