/* Our stand-in for libnvidia-ml.so.1: the functions go-nvml is asked for, over the same scenario as the stand-in DCGM. */
#include "scenario.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "nvml.h"

enum { MOST = 64, RING = 100 };
static const ns_t RING_PERIOD = 166666667; /* the driver samples GPU-util six times a second */

/* A handle is a GPU of the scenario, or a MIG slice of one. */
struct nvmlDevice_st { const struct line *gpu, *gi, *ci; };
static struct nvmlDevice_st devices[MOST], slices[MOST];
static int device_count, slice_count, initialised;

static void make_devices(void) {
    device_count = slice_count = 0;
    for (const struct line *l = next_line("gpu", NULL); l && device_count < MOST; l = next_line("gpu", l)) devices[device_count++] = (struct nvmlDevice_st){l, NULL, NULL};
    for (const struct line *ci = next_line("ci", NULL); ci && slice_count < MOST; ci = next_line("ci", ci))
        for (const struct line *gi = next_line("gi", NULL); gi; gi = next_line("gi", gi))
            for (int i = 0; i < device_count && number(gi, "id", -1) == number(ci, "in", -2); i++)
                if (number(devices[i].gpu, "id", -1) == number(gi, "gpu", -2)) slices[slice_count++] = (struct nvmlDevice_st){devices[i].gpu, gi, ci};
}

static int id_of(nvmlDevice_t d) { return (int)number(d.handle->gpu, "id", 0); }

static int gone(nvmlDevice_t d) {
    for (const struct line *l = next_in_force("gone", NULL); l; l = next_in_force("gone", l))
        if ((int)number(l, "gpu", -1) == id_of(d)) return 1;
    return 0;
}

/* The value of a key of the device, which a `set gpu=N key=value at= for=` in force overrides. */
static double setting(nvmlDevice_t d, const char *key, double otherwise) {
    for (const struct line *l = next_in_force("set", NULL); l; l = next_in_force("set", l))
        if ((int)number(l, "gpu", -1) == id_of(d) && value_of(l, key)) return number(l, key, 0);
    return number(d.handle->gpu, key, otherwise);
}

static const struct line *worker(nvmlDevice_t d) { return d.handle->ci ? d.handle->ci : d.handle->gpu; }

