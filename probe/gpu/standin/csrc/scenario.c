#include "scenario.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static struct line *lines;
static int line_count;
static ns_t start;
static pthread_once_t once = PTHREAD_ONCE_INIT;

ns_t monotonic(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (ns_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void nonsense(const char *path, int number, const char *why) {
    fprintf(stderr, "stand-in library: %s:%d: %s\n", path, number, why);
    exit(120);
}

/* Takes one word, unquoting; returns what follows, NULL at the end of the line. */
static char *take_word(char *p, char *word, size_t size) {
    size_t n = 0;
    int quoted = 0;
    p += strspn(p, " \t\r\n");
    if (*p == 0 || *p == '#') return NULL;
    for (; *p && (quoted || !strchr(" \t\r\n", *p)); p++) {
        if (*p == '"') quoted = !quoted;
        else if (n + 1 < size) word[n++] = *p;
    }
    word[n] = 0;
    return p;
}

static void parse(const char *path, int number, char *p) {
    char word[sizeof(struct pair)];
    if ((p = take_word(p, word, sizeof word)) == NULL) return;
    lines = realloc(lines, sizeof *lines * (line_count + 1));
    struct line *line = memset(&lines[line_count++], 0, sizeof *lines);
    snprintf(line->what, sizeof line->what, "%.*s", (int)sizeof line->what - 1, word);
    while ((p = take_word(p, word, sizeof word)) != NULL) {
        char *equals = strchr(word, '=');
        if (equals == NULL || line->count == sizeof line->pairs / sizeof *line->pairs) nonsense(path, number, "not key=value, or too many");
        struct pair *pair = &line->pairs[line->count++];
        snprintf(pair->key, sizeof pair->key, "%.*s", (int)(equals - word), word);
        snprintf(pair->value, sizeof pair->value, "%s", equals + 1);
    }
}

static void load(void) {
    start = monotonic();
    const char *path = getenv("DATAWAIT_STANDIN");
    FILE *file = path ? fopen(path, "r") : NULL;
    if (file == NULL) nonsense(path ? path : "DATAWAIT_STANDIN", 0, "no scenario to play");
    char buffer[4096];
    for (int number = 1; fgets(buffer, sizeof buffer, file); number++) parse(path, number, buffer);
    fclose(file);
    const struct line *line = next_line("start", NULL);
    if (line) start = strtoll(text(line, "at", "0"), NULL, 10);
}

void scenario_load(void) { pthread_once(&once, load); }

ns_t scenario_start(void) { return start; }

/* A comparison that mostly ends at the first letter: thousands are made for each poll, and none of them by a real library. */
static int same(const char *a, const char *b) { return a[0] == b[0] && strcmp(a, b) == 0; }

const struct line *next_line(const char *what, const struct line *after) {
    for (const struct line *l = after ? after + 1 : lines; l < lines + line_count; l++)
        if (same(l->what, what)) return l;
    return NULL;
}

const struct line *next_in_force(const char *what, const struct line *after) {
    ns_t now = monotonic();
    while ((after = next_line(what, after)) != NULL && !in_force(after, now)) {}
    return after;
}

const char *value_of(const struct line *line, const char *key) {
    for (int i = 0; i < line->count; i++)
        if (same(line->pairs[i].key, key)) return line->pairs[i].value;
    return NULL;
}

const char *text(const struct line *line, const char *key, const char *otherwise) {
    const char *v = value_of(line, key);
    return v ? v : otherwise;
}

double number(const struct line *line, const char *key, double otherwise) {
    const char *v = value_of(line, key);
    return v ? strtod(v, NULL) : otherwise;
}

ns_t duration(const struct line *line, const char *key, ns_t otherwise) {
    const char *v = value_of(line, key);
    if (v == NULL) return otherwise;
    char *unit;
    double n = strtod(v, &unit);
    double scale = strcmp(unit, "s") == 0 ? 1e9 : strcmp(unit, "ms") == 0 ? 1e6 : strcmp(unit, "us") == 0 ? 1e3 : 1;
    return (ns_t)(n * scale);
}

int in_force(const struct line *line, ns_t now) {
    ns_t begin = start + duration(line, "at", INT64_MIN / 2);
    if (value_of(line, "for") == NULL) return now >= begin;
    return now >= begin && now < begin + duration(line, "for", 0);
}

static int names(const struct line *line, const char *call) {
    const char *wanted = text(line, "call", "*");
    size_t n = strlen(wanted);
    return n > 0 && wanted[n - 1] == '*' ? strncmp(wanted, call, n - 1) == 0 : strcmp(wanted, call) == 0;
}

int at_the_door(const char *call, ns_t *hung) {
    scenario_load();
    ns_t from = monotonic();
    *hung = 0;
    for (const struct line *l = next_in_force("hang", NULL); l; l = next_in_force("hang", l)) {
        if (!names(l, call)) continue;
        ns_t most = duration(l, "timeout", 60000000000);
        while (in_force(l, monotonic()) && monotonic() - from < most) {
            struct timespec nap = {0, 2000000};
            nanosleep(&nap, NULL);
        }
        *hung = monotonic() - from >= most ? most : 0;
    }
    for (const struct line *l = next_in_force("fail", NULL); l; l = next_in_force("fail", l))
        if (names(l, call)) return (int)number(l, "code", -3);
    return 0;
}
