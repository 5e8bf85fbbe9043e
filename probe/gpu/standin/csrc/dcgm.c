/* Our stand-in for libdcgm.so.4: the functions go-dcgm calls, over an engine that exists only as arithmetic.
 *
 * Here are connections, groups and watches, which die with their connection as in DCGM; values are in dcgm_values.c. */
#include "engine.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct connection connections[MOST];
struct group groups[MOST];
struct field_group field_groups[MOST];
struct watch watches[4 * MOST];
int initialised;
static pthread_mutex_t state = PTHREAD_MUTEX_INITIALIZER;

/* --- connections -------------------------------------------------------------------------------------------------- */

static int engine_is_dead(void) { return next_in_force("dead", NULL) != NULL; }

/* A connection does not survive the engine: it is of no use once an outage has begun after it was made. */
int alive(dcgmHandle_t handle) {
    if (handle == 0 || handle >= MOST || !connections[handle].open || next_in_force("not-dcgm", NULL)) return 0;
    for (const struct line *l = next_line("dead", NULL); l; l = next_line("dead", l)) {
        ns_t begin = scenario_start() + duration(l, "at", INT64_MIN / 2);
        ns_t end = value_of(l, "for") ? begin + duration(l, "for", 0) : INT64_MAX;
        if (monotonic() >= begin && connections[handle].made < end) return 0;
    }
    return 1;
}