static nvmlReturn_t enter(const char *call) {
    ns_t hung;
    int refused = at_the_door(call, &hung);
    if (refused) return (nvmlReturn_t)refused;
    return initialised ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

/* Every function begins with one of these. */
#define ENTER()                                   \
    nvmlReturn_t refused = enter(__func__);       \
    if (refused != NVML_SUCCESS) return refused
#define ENTER_DEVICE(d)                                            \
    ENTER();                                                       \
    if ((d).handle == NULL) return NVML_ERROR_INVALID_ARGUMENT;    \
    if (gone(d)) return NVML_ERROR_GPU_IS_LOST
#define WHOLE_ONLY(d) \
    if ((d).handle->ci || mig(d)) return NVML_ERROR_NOT_SUPPORTED

static int mig(nvmlDevice_t d) { return (int)number(d.handle->gpu, "mig", 0); }

/* --- the library -------------------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlInitWithFlags(unsigned flags) {
    (void)flags;
    ns_t hung;
    int refused = at_the_door("nvmlInit_v2", &hung);
    if (refused) return (nvmlReturn_t)refused;
    if (next_in_force("no-driver", NULL)) return NVML_ERROR_DRIVER_NOT_LOADED;
    if (!initialised) make_devices();
    initialised = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlInit_v2(void) { return nvmlInitWithFlags(0); }

nvmlReturn_t nvmlShutdown(void) {
    ENTER();
    initialised = 0;
    return NVML_SUCCESS;
}

const char *nvmlErrorString(nvmlReturn_t code) {
    switch (code) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NO_PERMISSION: return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED: return "Driver Not Loaded";
    case NVML_ERROR_TIMEOUT: return "Timeout";
    case NVML_ERROR_GPU_IS_LOST: return "GPU is lost";
    default: return "Unknown Error";
    }
}

static nvmlReturn_t put_string(char *to, unsigned room, const char *s) {
    if (strlen(s) + 1 > room) return NVML_ERROR_INSUFFICIENT_SIZE;
    strcpy(to, s);
    return NVML_SUCCESS;
}

static const char *driver(const char *key, const char *otherwise) {
    const struct line *l = next_line("driver", NULL);
    return l ? text(l, key, otherwise) : otherwise;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned room) {
    ENTER();
    return put_string(version, room, driver("version", "570.00.00"));
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned room) {
    ENTER();
    return put_string(version, room, driver("nvml", "12.570.00.00"));
}

nvmlReturn_t nvmlSystemGetCudaDriverVersion_v2(int *version) {
    ENTER();
    *version = atoi(driver("cuda", "12080"));
    return NVML_SUCCESS;
}

/* --- identity ----------------------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    ENTER();
    *count = (unsigned)device_count;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *d) {
    ENTER();
    if (index >= (unsigned)device_count) return NVML_ERROR_INVALID_ARGUMENT;
    d->handle = &devices[index];
    if (value_of(d->handle->gpu, "no-permission")) return NVML_ERROR_NO_PERMISSION; /* counted, and not ours to open */
    return gone(*d) ? NVML_ERROR_GPU_IS_LOST : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *d) {
    ENTER();
    for (int i = 0; i < device_count; i++)
        if (strcmp(text(devices[i].gpu, "uuid", ""), uuid) == 0) {
            d->handle = &devices[i];
            return NVML_SUCCESS;
        }
    for (int i = 0; i < slice_count; i++)
        if (strcmp(text(slices[i].ci, "uuid", ""), uuid) == 0) {
            d->handle = &slices[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t d, char *uuid, unsigned room) {
    ENTER_DEVICE(d);
    return put_string(uuid, room, text(worker(d), "uuid", ""));
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t d, char *name, unsigned room) {
    ENTER_DEVICE(d);
    return put_string(name, room, text(worker(d), "name", text(d.handle->gpu, "name", "NVIDIA A100-SXM4-80GB")));
}

nvmlReturn_t nvmlDeviceGetArchitecture(nvmlDevice_t d, nvmlDeviceArchitecture_t *architecture) {
    ENTER_DEVICE(d);
    *architecture = (nvmlDeviceArchitecture_t)number(d.handle->gpu, "architecture", NVML_DEVICE_ARCH_AMPERE);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t d, nvmlPciInfo_t *pci) {
    ENTER_DEVICE(d);
    memset(pci, 0, sizeof *pci);
    snprintf(pci->busId, sizeof pci->busId, "%s", text(d.handle->gpu, "pci", "00000000:07:00.0"));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t d, unsigned *current, unsigned *pending) {
    ENTER_DEVICE(d);
    *current = *pending = (unsigned)mig(d);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t d, unsigned *count) {
    ENTER_DEVICE(d);
    *count = mig(d) ? 7 : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t d, unsigned index, nvmlDevice_t *slice) {
    ENTER_DEVICE(d);
    for (int i = 0; i < slice_count; i++)
        if (slices[i].gpu == d.handle->gpu && index-- == 0) {
            slice->handle = &slices[i];
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

nvmlReturn_t nvmlDeviceGetDeviceHandleFromMigDeviceHandle(nvmlDevice_t slice, nvmlDevice_t *d) {
    ENTER_DEVICE(slice);
    for (int i = 0; i < device_count; i++)
        if (devices[i].gpu == slice.handle->gpu) d->handle = &devices[i];
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t d, unsigned *id) {
    ENTER_DEVICE(d);
    if (d.handle->gi == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *id = (unsigned)number(d.handle->gi, "gi", 0);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t d, unsigned *id) {
    ENTER_DEVICE(d);
    if (d.handle->ci == NULL) return NVML_ERROR_INVALID_ARGUMENT;
    *id = (unsigned)number(d.handle->ci, "ci", 0);
    return NVML_SUCCESS;
}

/* --- state -------------------------------------------------------------------------------------------------------- */

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t d, nvmlMemory_v2_t *memory) {
    ENTER_DEVICE(d);
    if (memory->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    double all = number(worker(d), "memory", 81920), used = setting(d, "used", 4096);
    memory->total = (unsigned long long)(all * 1048576);
    memory->reserved = 512ull << 20;
    memory->used = (unsigned long long)(used * 1048576);
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t d, nvmlMemory_t *memory) {
    nvmlMemory_v2_t v2 = {.version = nvmlMemory_v2};
    nvmlReturn_t result = nvmlDeviceGetMemoryInfo_v2(d, &v2);
    *memory = (nvmlMemory_t){v2.total, v2.free, v2.used};
    return result;
}

static double watts(nvmlDevice_t d, ns_t begin, ns_t end) {
    double idle = setting(d, "idle", 60);
    return idle + activity_of(worker(d), begin, end).sm * (setting(d, "busy-power", 300) - idle);
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t d, unsigned *milliwatts) {
    ENTER_DEVICE(d);
    WHOLE_ONLY(d);
    ns_t now = monotonic();
    *milliwatts = (unsigned)(watts(d, now - 1000000, now) * 1000); /* of this moment, as a GA100 does */
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t d, unsigned long long *millijoules) {
    ENTER_DEVICE(d);
    WHOLE_ONLY(d);
    if (value_of(d.handle->gpu, "no-energy")) return NVML_ERROR_NOT_SUPPORTED;
    ns_t now = monotonic(), from = scenario_start();
    for (const struct line *l = next_line("energy-reset", NULL); l; l = next_line("energy-reset", l))
        if (in_force(l, now)) from = scenario_start() + duration(l, "at", 0);
    *millijoules = now > from ? (unsigned long long)(watts(d, from, now) * (double)(now - from) / 1e6) : 0;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t d, unsigned *milliwatts) {
    ENTER_DEVICE(d);
    *milliwatts = (unsigned)(setting(d, "power-limit", 400) * 1000);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned *mhz) {
    ENTER_DEVICE(d);
    *mhz = (unsigned)(type == NVML_CLOCK_MEM ? setting(d, "memory-clock", 1593) : setting(d, "clock", 1410));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t d, nvmlClockType_t type, unsigned *mhz) {
    ENTER_DEVICE(d);
    *mhz = (unsigned)(type == NVML_CLOCK_MEM ? setting(d, "memory-clock", 1593) : setting(d, "max-clock", 1410));
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t d, unsigned long long *reasons) {
    ENTER_DEVICE(d);
    *reasons = (unsigned long long)setting(d, "reasons", 0);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t d, unsigned long long *reasons) { return nvmlDeviceGetCurrentClocksEventReasons(d, reasons); }

#define LINK(function, key, otherwise)                        \
    nvmlReturn_t function(nvmlDevice_t d, unsigned *value) {  \
        ENTER_DEVICE(d);                                      \
        *value = (unsigned)setting(d, key, otherwise);        \
        return NVML_SUCCESS;                                  \
    }
LINK(nvmlDeviceGetCurrPcieLinkGeneration, "generation", 4)
LINK(nvmlDeviceGetCurrPcieLinkWidth, "width", 16)
LINK(nvmlDeviceGetMaxPcieLinkGeneration, "max-generation", 4)
LINK(nvmlDeviceGetMaxPcieLinkWidth, "max-width", 16)

/* --- GPU-util ----------------------------------------------------------------------------------------------------- */

static double resident(nvmlDevice_t d, ns_t begin, ns_t end) { return setting(d, "util", activity_of(worker(d), begin, end).resident); }

nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t d, nvmlUtilization_t *utilization) {
    ENTER_DEVICE(d);
    WHOLE_ONLY(d);
    ns_t end = monotonic() / RING_PERIOD * RING_PERIOD;
    *utilization = (nvmlUtilization_t){(unsigned)lround(100 * resident(d, end - RING_PERIOD, end)), 0};
    return NVML_SUCCESS;
}

/* By how much the driver's wall clock is off ours. */
static ns_t set_by(ns_t t) {
    ns_t by = 0;
    for (const struct line *l = next_line("clock", NULL); l; l = next_line("clock", l))
        if (in_force(l, t)) by += duration(l, "by", 0);
    return by;
}

/* The driver's ring: one sample each RING_PERIOD, stamped with the wall clock. */
nvmlReturn_t nvmlDeviceGetSamples(nvmlDevice_t d, nvmlSamplingType_t type, unsigned long long last_us, nvmlValueType_t *value_type, unsigned *count, nvmlSample_t *samples) {
    ENTER_DEVICE(d);
    WHOLE_ONLY(d);
    if (type != NVML_GPU_UTILIZATION_SAMPLES) return NVML_ERROR_NOT_SUPPORTED;
    *value_type = NVML_VALUE_TYPE_UNSIGNED_INT;
    if (samples == NULL) {
        *count = RING;
        return NVML_SUCCESS;
    }
    struct timespec wall;
    clock_gettime(CLOCK_REALTIME, &wall);
    ns_t now = monotonic(), offset = (ns_t)wall.tv_sec * 1000000000 + wall.tv_nsec - now + set_by(now), newest = now / RING_PERIOD * RING_PERIOD;
    unsigned n = 0;
    for (ns_t t = newest - (RING - 1) * RING_PERIOD; t <= newest && n < *count; t += RING_PERIOD) {
        unsigned long long us = (unsigned long long)(t + offset) / 1000;
        if (us <= last_us) continue;
        samples[n].timeStamp = us;
        samples[n++].sampleValue.uiVal = (unsigned)lround(100 * resident(d, t - RING_PERIOD, t));
    }
    *count = n;
    return n ? NVML_SUCCESS : NVML_ERROR_NOT_FOUND;
}

/* --- processes ---------------------------------------------------------------------------------------------------- */

static int here(const struct line *process, nvmlDevice_t d) {
    if ((int)number(process, "gpu", 0) != id_of(d)) return 0;
    return d.handle->ci == NULL || number(process, "ci", -1) == number(d.handle->ci, "id", -2);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t d, unsigned *count, nvmlProcessInfo_t *infos) {
    ENTER_DEVICE(d);
    unsigned n = 0, room = *count;
    for (const struct line *l = next_in_force("process", NULL); l; l = next_in_force("process", l)) {
        if (!here(l, d)) continue;
        if (n < room && infos)
            infos[n] = (nvmlProcessInfo_t){(unsigned)number(l, "pid", 0), (unsigned long long)(number(l, "memory", 1024) * 1048576), 0xffffffff, 0xffffffff};
        n++;
    }
    *count = n;
    return n > room || (n && infos == NULL) ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

/* --- events ------------------------------------------------------------------------------------------------------- */

struct nvmlEventSet_st { int registered[MOST]; ns_t seen; };

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    ENTER();
    set->handle = calloc(1, sizeof *set->handle);
    set->handle->seen = monotonic();
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    free(set.handle);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetSupportedEventTypes(nvmlDevice_t d, unsigned long long *types) {
    ENTER_DEVICE(d);
    *types = nvmlEventTypeXidCriticalError;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t d, unsigned long long types, nvmlEventSet_t set) {
    ENTER_DEVICE(d);
    if (types & nvmlEventTypeXidCriticalError) set.handle->registered[d.handle - devices] = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout_ms) {
    ENTER();
    ns_t deadline = monotonic() + (ns_t)timeout_ms * 1000000;
    for (;;) {
        ns_t now = monotonic();
        for (const struct line *l = next_line("xid", NULL); l; l = next_line("xid", l)) {
            ns_t t = scenario_start() + duration(l, "at", 0);
            int index = (int)number(l, "gpu", 0);
            if (t <= set.handle->seen || t > now || index >= device_count || !set.handle->registered[index]) continue;
            set.handle->seen = t;
            *data = (nvmlEventData_t){{&devices[index]}, nvmlEventTypeXidCriticalError, (unsigned long long)number(l, "code", 79), (unsigned)number(l, "gi", 0xffffffff), 0xffffffff};
            return NVML_SUCCESS;
        }
        if (now >= deadline) return NVML_ERROR_TIMEOUT;
        ns_t left = deadline - now, soon = 20000000; /* the real one is woken */
        if (next_line("xid", NULL) && left > soon) left = soon;
        struct timespec nap = {left / 1000000000, left % 1000000000};
        nanosleep(&nap, NULL);
    }
}

/* --- GPM ---------------------------------------------------------------------------------------------------------- */

struct nvmlGpmSample_st { ns_t t; const struct line *worker; };

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t d, nvmlGpmSupport_t *support) {
    ENTER_DEVICE(d);
    support->isSupportedDevice = (unsigned)number(d.handle->gpu, "gpm", 0);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
    ENTER();
    sample->handle = calloc(1, sizeof *sample->handle);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    free(sample.handle);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t d, nvmlGpmSample_t sample) {
    ENTER_DEVICE(d);
    if (number(d.handle->gpu, "gpm", 0) == 0) return NVML_ERROR_NOT_SUPPORTED;
    if (value_of(d.handle->gpu, "gpm-forbidden")) abort(); /* somebody else counts it: this would disturb */
    *sample.handle = (struct nvmlGpmSample_st){monotonic(), d.handle->gpu};
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t d, unsigned gi, nvmlGpmSample_t sample) {
    ENTER_DEVICE(d);
    for (int i = 0; i < slice_count; i++)
        if (slices[i].gpu == d.handle->gpu && (unsigned)number(slices[i].gi, "gi", -1) == gi) {
            *sample.handle = (struct nvmlGpmSample_st){monotonic(), slices[i].ci};
            return NVML_SUCCESS;
        }
    return NVML_ERROR_NOT_FOUND;
}

/* One metric over the samples' window; 0 if this GPU does not have it. */
static int gpm_metric(const struct line *w, struct activity a, unsigned id, double *value) {
    switch (id) {
    case NVML_GPM_METRIC_GRAPHICS_UTIL: *value = 100 * a.resident; return 1;
    case NVML_GPM_METRIC_SM_UTIL: *value = 100 * a.sm; return 1;
    case NVML_GPM_METRIC_SM_OCCUPANCY: *value = 100 * number(w, "occupancy", a.sm / 2); return 1;
    case NVML_GPM_METRIC_ANY_TENSOR_UTIL: *value = 100 * a.tensor; return 1;
    case NVML_GPM_METRIC_DRAM_BW_UTIL: *value = 100 * number(w, "dram", a.sm / 4); return 1;
    case NVML_GPM_METRIC_FP32_UTIL: *value = 100 * number(w, "fp32", a.sm / 3); return 1;
    case NVML_GPM_METRIC_PCIE_TX_PER_SEC: *value = number(w, "pcie-out", 0) / 1048576; return 1;
    case NVML_GPM_METRIC_PCIE_RX_PER_SEC: *value = number(w, "pcie-in", a.copy * 25e9) / 1048576; return 1;
    case NVML_GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC: case NVML_GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC: *value = number(w, "nvlink", 0) / 1048576; return 1;
    default: return 0;
    }
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get) {
    ENTER();
    struct nvmlGpmSample_st *a = get->sample1.handle, *b = get->sample2.handle;
    if (get->version != NVML_GPM_METRICS_GET_VERSION) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if (a == NULL || b == NULL || a->worker == NULL || a->worker != b->worker) return NVML_ERROR_INVALID_ARGUMENT;
    struct activity done = activity_of(b->worker, a->t, b->t);
    for (unsigned i = 0; i < get->numMetrics; i++) {
        nvmlGpmMetric_t *m = &get->metrics[i];
        int known = gpm_metric(b->worker, done, m->metricId, &m->value);
        m->nvmlReturn = known ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        if (b->t - a->t < 100000000) m->value = NAN; /* samples closer than the GPU refreshes them */
    }
    return NVML_SUCCESS;
}
