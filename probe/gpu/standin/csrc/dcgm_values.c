/* Values of the stand-in DCGM.
 *
 * A watched field has a sample every interval, stamped at the end of its window on the engine's wall clock. There is no thread:
 * samples are computed when they are asked for. */
#include "engine.h"

#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The engine's wall clock at a monotonic time, in microseconds: it may have been stepped by then. */
static long long engine_clock(ns_t t) {
    static ns_t offset;
    if (offset == 0) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        offset = (ns_t)now.tv_sec * 1000000000 + now.tv_nsec - monotonic();
    }
    ns_t stepped = 0;
    for (const struct line *l = next_line("clock", NULL); l; l = next_line("clock", l))
        if (in_force(l, t)) stepped += duration(l, "by", 0);
    return (t + offset + stepped) / 1000;
}

static int type_of(int field) {
    if ((field >= 1001 && field <= 1008) || field == 155) return DCGM_FT_DOUBLE;
    if (field == 50 || field == 54 || field == 57) return DCGM_FT_STRING;
    return DCGM_FT_INT64;
}

static void put(dcgmFieldValue_v1 *v, double n) {
    if (v->fieldType == DCGM_FT_DOUBLE) v->value.dbl = n;
    else v->value.i64 = (int64_t)llround(n);
}

/* DCGM's blanks: `what` is 0 plain, 1 not found, 2 not supported, 3 no permission (dcgm_structs.h). */
static void blank(dcgmFieldValue_v1 *v, int what) {
    static const char *const strings[] = {"<<<NULL>>>", "<<<NOT_FOUND>>>", "<<<NOT_SUPPORTED>>>", "<<<NOT_PERM>>>"};
    if (v->fieldType == DCGM_FT_DOUBLE) v->value.dbl = DCGM_FP64_BLANK + what;
    else if (v->fieldType == DCGM_FT_INT64) v->value.i64 = DCGM_INT64_BLANK + what;
    else strcpy(v->value.str, strings[what]);
}

static void put_text(dcgmFieldValue_v1 *v, const char *s) {
    if (strcmp(s, "blank") == 0) blank(v, 0);
    else if (strcmp(s, "not-found") == 0) blank(v, 1);
    else if (strcmp(s, "not-supported") == 0) blank(v, 2);
    else if (strcmp(s, "not-permissioned") == 0) blank(v, 3);
    else if (strcmp(s, "int32-blank") == 0) v->value.i64 = DCGM_INT32_BLANK;
    else put(v, strtod(s, NULL));
}

static const char *entity_key(dcgm_field_entity_group_t kind) { return kind == DCGM_FE_GPU ? "gpu" : kind == DCGM_FE_GPU_I ? "gi" : "ci"; }

static int speaks_of(const struct line *l, dcgm_field_entity_group_t kind, unsigned id, int field) {
    const char *who = value_of(l, entity_key(kind)), *what = text(l, "field", "*");
    if (strcmp(what, "*") != 0 && atoi(what) != field) return 0;
    return who ? (unsigned)atoi(who) == id : value_of(l, "gpu") == NULL && value_of(l, "gi") == NULL && value_of(l, "ci") == NULL;
}

/* Whether counting `field` excludes counting what `own` is the metric group of: another group of the same letter. */
static int excludes(int field, const struct line *own) {
    const struct line *other = metric_group(field);
    return other && other != own && number(other, "major", 0) == number(own, "major", 0);
}

/* Fields of two groups with one letter cannot be counted together: each is measured half of the time, whoever asks for them. */
static int multiplexed_away(int field, ns_t t, ns_t interval) {
    if (next_line("multiplex", NULL) == NULL || !is_prof(field)) return 0;
    const struct line *own = metric_group(field);
    if (own == NULL) return 0;
    int shared = 0;
    for (int i = 0; i < MOST; i++)
        for (int k = 0; field_groups[i].used && k < field_groups[i].count; k++) shared |= excludes(field_groups[i].ids[k], own);
    for (const struct line *l = next_line("watcher", NULL); l; l = next_line("watcher", l))
        shared |= in_force(l, t) && excludes((int)number(l, "field", 0), own);
    return shared && (t / interval) % 2 == (ns_t)number(own, "minor", 0) % 2;
}

