/* SPDX-License-Identifier: BSD-2-Clause */
/* Names what a reload leaves as it was: fixed keys, and names of outputs. */
#include "pipeline/reload_fixed.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/text.h"
#include "pipeline/config_words.h"
#include "pipeline/kind.h"
#include "pipeline/state.h"

const struct pl_config_source *pl_config_find_source(const struct pl_config *c, const char *uri)
{
	const struct pl_config_source *s = c->sources.items;

	for (size_t i = 0; i < c->sources.n; i++) {
		if (strcmp(s[i].uri, uri) == 0)
			return &s[i];
	}
	return NULL;
}

const struct pl_config_output *pl_config_find_output(
	const struct pl_config *c, const char *identity)
{
	const struct pl_config_output *o = c->outputs.items;

	for (size_t i = 0; i < c->outputs.n; i++) {
		if (strcmp(pl_config_output_identity(&o[i]), identity) == 0)
			return &o[i];
	}
	return NULL;
}

bool pl_reload_same_names(const struct pl_conf_list *a, const struct pl_conf_list *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++) {
		if (strcmp(((char **)a->items)[i], ((char **)b->items)[i]) != 0)
			return false;
	}
	return true;
}

/* Compares all settings of a server output. Credentials are files, read at a reopen. */
static bool same_server(const struct pl_config_output *a, const struct pl_config_output *b)
{
	return pl_text_same(a->url, b->url) && a->api == b->api &&
	       pl_text_same(a->database, b->database) &&
	       pl_text_same(a->retention_policy, b->retention_policy) &&
	       pl_text_same(a->org, b->org) && pl_text_same(a->bucket, b->bucket) &&
	       pl_text_same(a->user, b->user) && pl_text_same(a->password_file, b->password_file) &&
	       pl_text_same(a->token_file, b->token_file) && a->gzip == b->gzip &&
	       a->interval_ns == b->interval_ns && a->max_keys == b->max_keys &&
	       a->max_series == b->max_series && pl_reload_same_names(&a->labels, &b->labels) &&
	       a->form == b->form && pl_text_same(a->link, b->link) &&
	       a->repeat_ns == b->repeat_ns && a->resolve_ns == b->resolve_ns &&
	       a->batch_entries == b->batch_entries && a->batch_bytes == b->batch_bytes &&
	       a->batch_age_ns == b->batch_age_ns && a->memory_bytes == b->memory_bytes &&
	       a->timeout_ns == b->timeout_ns && pl_text_same(a->spool_path, b->spool_path) &&
	       a->spool_bytes == b->spool_bytes && a->spool_full == b->spool_full &&
	       pl_text_same(a->dead_letter_path, b->dead_letter_path) &&
	       a->dead_letter_bytes == b->dead_letter_bytes && pl_text_same(a->tls.ca, b->tls.ca) &&
	       pl_text_same(a->tls.cert, b->tls.cert) && pl_text_same(a->tls.key, b->tls.key) &&
	       a->tls.insecure == b->tls.insecure;
}

static bool same_dta(const struct pl_config_output *a, const struct pl_config_output *b)
{
	return pl_text_same(a->to, b->to) && pl_text_same(a->dta.region, b->dta.region) &&
	       pl_text_same(a->dta.path, b->dta.path) && a->dta.primitive == b->dta.primitive &&
	       a->dta.record == b->dta.record && a->dta.key_form == b->dta.key_form &&
	       a->dta.byte_order == b->dta.byte_order &&
	       pl_reload_same_names(&a->dta.key, &b->dta.key) &&
	       pl_reload_same_names(&a->dta.value, &b->dta.value) && a->dta.list == b->dta.list &&
	       a->dta.ring == b->dta.ring && a->dta.sequenced == b->dta.sequenced &&
	       a->dta.immediate == b->dta.immediate;
}

static void fixed(bool changed, const char *key, const char *of)
{
	if (changed)
		pl_warn("reload", "%s%s%s is not changed while running; restart to change it", key,
			of[0] != '\0' ? " of " : "", of);
}

