/* The scenario a stand-in library plays: what GPUs there are, what they do, and what goes wrong when.
 *
 * A text file named by DATAWAIT_STANDIN, one directive a line: a word and key=value pairs; a value with spaces stands in
 * double quotes; # begins a comment. Times are on CLOCK_MONOTONIC, relative to `start at=<ns>` (default: when the library
 * was loaded). A directive with at= and for= is in force from at, for that long; without for= from at on; without both always.
 * The directives are listed in the package comment of standin.go. */
#ifndef DATAWAIT_SCENARIO_H
#define DATAWAIT_SCENARIO_H

#include <stdint.h>

typedef int64_t ns_t;

struct pair { char key[24], value[232]; };
struct line { char what[24]; int count; struct pair pairs[48]; };

/* Reads the file, once. Ends the process with a message if it makes no sense: a test must not go on without its scenario. */
void scenario_load(void);

/* The next line of this kind after `after` (NULL: the first), NULL if there is none. */
const struct line *next_line(const char *what, const struct line *after);
/* The same among those in force now. */
const struct line *next_in_force(const char *what, const struct line *after);

const char *value_of(const struct line *line, const char *key); /* NULL if the line has no such key */
const char *text(const struct line *line, const char *key, const char *otherwise);
double number(const struct line *line, const char *key, double otherwise);
ns_t duration(const struct line *line, const char *key, ns_t otherwise); /* "150ms", "2s", "30us", "7" (ns) */

ns_t monotonic(void);
ns_t scenario_start(void);
int in_force(const struct line *line, ns_t monotonic_now);

/* What happens at the door of every function: hangs for as long as a `hang call=NAME` says, and returns the code of a
 * `fail call=NAME code=N` in force, else 0. *hung is how long it hung. */
int at_the_door(const char *call, ns_t *hung);

/* Work of a device over a window, 0-1. */
struct activity { double sm, tensor, resident, copy; int known; };

/* From the busy log of the line's busy=PATH (recording SPEC §7), else from its sm=, tensor= and resident= constants. */
struct activity activity_of(const struct line *device, ns_t begin, ns_t end);

#endif