/* What the field of an entity was over (t - interval, t]. */
static void measure(dcgmFieldValue_v1 *v, dcgm_field_entity_group_t kind, unsigned id, int field, ns_t t, ns_t interval) {
    const struct line *e = entity_line(kind, id);
    memset(v, 0, offsetof(dcgmFieldValue_v1, value) + sizeof v->value.str);
    v->version = dcgmFieldValue_version1;
    v->fieldId = (unsigned short)field;
    v->fieldType = (unsigned short)type_of(field);
    v->ts = engine_clock(t);
    for (const struct line *l = next_line("status", NULL); l; l = next_line("status", l))
        if (in_force(l, t) && speaks_of(l, kind, id, field)) {
            v->status = (int)number(l, "code", DCGM_ST_NO_DATA);
            blank(v, 0);
            return;
        }
    for (const struct line *l = next_line("value", NULL); l; l = next_line("value", l))
        if (in_force(l, t) && speaks_of(l, kind, id, field)) {
            put_text(v, text(l, "v", "blank"));
            return;
        }
    if (e == NULL || gone(gpu_of(kind, e), t)) {
        blank(v, 0);
        return;
    }
    struct activity a = activity_of(e, t - interval, t);
    double watts = number(e, "idle", 60) + a.sm * (number(e, "busy-power", 300) - number(e, "idle", 60));
    switch (field) {
    case 50: snprintf(v->value.str, sizeof v->value.str, "%s", text(e, "name", "NVIDIA A100-SXM4-80GB")); return;
    case 54: snprintf(v->value.str, sizeof v->value.str, "%s", text(e, "uuid", "")); return;
    case 57: snprintf(v->value.str, sizeof v->value.str, "%s", text(e, "pci", "00000000:07:00.0")); return;
    case 100: put(v, number(e, "clock", 1410)); return;
    case 101: put(v, number(e, "memory-clock", 1593)); return;
    case 112: put(v, number(e, "reasons", 0)); return;
    case 155: put(v, watts); return;
    case 156: put(v, watts * (double)(t - scenario_start()) / 1e6); return; /* W × ns = 1e-6 mJ; right for constant work */
    case 203: put(v, 100 * number(e, "util", a.resident)); return;
    case 230: put(v, 0); return;
    case 250: put(v, number(e, "memory", 81920)); return;
    case 251: put(v, number(e, "memory", 81920) - number(e, "used", 4096)); return;
    case 252: put(v, number(e, "used", 4096)); return;
    case 253: put(v, 512); return;
    case 1001: put(v, number(e, "engine", a.resident)); break;
    case 1002: put(v, a.sm); break;
    case 1003: put(v, number(e, "occupancy", a.sm / 2)); break;
    case 1004: put(v, a.tensor); break;
    case 1005: put(v, number(e, "dram", a.sm / 4)); break;
    case 1007: put(v, number(e, "fp32", a.sm / 3)); break;
    case 1009: put(v, number(e, "pcie-out", 0)); break;
    case 1010: put(v, number(e, "pcie-in", a.copy * 25e9)); break;
    case 1011: case 1012: put(v, number(e, "nvlink", 0)); break;
    default: blank(v, 2); return;
    }
    if (multiplexed_away(field, t, interval)) put(v, 0);
}

/* The shortest interval at which anybody watches the field of the entity, 0 if nobody does; *since is when we began, *keep how
 * long samples are kept. */