/* Logs the keys that stay as they were. */
static void say_fixed(const struct pl_config *from, const struct pl_config *to)
{
	const struct pl_config_source *s = from->sources.items;
	const struct pl_config_output *o = from->outputs.items;

	fixed(from->pin != to->pin, "pin", "");
	fixed(from->detect_where != to->detect_where, "detect.where", "");
	fixed(from->detect_aggregates != to->detect_aggregates, "detect.aggregates", "");
	fixed(!pl_text_same(from->user, to->user), "user", "");
	fixed(!pl_text_same(from->group, to->group), "group", "");
	fixed(from->core_dumps != to->core_dumps, "core_dumps", "");
	fixed(!pl_text_same(from->web.listen, to->web.listen), "web.listen", "");
	fixed(!pl_reload_same_names(&from->web.names, &to->web.names), "web.names", "");
	fixed(from->web.max_connections != to->web.max_connections, "web.max_connections", "");
	fixed(from->web.max_per_address != to->web.max_per_address, "web.max_per_address", "");
	fixed(from->web.max_streams != to->web.max_streams, "web.max_streams", "");
	fixed(from->web.stream_buffer != to->web.stream_buffer, "web.stream_buffer", "");
	fixed(!pl_text_same(from->web.socket, to->web.socket), "web.socket", "");
	fixed(from->metrics.max_exporters != to->metrics.max_exporters, "metrics.max_exporters",
		"");
	for (size_t i = 0; i < from->sources.n; i++) {
		const struct pl_config_source *n = pl_config_find_source(to, s[i].uri);

		fixed(n != NULL && n->sockets != s[i].sockets, "sockets", s[i].uri);
		fixed(n != NULL && n->rcvbuf_bytes != s[i].rcvbuf_bytes, "rcvbuf", s[i].uri);
	}
	for (size_t i = 0; i < from->outputs.n; i++) {
		const struct pl_config_output *n =
			pl_config_find_output(to, pl_config_output_identity(&o[i]));

		if (n == NULL)
			continue;
		fixed(n->type != o[i].type, "type", o[i].name);
		fixed(n->queue_records != o[i].queue_records, "queue", o[i].name);
		fixed(n->buffer_bytes != o[i].buffer_bytes, "buffer", o[i].name);
		fixed(n->rotate_size_bytes != o[i].rotate_size_bytes ||
				n->rotate_age_ns != o[i].rotate_age_ns ||
				n->rotate_keep != o[i].rotate_keep,
			"rotate", o[i].name);
		fixed(memcmp(&n->keep, &o[i].keep, sizeof(n->keep)) != 0, "keep", o[i].name);
		fixed(!same_server(n, &o[i]), "the server or how it is written to", o[i].name);
		fixed(!same_dta(n, &o[i]), "the telemetry memory or how it is written", o[i].name);
	}
}

/* Copies running values over new ones that cannot be applied, for those keys with which the next
 * reload compares, or by which workers size their tables. */
static void keep_fixed(struct pl_config *from, struct pl_config *to)
{
	struct pl_config_source *s = from->sources.items;
	struct pl_config_output *o = from->outputs.items;

	to->metrics.max_exporters = from->metrics.max_exporters;
	to->pin = from->pin;
	to->detect_where = from->detect_where;
	to->detect_aggregates = from->detect_aggregates;
	for (size_t i = 0; i < from->sources.n; i++) {
		struct pl_config_source *n =
			(struct pl_config_source *)pl_config_find_source(to, s[i].uri);

		if (n != NULL) {
			n->sockets = s[i].sockets;
			n->rcvbuf_bytes = s[i].rcvbuf_bytes;
		}
	}
	for (size_t i = 0; i < from->outputs.n; i++) {
		struct pl_config_output *n = (struct pl_config_output *)pl_config_find_output(
			to, pl_config_output_identity(&o[i]));

		if (n != NULL) {
			n->queue_records = o[i].queue_records;
			n->buffer_bytes = o[i].buffer_bytes;
			n->rotate_size_bytes = o[i].rotate_size_bytes;
			n->rotate_age_ns = o[i].rotate_age_ns;
			n->rotate_keep = o[i].rotate_keep;
			n->keep = o[i].keep;
			if (pl_output_kinds[o[i].type]->dta) {
				n->dta.record = o[i].dta.record;
				n->paths = o[i].paths;
				n->events = o[i].events;
			}
		}
	}
}