dcgmReturn_t dcgmInit(void) {
    ns_t hung;
    int refused = at_the_door(__func__, &hung);
    if (refused) return (dcgmReturn_t)refused;
    initialised = 1;
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmShutdown(void) {
    initialised = 0;
    return DCGM_ST_OK;
}

static dcgmReturn_t connect_now(dcgmHandle_t *handle) {
    if (engine_is_dead()) return DCGM_ST_CONNECTION_NOT_VALID;
    pthread_mutex_lock(&state);
    dcgmReturn_t result = DCGM_ST_MAX_LIMIT;
    for (int i = 1; i < MOST && result != DCGM_ST_OK; i++)
        if (!connections[i].open) {
            connections[i] = (struct connection){monotonic(), 1};
            *handle = i;
            result = DCGM_ST_OK;
        }
    pthread_mutex_unlock(&state);
    return result;
}

static dcgmReturn_t disconnect(dcgmHandle_t handle) {
    if (handle >= MOST) return DCGM_ST_BADPARAM;
    pthread_mutex_lock(&state);
    connections[handle].open = 0;
    for (int i = 0; i < MOST; i++) {
        if (groups[i].owner == (int)handle) groups[i].used = 0;
        if (field_groups[i].owner == (int)handle) field_groups[i].used = 0;
    }
    for (int i = 0; i < 4 * MOST; i++)
        if (watches[i].owner == (int)handle) watches[i].used = 0;
    pthread_mutex_unlock(&state);
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmConnect_v2(const char *address, dcgmConnectV2Params_t *params, dcgmHandle_t *handle) {
    ns_t hung;
    int refused = at_the_door(__func__, &hung);
    if (params->version != dcgmConnectV2Params_version2) return DCGM_ST_VER_MISMATCH;
    if ((address[0] == '/') != (params->addressIsUnixSocket != 0)) return DCGM_ST_CONNECTION_NOT_VALID;
    return refused ? (dcgmReturn_t)refused : connect_now(handle);
}

dcgmReturn_t dcgmConnect_v3(const char *address, dcgmConnectV3Params_t *params, dcgmHandle_t *handle) {
    (void)address, (void)params;
    ns_t hung;
    int refused = at_the_door(__func__, &hung);
    return refused ? (dcgmReturn_t)refused : connect_now(handle);
}

dcgmReturn_t dcgmDisconnect(dcgmHandle_t handle) { return disconnect(handle); }

dcgmReturn_t dcgmStartEmbedded(dcgmOperationMode_t mode, dcgmHandle_t *handle) {
    (void)mode;
    ns_t hung;
    int refused = at_the_door(__func__, &hung);
    return refused ? (dcgmReturn_t)refused : connect_now(handle);
}

dcgmReturn_t dcgmStopEmbedded(dcgmHandle_t handle) { return disconnect(handle); }

const char *errorString(dcgmReturn_t code) {
    static const struct { int code; const char *text; } texts[] = {
        {DCGM_ST_OK, "Success"},
        {DCGM_ST_BADPARAM, "Bad parameter passed to function"},
        {DCGM_ST_NOT_CONFIGURED, "Setting not configured"},
        {DCGM_ST_NOT_SUPPORTED, "Feature not supported"},
        {DCGM_ST_UNINITIALIZED, "DCGM has not been initialized"},
        {DCGM_ST_TIMEOUT, "Timeout"},
        {DCGM_ST_NO_DATA, "No data is available"},
        {DCGM_ST_STALE_DATA, "Data is considered stale"},
        {DCGM_ST_NOT_WATCHED, "Field is not being updated"},
        {DCGM_ST_NO_PERMISSION, "No permission"},
        {DCGM_ST_GPU_IS_LOST, "GPU is lost"},
        {DCGM_ST_VER_MISMATCH, "API version mismatch"},
        {DCGM_ST_CONNECTION_NOT_VALID, "Host engine connection invalid/disconnected"},
        {DCGM_ST_MAX_LIMIT, "Maximum limit reached"},
        {DCGM_ST_DUPLICATE_KEY, "Duplicate Key passed to function"},
        {DCGM_ST_REQUIRES_ROOT, "Host engine is running as non-root"},
        {DCGM_ST_MODULE_NOT_LOADED, "This request is serviced by a module of DCGM that is not currently loaded"},
        {DCGM_ST_PROFILING_NOT_SUPPORTED, "Profiling is not supported for this group of GPUs or GPU"},
        {DCGM_ST_PROFILING_LIBRARY_ERROR, "The third-party Profiling module returned an unrecoverable error"},
        {DCGM_ST_PROFILING_MULTI_PASS, "The requested profiling metrics cannot be collected in a single pass"},
        {DCGM_ST_NVML_NOT_LOADED, "Cannot perform the requested operation because NVML doesn't exist on this system."},
        {DCGM_ST_PAUSED, "Profiling metrics are currently paused"},
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].code == (int)code) return texts[i].text;
    return "Generic unspecified error";
}

/* --- what is there ------------------------------------------------------------------------------------------------ */

const struct line *entity_line(dcgm_field_entity_group_t kind, unsigned id) {
    const char *what = kind == DCGM_FE_GPU ? "gpu" : kind == DCGM_FE_GPU_I ? "gi" : kind == DCGM_FE_GPU_CI ? "ci" : NULL;
    for (const struct line *l = what ? next_line(what, NULL) : NULL; l; l = next_line(what, l))
        if ((unsigned)number(l, "id", -1) == id) return l;
    return NULL;
}

int gone(unsigned gpu, ns_t t) {
    for (const struct line *l = next_line("gone", NULL); l; l = next_line("gone", l))
        if ((unsigned)number(l, "gpu", -1) == gpu && in_force(l, t)) return 1;
    return 0;
}

static int list(dcgm_field_entity_group_t kind, unsigned *ids, int room) {
    const char *what = kind == DCGM_FE_GPU ? "gpu" : kind == DCGM_FE_GPU_I ? "gi" : "ci";
    int n = 0;
    for (const struct line *l = next_line(what, NULL); l && n < room; l = next_line(what, l)) {
        int hidden = next_in_force("no-driver", NULL) != NULL;
        for (const struct line *h = next_in_force("no-device", NULL); h; h = next_in_force("no-device", h)) hidden |= (unsigned)number(h, "gpu", -1) == gpu_of(kind, l);
        if (!hidden) ids[n++] = (unsigned)number(l, "id", 0);
    }
    return n;
}

dcgmReturn_t dcgmGetAllDevices(dcgmHandle_t handle, unsigned ids[DCGM_MAX_NUM_DEVICES], int *count) {
    ENTER(handle);
    *count = list(DCGM_FE_GPU, ids, DCGM_MAX_NUM_DEVICES);
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmGetAllSupportedDevices(dcgmHandle_t handle, unsigned ids[DCGM_MAX_NUM_DEVICES], int *count) {
    ENTER(handle);
    *count = list(DCGM_FE_GPU, ids, DCGM_MAX_NUM_DEVICES);
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmGetEntityGroupEntities(dcgmHandle_t handle, dcgm_field_entity_group_t kind, dcgm_field_eid_t *ids, int *count, unsigned flags) {
    (void)flags;
    ENTER(handle);
    *count = list(kind, ids, *count);
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmGetGpuStatus(dcgmHandle_t handle, unsigned gpu, DcgmEntityStatus_t *status) {
    ENTER(handle);
    *status = entity_line(DCGM_FE_GPU, gpu) == NULL ? DcgmEntityStatusUnknown : gone(gpu, monotonic()) ? DcgmEntityStatusLost : DcgmEntityStatusOk;
    return DCGM_ST_OK;
}

unsigned gpu_of(dcgm_field_entity_group_t kind, const struct line *entity) {
    if (kind == DCGM_FE_GPU) return (unsigned)number(entity, "id", 0);
    if (kind == DCGM_FE_GPU_I) return (unsigned)number(entity, "gpu", 0);
    const struct line *gi = entity_line(DCGM_FE_GPU_I, (unsigned)number(entity, "in", 0));
    return gi ? (unsigned)number(gi, "gpu", 0) : 0;
}

static void add_to_hierarchy(dcgmMigHierarchy_v2 *all, dcgm_field_entity_group_t kind, const struct line *l) {
    dcgmMigHierarchyInfo_v2 *info = &all->entityList[all->count++];
    unsigned gpu = gpu_of(kind, l);
    const struct line *whole = entity_line(DCGM_FE_GPU, gpu);
    const struct line *gi = kind == DCGM_FE_GPU_I ? l : entity_line(DCGM_FE_GPU_I, (unsigned)number(l, "in", 0));
    memset(info, 0, sizeof *info);
    info->entity.entityGroupId = kind;
    info->entity.entityId = (unsigned)number(l, "id", 0);
    info->parent.entityGroupId = kind == DCGM_FE_GPU_I ? DCGM_FE_GPU : DCGM_FE_GPU_I;
    info->parent.entityId = kind == DCGM_FE_GPU_I ? gpu : (unsigned)number(l, "in", 0);
    snprintf(info->info.gpuUuid, sizeof info->info.gpuUuid, "%s", whole ? text(whole, "uuid", "") : "");
    info->info.nvmlGpuIndex = whole ? (unsigned)number(whole, "index", number(whole, "id", 0)) : 0;
    info->info.nvmlInstanceId = gi ? (unsigned)number(gi, "gi", 0) : 0;
    info->info.nvmlComputeInstanceId = kind == DCGM_FE_GPU_CI ? (unsigned)number(l, "ci", 0) : (unsigned)-1;
    info->info.nvmlProfileSlices = (unsigned)number(l, "slices", 1);
}

dcgmReturn_t dcgmGetGpuInstanceHierarchy(dcgmHandle_t handle, dcgmMigHierarchy_v2 *all) {
    ENTER(handle);
    if (all->version != dcgmMigHierarchy_version2) return DCGM_ST_VER_MISMATCH;
    all->count = 0;
    for (const struct line *l = next_line("gi", NULL); l; l = next_line("gi", l)) add_to_hierarchy(all, DCGM_FE_GPU_I, l);
    for (const struct line *l = next_line("ci", NULL); l; l = next_line("ci", l)) add_to_hierarchy(all, DCGM_FE_GPU_CI, l);
    return DCGM_ST_OK;
}

static int read_ids(const char *p, unsigned short *ids, int room) {
    int n = 0;
    while (*p && n < room) {
        char *end;
        ids[n++] = (unsigned short)strtol(p, &end, 10);
        p = *end ? end + 1 : end;
    }
    return n;
}

/* What the profiling module answers when it is asked for groups or to watch: a refusal in force, else 0. */
static int profiling_refuses(const char *what, unsigned gpu) {
    for (const struct line *l = next_in_force("no-profiling", NULL); l; l = next_in_force("no-profiling", l))
        if (strcmp(text(l, "when", what), what) == 0 && (unsigned)number(l, "gpu", gpu) == gpu) return (int)number(l, "code", DCGM_ST_MODULE_NOT_LOADED);
    return 0;
}

dcgmReturn_t dcgmProfGetSupportedMetricGroups(dcgmHandle_t handle, dcgmProfGetMetricGroups_t *all) {
    ENTER(handle);
    if (all->version != dcgmProfGetMetricGroups_version3) return DCGM_ST_VER_MISMATCH;
    int refusal = profiling_refuses("groups", all->gpuId);
    if (refusal) return (dcgmReturn_t)refusal;
    if (entity_line(DCGM_FE_GPU, all->gpuId) == NULL) return DCGM_ST_BADPARAM;
    all->numMetricGroups = 0;
    for (const struct line *l = next_line("group", NULL); l; l = next_line("group", l)) {
        if (value_of(l, "gpu") && (unsigned)number(l, "gpu", 0) != all->gpuId) continue;
        dcgmProfMetricGroupInfo_v2 *g = &all->metricGroups[all->numMetricGroups++];
        g->majorId = (unsigned short)number(l, "major", 0);
        g->minorId = (unsigned short)number(l, "minor", 0);
        g->numFieldIds = read_ids(text(l, "fields", ""), g->fieldIds, DCGM_PROF_MAX_FIELD_IDS_PER_GROUP_V2);
    }
    return all->numMetricGroups ? DCGM_ST_OK : DCGM_ST_PROFILING_NOT_SUPPORTED;
}

dcgmReturn_t dcgmHostengineVersionInfo(dcgmHandle_t handle, dcgmVersionInfo_t *info) {
    ENTER(handle);
    const struct line *engine = next_line("engine", NULL);
    snprintf(info->rawBuildInfoString, sizeof info->rawBuildInfoString, "version:%s;arch:x86_64;buildtype:StandIn",
             engine ? text(engine, "version", "4.6.0") : "4.6.0");
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmVersionInfo(dcgmVersionInfo_t *info) {
    scenario_load();
    snprintf(info->rawBuildInfoString, sizeof info->rawBuildInfoString, "version:4.6.0;arch:x86_64;buildtype:StandIn");
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmIntrospectGetHostengineMemoryUsage(dcgmHandle_t handle, dcgmIntrospectMemory_t *memory, int wait) {
    (void)wait;
    ENTER(handle);
    const struct line *engine = next_line("engine", NULL);
    memory->bytesUsed = (long long)(engine ? number(engine, "rss", 30e6) : 30e6);
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmIntrospectGetHostengineCpuUtilization(dcgmHandle_t handle, dcgmIntrospectCpuUtil_t *cpu, int wait) {
    (void)wait;
    ENTER(handle);
    const struct line *engine = next_line("engine", NULL);
    cpu->total = cpu->user = engine ? number(engine, "cpu", 0.01) : 0.01;
    cpu->kernel = 0;
    return DCGM_ST_OK;
}

/* --- groups and watches ------------------------------------------------------------------------------------------- */

dcgmReturn_t dcgmGroupCreate(dcgmHandle_t handle, dcgmGroupType_t type, const char *name, dcgmGpuGrp_t *id) {
    ENTER(handle);
    for (int i = 1; i < MOST; i++) {
        if (groups[i].used) continue;
        memset(&groups[i], 0, sizeof groups[i]);
        groups[i].used = 1;
        groups[i].owner = (int)handle;
        snprintf(groups[i].name, sizeof groups[i].name, "%s", name);
        if (type != DCGM_GROUP_EMPTY)
            for (const struct line *l = next_line("gpu", NULL); l; l = next_line("gpu", l))
                groups[i].entities[groups[i].count++] = (dcgmGroupEntityPair_t){DCGM_FE_GPU, (unsigned)number(l, "id", 0)};
        *id = i;
        return DCGM_ST_OK;
    }
    return DCGM_ST_MAX_LIMIT;
}

struct group *group_of(dcgmHandle_t handle, dcgmGpuGrp_t id) {
    return id < MOST && groups[id].used && groups[id].owner == (int)handle ? &groups[id] : NULL;
}

dcgmReturn_t dcgmGroupAddEntity(dcgmHandle_t handle, dcgmGpuGrp_t id, dcgm_field_entity_group_t kind, dcgm_field_eid_t entity) {
    ENTER(handle);
    struct group *g = group_of(handle, id);
    if (g == NULL) return DCGM_ST_NOT_CONFIGURED;
    const struct line *e = entity_line(kind, entity);
    for (const struct line *l = next_in_force("no-group", NULL); l && e; l = next_in_force("no-group", l))
        if ((unsigned)number(l, "gpu", -1) == gpu_of(kind, e)) return DCGM_ST_BADPARAM;
    if (e == NULL || g->count == DCGM_GROUP_MAX_ENTITIES_V1) return DCGM_ST_BADPARAM;
    g->entities[g->count++] = (dcgmGroupEntityPair_t){kind, entity};
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmGroupAddDevice(dcgmHandle_t handle, dcgmGpuGrp_t id, unsigned gpu) { return dcgmGroupAddEntity(handle, id, DCGM_FE_GPU, gpu); }

dcgmReturn_t dcgmGroupDestroy(dcgmHandle_t handle, dcgmGpuGrp_t id) {
    ENTER(handle);
    struct group *g = group_of(handle, id);
    if (g == NULL) return DCGM_ST_NOT_CONFIGURED;
    g->used = 0;
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmFieldGroupCreate(dcgmHandle_t handle, int count, const unsigned short *ids, const char *name, dcgmFieldGrp_t *id) {
    ENTER(handle);
    if (count <= 0 || count > 128) return DCGM_ST_BADPARAM;
    for (const struct line *l = next_in_force("no-field", NULL); l; l = next_in_force("no-field", l))
        for (int i = 0; i < count; i++)
            if (ids[i] == (int)number(l, "id", -1)) return DCGM_ST_BADPARAM;
    int room = 0;
    for (int i = 1; i < MOST; i++) {
        if (!field_groups[i].used) room = room ? room : i;
        else if (strcmp(field_groups[i].name, name) == 0) return DCGM_ST_DUPLICATE_KEY;
    }
    static int asked;
    asked++;
    for (const struct line *l = next_in_force("taken", NULL); l; l = next_in_force("taken", l)) /* by another client */
        if (strcmp(text(l, "name", name), name) == 0 && asked <= (int)number(l, "first", asked)) return DCGM_ST_DUPLICATE_KEY;
    if (room == 0) return DCGM_ST_MAX_LIMIT;
    struct field_group *f = &field_groups[room];
    f->used = 1;
    f->owner = (int)handle;
    f->count = count;
    snprintf(f->name, sizeof f->name, "%s", name);
    memcpy(f->ids, ids, count * sizeof *ids);
    *id = room;
    return DCGM_ST_OK;
}

struct field_group *fields_of(dcgmHandle_t handle, dcgmFieldGrp_t id) {
    return id < MOST && field_groups[id].used && field_groups[id].owner == (int)handle ? &field_groups[id] : NULL;
}

dcgmReturn_t dcgmFieldGroupDestroy(dcgmHandle_t handle, dcgmFieldGrp_t id) {
    ENTER(handle);
    struct field_group *f = fields_of(handle, id);
    if (f == NULL) return DCGM_ST_NOT_CONFIGURED;
    f->used = 0;
    return DCGM_ST_OK;
}

int is_prof(int field) { return field >= PROF_FIRST && field <= PROF_LAST; }

const struct line *metric_group(int field) {
    for (const struct line *l = next_line("group", NULL); l; l = next_line("group", l)) {
        unsigned short ids[64];
        int n = read_ids(text(l, "fields", ""), ids, 64);
        while (n--)
            if (ids[n] == field) return l;
    }
    return NULL;
}

/* Why the profiling module would not watch these fields of these GPUs, 0 if it does. */
static int watch_refused(const struct field_group *f, const struct group *g) {
    int prof = 0, refusal = 0;
    for (int i = 0; i < f->count; i++) prof |= is_prof(f->ids[i]);
    for (int i = 0; prof && i < g->count && !refusal; i++) {
        const struct line *e = entity_line(g->entities[i].entityGroupId, g->entities[i].entityId);
        if (e) refusal = profiling_refuses("watch", gpu_of(g->entities[i].entityGroupId, e));
    }
    return refusal;
}

static const char *model_of(const dcgmGroupEntityPair_t *e) {
    const struct line *l = entity_line(e->entityGroupId, e->entityId), *gpu = l ? entity_line(DCGM_FE_GPU, gpu_of(e->entityGroupId, l)) : NULL;
    return gpu ? text(gpu, "name", "") : "";
}

dcgmReturn_t dcgmWatchFields(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmFieldGrp_t fields, long long us, double keep_seconds, int keep_samples) {
    ENTER(handle);
    struct field_group *f = fields_of(handle, fields);
    struct group *g = group_of(handle, group);
    if (f == NULL || g == NULL) return DCGM_ST_NOT_CONFIGURED;
    if (next_line("count-watches", NULL)) fprintf(stderr, "watch of %d entities and %d fields\n", g->count, f->count);
    for (int i = 1; i < g->count; i++) /* GPUs of two models in one group read blank, or are refused */
        if (is_prof(f->ids[0]) && strcmp(model_of(&g->entities[i]), model_of(&g->entities[0])) != 0) return DCGM_ST_GROUP_INCOMPATIBLE;
    int refusal = watch_refused(f, g);
    if (refusal) return (dcgmReturn_t)refusal;
    ns_t interval = us * 1000, keep = (ns_t)(keep_seconds * 1e9), samples = (ns_t)(1.1 * keep_samples * (double)interval);
    keep = keep > samples ? keep : samples;
    for (int i = 0; i < 4 * MOST; i++) {
        struct watch *w = &watches[i];
        if (w->used && !(w->owner == (int)handle && w->group == (int)group && w->fields == (int)fields)) continue;
        *w = (struct watch){(int)handle, 1, (int)group, (int)fields, monotonic(), interval, keep > 1000000000 ? keep : 1000000000};
        return DCGM_ST_OK;
    }
    return DCGM_ST_MAX_LIMIT;
}

dcgmReturn_t dcgmUnwatchFields(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmFieldGrp_t fields) {
    ENTER(handle);
    for (int i = 0; i < 4 * MOST; i++)
        if (watches[i].used && watches[i].group == (int)group && watches[i].fields == (int)fields) watches[i].used = 0;
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmUpdateAllFields(dcgmHandle_t handle, int wait) {
    (void)wait;
    ENTER(handle);
    return DCGM_ST_OK;
}