static ns_t watched(dcgmHandle_t handle, dcgm_field_entity_group_t kind, unsigned id, int field, ns_t *since, ns_t *keep) {
    ns_t interval = 0;
    for (int i = 0; i < 4 * MOST; i++) {
        const struct watch *w = &watches[i];
        if (!w->used || w->owner != (int)handle) continue;
        int hit = 0;
        for (int g = 0; g < groups[w->group].count && !hit; g++)
            if (groups[w->group].entities[g].entityGroupId == kind && groups[w->group].entities[g].entityId == id)
                for (int f = 0; f < field_groups[w->fields].count; f++) hit |= field_groups[w->fields].ids[f] == field;
        if (!hit) continue;
        if (interval == 0 || w->interval < interval) interval = w->interval;
        *since = w->since;
        *keep = w->keep;
    }
    for (const struct line *l = next_in_force("watcher", NULL); l && interval; l = next_in_force("watcher", l)) /* another client */
        if (duration(l, "interval", interval) < interval) interval = duration(l, "interval", interval);
    return interval;
}

static ns_t lateness(int field) {
    const struct line *l = next_in_force("late", NULL);
    return l && is_prof(field) ? duration(l, "by", 0) : 0;
}

/* Whether the engine never stored this sample. */
static int lost(int field, unsigned id, ns_t t) {
    for (const struct line *f = next_line("frozen", NULL); f; f = next_line("frozen", f))
        if (in_force(f, t) && (unsigned)number(f, "gpu", id) == id && (int)number(f, "field", field) == field) return 1;
    const struct line *l = next_line("lose", NULL);
    if (l == NULL || !in_force(l, t)) return 0;
    uint64_t h = (uint64_t)t * 0x9e3779b97f4a7c15u ^ ((uint64_t)field << 32) ^ id;
    h ^= h >> 29;
    h *= 0xbf58476d1ce4e5b9u;
    return (double)(h >> 11) / 9007199254740992.0 < number(l, "share", 0);
}

static void nothing(dcgmFieldValue_v1 *v, int field, int status) {
    memset(v, 0, offsetof(dcgmFieldValue_v1, value) + sizeof v->value.str);
    v->version = dcgmFieldValue_version1;
    v->fieldId = (unsigned short)field;
    v->fieldType = (unsigned short)type_of(field);
    v->status = status;
    blank(v, 0);
}

