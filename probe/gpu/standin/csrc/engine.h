/* What the parts of the stand-in DCGM share: connections, groups and watches, and how a call begins. */
#ifndef DATAWAIT_ENGINE_H
#define DATAWAIT_ENGINE_H

#include "dcgm_agent.h"
#include "dcgm_fields.h"
#include "dcgm_structs.h"
#include "scenario.h"

enum { MOST = 64, PROF_FIRST = 1001, PROF_LAST = 1199 };

/* What go-dcgm v1.4611.0 passes: sizes and version words (sizeof | version << 24) of the structures. */
_Static_assert(dcgmFieldValue_version1 == 0x01001018 && dcgmFieldValue_version2 == 0x02001020, "field values");
_Static_assert(dcgmConnectV2Params_version2 == 0x02000010 && dcgmConnectV3Params_version1 == 0x0100000c, "connecting");
_Static_assert(dcgmProfGetMetricGroups_version3 == 0x03000560 && dcgmMigHierarchy_version2 == 0x02011f08, "metric groups, slices");
_Static_assert(sizeof(dcgmGroupEntityPair_t) == 8, "entities");

struct connection { ns_t made; int open; };
struct group { int owner, used; char name[64]; int count; dcgmGroupEntityPair_t entities[DCGM_GROUP_MAX_ENTITIES_V1]; };
struct field_group { int owner, used; char name[64]; int count; unsigned short ids[128]; };
struct watch { int owner, used, group, fields; ns_t since, interval, keep; };

extern struct connection connections[MOST];
extern struct group groups[MOST];
extern struct field_group field_groups[MOST];
extern struct watch watches[4 * MOST];
extern int initialised;

/* Every function that needs a connection begins with this. */
#define ENTER(handle)                                                                   \
    ns_t hung;                                                                          \
    int refused = at_the_door(__func__, &hung);                                         \
    if (!initialised) return DCGM_ST_UNINITIALIZED;                                     \
    if (hung) return DCGM_ST_TIMEOUT;                                                   \
    if (!alive(handle)) return DCGM_ST_CONNECTION_NOT_VALID;                            \
    if (refused) return (dcgmReturn_t)refused

int alive(dcgmHandle_t handle);
struct group *group_of(dcgmHandle_t handle, dcgmGpuGrp_t id);
struct field_group *fields_of(dcgmHandle_t handle, dcgmFieldGrp_t id);

/* The scenario's line of an entity: `gpu id=`, `gi id=` or `ci id=`. */
const struct line *entity_line(dcgm_field_entity_group_t kind, unsigned id);
unsigned gpu_of(dcgm_field_entity_group_t kind, const struct line *entity);
int gone(unsigned gpu, ns_t t);
int is_prof(int field);
const struct line *metric_group(int field); /* the `group major= minor= fields=` that holds a field */

#endif
