/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads the whole configuration, sets defaults, and checks its parts against each other. */
#include "pipeline/config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/file.h"
#include "netio/port.h"
#include "pipeline/config_words.h"
#include "pipeline/kind.h"

static int default_sources(struct pl_config *c)
{
	static const char *const uris[] = { "udp://:32766", "udp://:54321" };
	struct pl_config_source *s = calloc(2, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	c->sources.items = s;
	c->sources.n = 2;
	for (size_t i = 0; i < 2; i++) {
		s[i].sockets = 1;
		s[i].uri = strdup(uris[i]);
		if (s[i].uri == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int check_level(const struct pl_config_level *l, const char *name, struct pl_diag *diag)
{
	if (l->on && l->threshold == 0 && l->relative == 0 && !l->anomaly && l->step == 0 &&
		l->step_relative == 0 && l->step_bits == 0 && !l->step_first)
		return pl_diag_fail(diag, -EINVAL,
			"detect.%s is enabled without any of the keys threshold, relative, anomaly, step: it would never report an event",
			name);
	if (l->on && l->threshold > 0 && l->low > l->threshold)
		return pl_diag_fail(
			diag, -EINVAL, "detect.%s.low is above detect.%s.threshold", name, name);
	return 0;
}

static int check_levels(const struct pl_config *c, struct pl_diag *diag)
{
	const struct {
		const struct pl_config_level *level;
		const char *name;
	} all[] = {
		{ &c->detect.queue_depth, "queue_depth" },
		{ &c->detect.hop_latency, "hop_latency" },
		{ &c->detect.link_latency, "link_latency" },
		{ &c->detect.flow_latency, "flow_latency" },
		{ &c->detect.tx_util, "tx_util" },
		{ &c->detect.buffer_depth, "buffer_depth" },
	};
	int r = 0;

	for (size_t i = 0; r == 0 && i < sizeof(all) / sizeof(all[0]); i++)
		r = check_level(all[i].level, all[i].name, diag);
	return r;
}

static bool same(const char *a, const char *b)
{
	return a != NULL && b != NULL && strcmp(a, b) == 0;
}

/* Word 0 is auto; the other words, listed in `maybe`, are those of a boolean. */
static bool resolve(unsigned int word, bool automatic)
{
	return word == 0 ? automatic : word % 2 == 1;
}

static void resolve_output(struct pl_config_output *o)
{
	const struct pl_output_kind *k = pl_output_kinds[o->type];

	o->paths = resolve(o->paths_word, k->paths == PL_TAKES);
	o->events = resolve(o->events_word, k->events == PL_TAKES);
	o->values = resolve(o->values_word, k->values == PL_TAKES);
	if (k->series == PL_CANNOT)
		o->interval_ns = 0;
	if (k->resolve != NULL)
		k->resolve(o);
}

/* Finds the region of this process that an output writes. No other output may write it. */
static int find_region(const struct pl_config *c, size_t i, struct pl_diag *diag)
{
	struct pl_config_output *outputs = c->outputs.items, *o = &outputs[i];
	const struct pl_config_region *r = c->regions.items;

	o->dta.path = NULL;
	if (!pl_output_kinds[o->type]->dta || o->to != NULL || o->dta.region == NULL)
		return 0;
	for (size_t k = 0; k < c->regions.n; k++) {
		if (r[k].writer == PL_WRITER_OUTPUT && same(r[k].name, o->dta.region))
			o->dta.path = r[k].path;
	}
	for (size_t k = 0; k < i; k++) {
		if (o->dta.path == NULL || outputs[k].dta.path != o->dta.path)
			continue;
		return pl_diag_fail(diag, -EINVAL,
			"outputs %zu and %zu write the region %s; a region has one writer", k + 1,
			i + 1, o->dta.region);
	}
	if (o->dta.path != NULL)
		return 0;
	return pl_diag_fail(diag, -EINVAL,
		"output %zu (%s, type dta): there is no region \"%s\" with writer: output", i + 1,
		o->name, o->dta.region);
}

/* Refuses a region with writer: output that no output names. */
static int check_written(const struct pl_config *c, struct pl_diag *diag)
{
	const struct pl_config_output *o = c->outputs.items;
	const struct pl_config_region *r = c->regions.items;

	for (size_t k = 0; k < c->regions.n; k++) {
		bool written = r[k].writer != PL_WRITER_OUTPUT;

		for (size_t i = 0; i < c->outputs.n && !written; i++)
			written = o[i].dta.path == r[k].path;
		if (written)
			continue;
		return pl_diag_fail(diag, -EINVAL,
			"region %s has writer: output, but no output of type dta names it",
			r[k].name);
	}
	return 0;
}

/* Refuses keys of DTA, and `to`, where they do not apply. */
static int check_dta_strays(const struct pl_config_output *o, struct pl_diag *diag)
{
	const struct pl_output_kind *k = pl_output_kinds[o->type];
	const struct pl_output_stray strays[] = { { k->to ? NULL : o->to, "to" },
		{ o->dta.region, "region" }, { o->dta.key.n > 0 ? "" : NULL, "key" },
		{ o->dta.value.n > 0 ? "" : NULL, "value" } };

	return k->dta ? 0
		      : pl_output_check_strays(strays, sizeof(strays) / sizeof(strays[0]), diag);
}

static int check_output(const struct pl_config_output *o, size_t number, struct pl_diag *diag)
{
	const struct pl_output_kind *k = pl_output_kinds[o->type];
	struct pl_diag inner = { .text = "" };
	const char *wrong = NULL;

	if (o->paths && k->paths == PL_CANNOT)
		wrong = "cannot write paths";
	else if (o->events && k->events == PL_CANNOT)
		wrong = "cannot write events";
	else if (o->values && k->values == PL_CANNOT)
		wrong = "cannot write values of regions";
	else if (!o->paths && !o->events && !o->values && !k->packets && o->interval_ns == 0)
		wrong = k->series != PL_CANNOT
				? "nothing to write: paths, events, values and interval are off"
				: "nothing to write: paths, events and values are off";
	else if (check_dta_strays(o, &inner) < 0 || k->check(o, &inner) < 0)
		wrong = inner.text;
	if (wrong == NULL)
		return 0;
	return pl_diag_fail(diag, -EINVAL, "output %zu (%s, type %s): %s", number, o->name,
		pl_config_output_types[o->type], wrong);
}

const char *pl_config_output_identity(const struct pl_config_output *o)
{
	return o->path != NULL ? o->path : o->name;
}

/* Returns a name that no output has: TYPE and a number. NULL: no memory. */
static char *make_up_name(const struct pl_config *c, size_t number)
{
	const struct pl_config_output *o = c->outputs.items;
	const char *type = pl_config_output_types[o[number].type];
	char name[32];
	bool used = true;

	for (size_t k = number; used; k++) {
		snprintf(name, sizeof(name), "%s%zu", type, k);
		used = false;
		for (size_t i = 0; i < c->outputs.n; i++)
			used = used || same(o[i].name, name);
	}
	return strdup(name);
}

static int name_outputs(struct pl_config *c, struct pl_diag *diag)
{
	struct pl_config_output *o = c->outputs.items;

	for (size_t i = 0; i < c->outputs.n; i++) {
		if (o[i].name == NULL) {
			o[i].unnamed = true;
			o[i].name = make_up_name(c, i);
			if (o[i].name == NULL)
				return -ENOMEM;
		}
		resolve_output(&o[i]);
		if (check_output(&o[i], i + 1, diag) < 0 || find_region(c, i, diag) < 0)
			return -EINVAL;
		for (size_t j = 0; j < i; j++) {
			const char *what = same(o[i].name, o[j].name)               ? "name"
					   : same(o[i].path, o[j].path)             ? "path"
					   : same(o[i].spool_path, o[j].spool_path) ? "spool.path"
					   : same(o[i].dead_letter_path, o[j].dead_letter_path)
						   ? "dead_letter.path"
						   : NULL;

			if (what == NULL)
				continue;
			return pl_diag_fail(diag, -EINVAL, "outputs %zu and %zu have the same %s",
				j + 1, i + 1, what);
		}
	}
	return check_written(c, diag);
}

/* Refuses detection in the kernel when no source supports it: it must not silently happen
 * elsewhere. */
static int check_where(const struct pl_config *c, struct pl_diag *diag)
{
	const struct pl_config_source *s = c->sources.items;
	const struct pl_config_output *o = c->outputs.items;

	for (size_t i = 0; c->detect_where < PL_DETECT_AUTO && i < c->outputs.n; i++) {
		if (c->detect_where == PL_DETECT_USER || !pl_output_kinds[o[i].type]->packets)
			continue;
		return pl_diag_fail(diag, -EINVAL,
			"output %zu (%s, type raw): packets that the kernel reads do not arrive here: detect.where must be user or auto",
			i + 1, o[i].name);
	}
	if (c->detect_where != PL_DETECT_KERNEL && c->detect_where != PL_DETECT_BOTH)
		return 0;
	for (size_t i = 0; i < c->sources.n; i++) {
		if ((pl_port_uri_can(s[i].uri) & PL_PORT_CAN_DETECT) != 0)
			return 0;
	}
	return pl_diag_fail(diag, -EINVAL,
		"detect.where is %s, but no source is afxdp:; reports of %s are detected in user space: remove detect.where, or receive the reports by afxdp:INTERFACE",
		c->detect_where == PL_DETECT_KERNEL ? "kernel" : "both", s[0].uri);
}

static int finish(struct pl_config *c, struct pl_diag *diag)
{
	const struct pl_config_source *s;
	struct pl_core_units units;
	struct pl_profile *profiles;
	int r;

	if (c->sources.n == 0 && !pl_config_has_services(c)) {
		r = default_sources(c);
		if (r < 0)
			return r;
	}
	s = c->sources.items;
	for (size_t i = 0; i < c->sources.n; i++) {
		char uri[512];

		for (size_t j = 0; j < i; j++) {
			if (strcmp(s[i].uri, s[j].uri) != 0)
				continue;
			return pl_diag_fail(diag, -EINVAL,
				"sources %zu and %zu are the same; use the key sockets for more workers",
				j + 1, i + 1);
		}
		if ((pl_port_uri_can(s[i].uri) & PL_PORT_CAN_SHARE) == 0 &&
			(s[i].sockets > 1 || s[i].rcvbuf_bytes > 0))
			return pl_diag_fail(diag, -EINVAL,
				"source %zu (%s): the keys sockets and rcvbuf apply to udp: only",
				i + 1, s[i].uri);
		if (!pl_config_source_uri(&s[i], uri, sizeof(uri)))
			return pl_diag_fail(
				diag, -EINVAL, "the URI of source %zu is too long", i + 1);
	}
	if (pl_config_workers(c) > PL_WORKERS_MAX)
		return pl_diag_fail(diag, -EINVAL, "%u sockets in total; the limit is %d",
			pl_config_workers(c), PL_WORKERS_MAX);
	r = check_where(c, diag);
	if (r == 0)
		r = check_levels(c, diag);
	if (r == 0)
		r = pl_config_check_services(c, diag);
	if (r == 0)
		r = pl_config_check_alerts(c, diag);
	if (r == 0)
		r = name_outputs(c, diag);
	if (r == 0)
		r = pl_config_units(c, &units, diag);
	if (r < 0)
		return r;
	r = pl_config_profiles(c, &profiles, diag);
	if (r == 0)
		free(profiles);
	return r;
}

int pl_config_defaults(struct pl_config *ret)
{
	struct pl_config c = { 0 };
	int r = pl_conf_defaults(pl_config_rows, &c);

	if (r == 0)
		r = finish(&c, NULL);
	if (r < 0) {
		pl_config_done(&c);
		return r;
	}
	*ret = c;
	return 0;
}

/* Moves a parsed configuration to *ret if its parts agree; else frees it, and ret_fault is the path
 * of the key at fault, if known. */
static int adopt(struct pl_config *ret, struct pl_config *c, const char *name,
	char ret_fault[sizeof(c->fault)], struct pl_diag *diag)
{
	int r;

	if (diag != NULL) {
		snprintf(diag->file, sizeof(diag->file), "%s", name);
		diag->line = diag->column = 0;
	}
	r = finish(c, diag);
	memcpy(ret_fault, c->fault, sizeof(c->fault));
	if (r < 0) {
		pl_config_done(c);
		return r;
	}
	*ret = *c;
	return 0;
}

/* Sets the line of the key at fault, in a file that was just read. */
static void find_fault(const char *path, const char *fault, struct pl_diag *diag)
{
	char *text;
	size_t len;

	if (*fault == '\0' || strcmp(path, "-") == 0 ||
		pl_file_read(path, 1 << 20, &text, &len) < 0)
		return;
	pl_conf_where(text, len, fault, diag);
	free(text);
}

int pl_config_parse(
	struct pl_config *ret, const char *name, const char *text, size_t len, struct pl_diag *diag)
{
	struct pl_config c = { 0 };
	char fault[sizeof(c.fault)] = "";
	int r = pl_conf_parse(pl_config_rows, name, text, len, &c, diag);

	if (r == 0)
		r = adopt(ret, &c, name, fault, diag);
	if (*fault != '\0')
		pl_conf_where(text, len, fault, diag);
	return r;
}

int pl_config_load(struct pl_config *ret, const char *path, struct pl_diag *diag)
{
	struct pl_config c = { 0 };
	struct pl_conf_ending ending;
	char fault[sizeof(c.fault)] = "";
	int r = pl_conf_load(pl_config_rows, path, &c, &ending, diag);

	if (r == 0)
		r = adopt(ret, &c, path, fault, diag);
	if (r == 0)
		ret->ending = ending;
	else
		find_fault(path, fault, diag);
	return r;
}

/* Returns whether the file does not change for a moment: its writer has finished, or has paused for
 * long. */
static bool is_at_rest(const char *path)
{
	const struct timespec pause = { .tv_nsec = 100000000 };
	struct stat before, now;

	if (stat(path, &before) < 0 || !S_ISREG(before.st_mode))
		return true; /* reading it gives the error */
	for (unsigned int i = 0; i < 20; i++) {
		nanosleep(&pause, NULL);
		if (stat(path, &now) < 0 ||
			(before.st_ino == now.st_ino && before.st_size == now.st_size &&
				before.st_mtim.tv_sec == now.st_mtim.tv_sec &&
				before.st_mtim.tv_nsec == now.st_mtim.tv_nsec))
			return true;
		before = now;
	}
	return false;
}

int pl_config_load_again(
	struct pl_config *ret, const char *path, const struct pl_config *now, struct pl_diag *diag)
{
	const char *wrong = NULL;
	int r;

	if (!is_at_rest(path))
		return pl_diag_fail(diag, -EINVAL,
			"%s changes all the time; reload again when it is written", path);
	r = pl_config_load(ret, path, diag);
	if (r < 0)
		return r;
	if (now->ending.keys && !ret->ending.keys)
		wrong = "has no keys, but the file in use has";
	else if (now->ending.marker && !ret->ending.marker)
		wrong = "does not end with \"...\", but the file in use does";
	else if (now->ending.newline && !ret->ending.newline)
		wrong = "ends within a line, but the file in use does not";
	if (wrong == NULL)
		return 0;
	pl_config_done(ret);
	return pl_diag_fail(diag, -EINVAL, "%s %s: it seems to be half-written", path, wrong);
}

void pl_config_done(struct pl_config *config)
{
	pl_conf_done(pl_config_rows, config);
	memset(config, 0, sizeof(*config));
}

int pl_config_copy(struct pl_config *ret, const struct pl_config *config)
{
	struct pl_buf text;
	int r;

	pl_buf_init(&text);
	pl_conf_dump(pl_config_rows, config, &text);
	r = text.failed ? -ENOMEM : pl_config_parse(ret, "copy", text.data, text.len, NULL);
	pl_buf_done(&text);
	return r;
}