/* Samples of one field since a wall-clock time, oldest first, through the callback; one row NO_DATA where there is none. */
static dcgmReturn_t since(dcgmHandle_t handle, dcgmGroupEntityPair_t e, int field, long long from, dcgmFieldValueEntityEnumeration_f call, void *data) {
    ns_t begun = 0, keep = 0, interval = watched(handle, e.entityGroupId, e.entityId, field, &begun, &keep);
    if (interval == 0) return DCGM_ST_NOT_WATCHED;
    ns_t now = monotonic(), newest = now - lateness(field), oldest = now - keep > begun ? now - keep : begun;
    static _Thread_local dcgmFieldValue_v1 rows[64];
    int n = 0, any = 0;
    const struct line *old = next_line("left", NULL); /* from a watch that ended before ours */
    ns_t age = old ? begun - duration(old, "age", 30000000000) : 0;
    if (old && engine_clock(age) >= from) measure(&rows[n++], e.entityGroupId, e.entityId, field, age, interval);
    for (ns_t t = (oldest / interval + 1) * interval; t <= newest; t += interval) {
        if (engine_clock(t) < from || lost(field, e.entityId, t)) continue;
        measure(&rows[n++], e.entityGroupId, e.entityId, field, t, interval);
        if (next_line("first-blank", NULL) && is_prof(field) && t - interval <= begun) blank(&rows[n - 1], 0);
        if (n == 64) {
            any = 1;
            call(e.entityGroupId, e.entityId, rows, n, data);
            n = 0;
        }
    }
    if (n == 0 && !any) nothing(&rows[n++], field, DCGM_ST_NO_DATA);
    if (n) call(e.entityGroupId, e.entityId, rows, n, data);
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmGetValuesSince_v2(dcgmHandle_t handle, dcgmGpuGrp_t group, dcgmFieldGrp_t fields, long long from, long long *next,
                                   dcgmFieldValueEntityEnumeration_f call, void *data) {
    ENTER(handle);
    struct group *g = group_of(handle, group);
    struct field_group *f = fields_of(handle, fields);
    if (g == NULL || f == NULL) return DCGM_ST_NOT_CONFIGURED;
    if (g->count > 1 && next_in_force("one-at-a-time", NULL)) return DCGM_ST_INSUFFICIENT_SIZE;
    long long now = engine_clock(monotonic());
    const struct line *engine = next_line("engine", NULL);
    ns_t rpc = engine ? duration(engine, "rpc", 0) : 0; /* what one request for one field costs */
    for (int i = 0; i < g->count; i++)
        for (int k = 0; k < f->count; k++) {
            struct timespec nap = {0, (long)rpc};
            if (rpc) nanosleep(&nap, NULL);
            dcgmReturn_t result = since(handle, g->entities[i], f->ids[k], from, call, data);
            if (result != DCGM_ST_OK) return result;
        }
    *next = now + 1;
    return DCGM_ST_OK;
}

static void latest(dcgmFieldValue_v1 *v, dcgmHandle_t handle, dcgm_field_entity_group_t kind, unsigned id, int field, int live) {
    if (live && is_prof(field)) abort(); /* as the real engine dies */
    if (live || type_of(field) == DCGM_FT_STRING) {
        measure(v, kind, id, field, monotonic(), 1000000);
        if (entity_line(kind, id) == NULL) v->status = DCGM_ST_NOT_WATCHED;
        return;
    }
    ns_t begun = 0, keep = 0, interval = watched(handle, kind, id, field, &begun, &keep);
    ns_t t = interval ? (monotonic() - lateness(field)) / interval * interval : 0;
    if (interval == 0) nothing(v, field, DCGM_ST_NOT_WATCHED);
    else if (t <= begun) nothing(v, field, DCGM_ST_NO_DATA);
    else measure(v, kind, id, field, t, interval);
}

dcgmReturn_t dcgmEntityGetLatestValues(dcgmHandle_t handle, dcgm_field_entity_group_t kind, int id, unsigned short *fields, unsigned count, dcgmFieldValue_v1 *values) {
    ENTER(handle);
    for (unsigned i = 0; i < count; i++) latest(&values[i], handle, kind, (unsigned)id, fields[i], 0);
    return DCGM_ST_OK;
}

dcgmReturn_t dcgmGetLatestValuesForFields(dcgmHandle_t handle, int gpu, unsigned short *fields, unsigned count, dcgmFieldValue_v1 *values) {
    return dcgmEntityGetLatestValues(handle, DCGM_FE_GPU, gpu, fields, count, values);
}

dcgmReturn_t dcgmEntitiesGetLatestValues(dcgmHandle_t handle, dcgmGroupEntityPair_t entities[], unsigned count, unsigned short fields[], unsigned field_count,
                                         unsigned flags, dcgmFieldValue_v2 *values) {
    ENTER(handle);
    for (unsigned i = 0; i < count; i++)
        for (unsigned k = 0; k < field_count; k++) {
            dcgmFieldValue_v1 v;
            dcgmFieldValue_v2 *to = &values[i * field_count + k];
            latest(&v, handle, entities[i].entityGroupId, entities[i].entityId, fields[k], flags & DCGM_FV_FLAG_LIVE_DATA);
            to->version = dcgmFieldValue_version2;
            to->entityGroupId = entities[i].entityGroupId;
            to->entityId = entities[i].entityId;
            to->fieldId = v.fieldId;
            to->fieldType = v.fieldType;
            to->status = v.status;
            to->ts = v.ts;
            memcpy(&to->value, &v.value, sizeof v.value.str);
        }
    return DCGM_ST_OK;
}