void pl_reload_keep_fixed(struct pl_config *from, struct pl_config *to)
{
	say_fixed(from, to);
	keep_fixed(from, to);
}

/* ---- names of outputs ---- */

static int rename_output(struct pl_config_output *o, const char *name)
{
	char *copy = strdup(name);

	if (copy == NULL)
		return -ENOMEM;
	free(o->name);
	o->name = copy;
	return 0;
}

/* Returns whether both are the same output without a name or file, wherever in the list. */
static bool same_unnamed(const struct pl_config_output *a, const struct pl_config_output *b)
{
	return a->unnamed && b->unnamed && a->path == NULL && b->path == NULL &&
	       a->type == b->type && same_server(a, b) && same_dta(a, b);
}

static bool has_name(
	const struct pl_config *c, const struct pl_config_output *but, const char *name)
{
	const struct pl_config_output *o = c->outputs.items;

	for (size_t i = 0; i < c->outputs.n; i++) {
		if (&o[i] != but && strcmp(o[i].name, name) == 0)
			return true;
	}
	return false;
}

/* Finds the running output that `o` continues and claims it; NULL: `o` is new. */
static const struct pl_config_output *running(
	const struct pl_config *from, const struct pl_config_output *o, bool *claimed)
{
	const struct pl_config_output *r = from->outputs.items;

	for (size_t i = 0; i < from->outputs.n; i++) {
		const bool same = o->path != NULL || !o->unnamed
					  ? strcmp(pl_config_output_identity(&r[i]),
						    pl_config_output_identity(o)) == 0
					  : same_unnamed(&r[i], o);

		if (!same || claimed[i])
			continue;
		claimed[i] = true;
		return &r[i];
	}
	return NULL;
}

/* Generates a name that no output has, neither before nor after. */
static int name_anew(
	const struct pl_config *from, const struct pl_config *to, struct pl_config_output *o)
{
	char name[32];

	snprintf(name, sizeof(name), "%s", o->name);
	for (unsigned int k = 0; has_name(from, NULL, name) || has_name(to, o, name); k++)
		snprintf(name, sizeof(name), "%s%u", pl_config_output_types[o->type], k);
	return rename_output(o, name);
}

int pl_reload_names(struct pl_config *from, struct pl_config *to, struct pl_diag *diag)
{
	struct pl_config_output *o = to->outputs.items;
	bool claimed[PL_OUTPUTS_MAX] = { false }, is_new[PL_OUTPUTS_MAX] = { false };
	int r = 0;

	/* Outputs that stay keep the names that they run under. */
	for (size_t i = 0; r == 0 && i < to->outputs.n; i++) {
		const struct pl_config_output *was = running(from, &o[i], claimed);

		is_new[i] = was == NULL;
		if (was == NULL || strcmp(was->name, o[i].name) == 0)
			continue;
		fixed(!o[i].unnamed, "name", was->name);
		r = rename_output(&o[i], was->name);
	}
	for (size_t i = 0; r == 0 && i < to->outputs.n; i++) {
		if (is_new[i] && o[i].unnamed)
			r = name_anew(from, to, &o[i]);
	}
	for (size_t i = 0; r == 0 && i < to->outputs.n; i++) {
		if (is_new[i] && has_name(to, &o[i], o[i].name))
			return pl_diag_fail(diag, -EINVAL,
				"output %zu: an output that stays runs under the name %s: give it another one, or restart",
				i + 1, o[i].name);
	}
	return r;
}
