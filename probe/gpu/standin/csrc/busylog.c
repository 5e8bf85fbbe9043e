/* The one reader of busy logs that both stand-in libraries share (recording SPEC §7). */
#include "scenario.h"

#include <stdio.h>
#include <string.h>

enum { HEADER = 64, ENTRY = 32, KERNEL = 1 };

/* Little-endian, like every machine CUDA runs on. */
struct entry { uint64_t start, end; float sm, tensor; uint32_t kind, number; };

static double overlap(ns_t begin, ns_t end, const struct entry *e) {
    ns_t from = (ns_t)e->start > begin ? (ns_t)e->start : begin;
    ns_t to = (ns_t)e->end < end ? (ns_t)e->end : end;
    return to > from ? (double)(to - from) : 0;
}

static struct activity from_log(const char *path, ns_t begin, ns_t end) {
    struct activity a = {0, 0, 0, 0, 0};
    FILE *file = fopen(path, "rb");
    char magic[HEADER];
    if (file == NULL) return a;
    if (fread(magic, 1, HEADER, file) == HEADER && memcmp(magic, "DWBUSY1\n", 8) == 0) a.known = 1;
    struct entry e;
    while (a.known && fread(&e, ENTRY, 1, file) == 1) {
        double share = overlap(begin, end, &e) / (double)(end - begin);
        if (e.kind == KERNEL) {
            a.sm += share * e.sm;
            a.tensor += share * e.tensor;
            a.resident += share;
        } else {
            a.copy += share;
        }
    }
    fclose(file);
    return a;
}

struct activity activity_of(const struct line *device, ns_t begin, ns_t end) {
    const char *path = value_of(device, "busy");
    if (path && end > begin) return from_log(path, begin, end);
    struct activity a = {number(device, "sm", 0), number(device, "tensor", 0), 0, number(device, "copy", 0), 1};
    a.resident = number(device, "resident", a.sm > 0 ? 1 : 0);
    return a;
}
