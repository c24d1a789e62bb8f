/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends events as alerts. */
#include "export/webhook.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/counter.h"
#include "base/hash.h"
#include "base/json.h"
#include "base/num.h"
#include "record/path_book.h"
#include "record/put.h"

enum { TIME_MAX = 40, TEXT_MAX = 160, PLACE_MAX = 256, ALERT_TEXT_MAX = 8192 };

#define REPEAT_DEFAULT  (UINT64_C(60) * 1000000000)
#define RESOLVE_DEFAULT (UINT64_C(300) * 1000000000)
#define REPEATS_AHEAD   3
#define FIRING          "{\"status\":\"firing\""

/* A lasting alert. The texts are JSON objects. */
struct alert {
	uint64_t hash;
	uint64_t starts_ns, told_ns;
	char *labels, *annotations;
};

struct webhook {
	enum pl_webhook_form form;
	char *labels[PL_WEBHOOK_LABELS_MAX];
	uint32_t n_labels;
	char *link;
	uint64_t repeat_ns, resolve_ns;
	struct alert *alerts;
	uint32_t n, next; /* next: position of format_due */
	struct pl_buf label_text, annotation_text;
	struct pl_counter folded;
};

/* RFC 3339 in UTC. */
static void time_text(char dst[TIME_MAX], uint64_t ns)
{
	time_t seconds = (time_t)(ns / 1000000000);
	struct tm tm;
	size_t n;

	if (gmtime_r(&seconds, &tm) == NULL)
		memset(&tm, 0, sizeof(tm));
	n = strftime(dst, TIME_MAX, "%Y-%m-%dT%H:%M:%S", &tm);
	snprintf(dst + n, TIME_MAX - n, ".%09uZ", (unsigned int)(ns % 1000000000));
}

static void number_member(struct pl_json *j, const char *key, bool there, uint64_t value)
{
	char text[24];

	if (!there)
		return;
	snprintf(text, sizeof(text), "%" PRIu64, value);
	pl_json_text(j, key, text);
}

static void hex_member(struct pl_json *j, const char *key, bool there, uint64_t value)
{
	char text[24];

	if (!there)
		return;
	snprintf(text, sizeof(text), "%016" PRIx64, value);
	pl_json_text(j, key, text);
}

static bool labelled(const struct webhook *w, const char *name)
{
	size_t len = strlen(name);

	for (uint32_t i = 0; i < w->n_labels; i++) {
		if (strncmp(w->labels[i], name, len) == 0 && w->labels[i][len] == '=')
			return true;
	}
	return false;
}

static void added_labels(const struct webhook *w, struct pl_json *j)
{
	for (uint32_t i = 0; i < w->n_labels; i++) {
		const char *is = strchr(w->labels[i], '=');
		char name[TEXT_MAX + 1];

		snprintf(name, sizeof(name), "%.*s", (int)(is - w->labels[i]), w->labels[i]);
		pl_json_text(j, name, is + 1);
	}
}

static void flow_member(struct pl_json *j, const struct pl_event *e)
{
	char src[PL_ADDR_TEXT_MAX], dst[PL_ADDR_TEXT_MAX], text[TEXT_MAX];

	if ((e->present & PL_EVENT_HAS_src) == 0)
		return;
	pl_format_addr(src, &e->src);
	pl_format_addr(dst, &e->dst);
	if ((e->present & PL_EVENT_HAS_sport) != 0)
		snprintf(text, sizeof(text), "%s port %u to %s port %u, protocol %u", src, e->sport,
			dst, e->dport, e->proto);
	else
		snprintf(text, sizeof(text), "%s to %s, protocol %u", src, dst, e->proto);
	pl_json_text(j, "flow", text);
}

/* Makes a text of an event printable: it may come from elsewhere with any bytes. */
static const char *plain(char dst[PL_TEXT_TOLD + 1], const void *text, size_t size)
{
	char room[PL_TEXT_TOLD + 1] = "";

	memcpy(room, text, size);
	*put_plain(dst, room, PL_TEXT_TOLD) = '\0';
	return dst;
}

/* Adds a standing query and the group that it found. */
static void query_members(const struct webhook *w, struct pl_json *j, const struct pl_event *e)
{
	const struct pl_text16 query = pl_event_get_query(e);
	const struct pl_text40 key = pl_event_get_key(e);
	char text[PL_TEXT_TOLD + 1];

	if ((e->present & PL_EVENT_HAS_query) != 0 && !labelled(w, "query"))
		pl_json_text(j, "query", plain(text, query.c, sizeof(query.c)));
	if ((e->present & PL_EVENT_HAS_key) != 0 && !labelled(w, "key"))
		pl_json_text(j, "key", plain(text, key.c, sizeof(key.c)));
}

/* Reads the event's region; returns false when it has none. */
static bool region_of(char dst[PL_TEXT_TOLD + 1], const struct pl_event *e)
{
	const struct pl_text32 region = pl_event_get_region(e);

	if ((e->present & PL_EVENT_HAS_region) == 0)
		return false;
	(void)plain(dst, region.c, sizeof(region.c));
	return true;
}

static void region_members(const struct webhook *w, struct pl_json *j, const struct pl_event *e)
{
	char text[PL_TEXT_TOLD + 1];

	if (!region_of(text, e))
		return;
	if (!labelled(w, "region"))
		pl_json_text(j, "region", text);
	number_member(j, "place", !labelled(w, "place"), pl_event_get_place(e));
}

/*
 * Writes the labels that identify the place of an event; the flow only where it is the place. An
 * operator's label replaces one of the same name. The reporting exporter is part of single events
 * only: begin and end of a lasting event may come from different reports, or the end from none.
 */
static void write_labels(struct webhook *w, const struct pl_event *e)
{
	/* For a loss of reports the exporter is the place. */
	bool reporter = e->phase == PL_PHASE_ONCE || e->event == PL_EVENT_REPORT_LOSS;
	const struct {
		const char *name;
		bool there;
		uint64_t value;
	} numbers[] = {
		{ "node", (e->present & PL_EVENT_HAS_node) != 0, e->node },
		{ "port", (e->present & PL_EVENT_HAS_port) != 0, e->port },
		{ "queue", (e->present & PL_EVENT_HAS_queue) != 0, e->queue },
		{ "hw_id", reporter && (e->present & PL_EVENT_HAS_hw_id) != 0, e->hw_id },
		{ "drop_reason", (e->present & PL_EVENT_HAS_drop_reason) != 0, e->drop_reason },
	};
	char text[TEXT_MAX];
	struct pl_json j;

	pl_buf_reset(&w->label_text);
	pl_json_init(&j, &w->label_text);
	pl_json_object(&j);
	snprintf(text, sizeof(text), "pathline_%s", pl_event_kind_name(e->event));
	if (!labelled(w, "alertname"))
		pl_json_text(&j, "alertname", text);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++)
		number_member(&j, numbers[i].name,
			numbers[i].there && !labelled(w, numbers[i].name), numbers[i].value);
	query_members(w, &j, e);
	region_members(w, &j, e);
	if (reporter && (e->present & PL_EVENT_HAS_exporter) != 0 && !labelled(w, "exporter")) {
		pl_format_addr(text, &e->exporter);
		pl_json_text(&j, "exporter", text);
	}
	if (!reporter && (e->present & PL_EVENT_HAS_node) == 0 && !labelled(w, "flow"))
		flow_member(&j, e);
	added_labels(w, &j);
	pl_json_object_end(&j);
}

/* Appends to the text, as far as there is room. */
__attribute__((format(printf, 2, 3))) static void add_place(
	char dst[PLACE_MAX], const char *fmt, ...)
{
	const size_t n = strlen(dst);
	va_list args;

	va_start(args, fmt);
	vsnprintf(dst + n, PLACE_MAX - n, fmt, args);
	va_end(args);
}

/* Writes the places of an event; one from elsewhere may have all of them. */
static void put_place(char dst[PLACE_MAX], const struct pl_event *e)
{
	const struct pl_text16 query = pl_event_get_query(e);
	const struct pl_text40 key = pl_event_get_key(e);
	char words[PL_TEXT_TOLD + 1];

	dst[0] = '\0';
	if (region_of(words, e))
		add_place(dst, " in region %s at %" PRIu64, words, pl_event_get_place(e));
	if ((e->present & PL_EVENT_HAS_query) != 0)
		add_place(dst, " %s", plain(words, query.c, sizeof(query.c)));
	if ((e->present & PL_EVENT_HAS_key) != 0)
		add_place(dst, " of %s", plain(words, key.c, sizeof(key.c)));
	if ((e->present & PL_EVENT_HAS_node) != 0)
		add_place(dst, " at node %" PRIu64, e->node);
	if ((e->present & PL_EVENT_HAS_port) != 0)
		add_place(dst, " port %u", e->port);
	if ((e->present & PL_EVENT_HAS_queue) != 0)
		add_place(dst, " queue %u", e->queue);
}

static void write_annotations(struct webhook *w, const struct pl_event *e)
{
	const bool bytes = (e->present & PL_EVENT_HAS_unit) != 0;
	char text[TEXT_MAX], kind[64], value[64] = "", place[PLACE_MAX];
	char summary[sizeof(kind) + sizeof(place) + sizeof(value)], nodes[PL_PATH_NODES_TEXT];
	struct pl_path_nodes now, old;
	struct pl_json j;

	snprintf(kind, sizeof(kind), "%s", pl_event_kind_name(e->event));
	for (char *p = kind; *p != '\0'; p++)
		*p = *p == '_' ? ' ' : *p;
	if ((e->present & PL_EVENT_HAS_value) != 0)
		snprintf(value, sizeof(value), ": %" PRIu64 "%s", e->value, bytes ? " bytes" : "");
	put_place(place, e);
	snprintf(summary, sizeof(summary), "%s%s%s", kind, place, value);

	pl_buf_reset(&w->annotation_text);
	pl_json_init(&j, &w->annotation_text);
	pl_json_object(&j);
	pl_json_text(&j, "summary", summary);
	number_member(&j, "value", (e->present & PL_EVENT_HAS_value) != 0, e->value);
	number_member(&j, "threshold", (e->present & PL_EVENT_HAS_threshold) != 0, e->threshold);
	if (bytes)
		pl_json_text(&j, "unit", "bytes");
	flow_member(&j, e);
	if (e->phase != PL_PHASE_ONCE && e->event != PL_EVENT_REPORT_LOSS &&
		(e->present & PL_EVENT_HAS_exporter) != 0) {
		pl_format_addr(text, &e->exporter);
		pl_json_text(&j, "exporter", text);
	}
	if (pl_event_paths(e, &now, &old)) {
		(void)pl_path_nodes_text(nodes, &now);
		pl_json_text(&j, "path", nodes);
		(void)pl_path_nodes_text(nodes, &old);
		pl_json_text(&j, "old_path", nodes);
	}
	hex_member(&j, "path_id", (e->present & PL_EVENT_HAS_path_id) != 0, e->path_id);
	hex_member(&j, "old_path_id", (e->present & PL_EVENT_HAS_old_path_id) != 0, e->old_path_id);
	hex_member(&j, "report_id", (e->present & PL_EVENT_HAS_report_id) != 0, e->report_id);
	pl_json_object_end(&j);
}

struct span {
	uint64_t starts_ns, ends_ns;
	bool firing;
};

/* Writes one alert in the syntax of the form. */
static void write_alert(const struct webhook *w, const struct span *s, const char *labels,
	const char *annotations, uint64_t hash, struct pl_buf *out)
{
	char starts[TIME_MAX], ends[TIME_MAX];
	bool receiver = w->form == PL_WEBHOOK_RECEIVER;
	struct pl_json link;

	time_text(starts, s->starts_ns);
	time_text(ends, s->ends_ns);
	if (receiver)
		pl_buf_printf(out, "{\"status\":\"%s\",", s->firing ? "firing" : "resolved");
	else
		pl_buf_chr(out, '{');
	pl_buf_str(out, "\"labels\":");
	pl_buf_str(out, labels);
	pl_buf_str(out, ",\"annotations\":");
	pl_buf_str(out, annotations);
	pl_buf_printf(out, ",\"startsAt\":\"%s\",\"endsAt\":\"%s\"", starts,
		receiver && s->firing ? "0001-01-01T00:00:00Z" : ends);
	if (w->link != NULL || receiver) {
		pl_buf_str(out, ",\"generatorURL\":");
		pl_json_init(&link, out);
		pl_json_str(&link, w->link != NULL ? w->link : "");
	}
	if (receiver)
		pl_buf_printf(out, ",\"fingerprint\":\"%016" PRIx64 "\"", hash);
	pl_buf_chr(out, '}');
}

/* ---- alerts that last ---- */

static struct alert *find(struct webhook *w, uint64_t hash)
{
	for (uint32_t i = 0; i < w->n; i++) {
		if (w->alerts[i].hash == hash &&
			strcmp(w->alerts[i].labels, w->label_text.data) == 0)
			return &w->alerts[i];
	}
	return NULL;
}

static void forget(struct webhook *w, struct alert *a)
{
	free(a->labels);
	free(a->annotations);
	*a = w->alerts[--w->n];
}

static struct alert *remember(
	struct webhook *w, uint64_t hash, const struct pl_event *e, uint64_t real_ns)
{
	struct alert *a;

	if (w->n == PL_WEBHOOK_ALERTS) {
		pl_count(&w->folded, 1);
		return NULL;
	}
	a = &w->alerts[w->n];
	*a = (struct alert){ .hash = hash,
		.starts_ns = e->ts_ns,
		.told_ns = real_ns,
		.labels = strdup(w->label_text.data),
		.annotations = strdup(w->annotation_text.data) };
	if (a->labels == NULL || a->annotations == NULL) {
		free(a->labels);
		free(a->annotations);
		return NULL;
	}
	w->n++;
	return a;
}

static uint64_t later(uint64_t ns, uint64_t by_ns)
{
	return ns > UINT64_MAX - by_ns ? UINT64_MAX : ns + by_ns;
}

static uint64_t ahead(const struct webhook *w, uint64_t real_ns)
{
	return later(real_ns, REPEATS_AHEAD * w->repeat_ns);
}

/* Updates the lasting alerts with an event; returns the begin and end of its own alert. */
static struct span settle(
	struct webhook *w, const struct pl_event *e, uint64_t hash, uint64_t real_ns)
{
	struct alert *a = find(w, hash);
	struct span s = { .starts_ns = e->ts_ns, .ends_ns = e->ts_ns, .firing = true };

	switch (e->phase) {
	case PL_PHASE_BEGIN:
		if (a != NULL) { /* the alert lasts: its end was not sent */
			s.starts_ns = a->starts_ns;
			forget(w, a);
		}
		a = remember(w, hash, e, real_ns);
		if (a != NULL)
			a->starts_ns = s.starts_ns;
		s.ends_ns = a != NULL ? ahead(w, real_ns) : later(e->ts_ns, w->resolve_ns);
		break;
	case PL_PHASE_END:
		s.firing = false;
		if (a != NULL) {
			s.starts_ns = a->starts_ns;
			forget(w, a);
		}
		break;
	default:
		s.ends_ns = later(e->ts_ns, w->resolve_ns);
		break;
	}
	if (s.starts_ns > s.ends_ns) /* the clock was set back */
		s.starts_ns = s.ends_ns;
	return s;
}

static int format_event(
	void *format, const struct pl_event *e, uint64_t real_ns, struct pl_buf *out)
{
	struct webhook *w = format;
	struct span s;
	uint64_t hash;

	if (e->event >= PL_EVENT_KIND_MAX || e->phase >= PL_PHASE_MAX)
		return -EINVAL;
	write_labels(w, e);
	write_annotations(w, e);
	if (w->label_text.failed || w->annotation_text.failed)
		return -ENOMEM;
	hash = pl_hash(w->label_text.data, w->label_text.len, 0);
	s = settle(w, e, hash, real_ns);
	write_alert(w, &s, w->label_text.data, w->annotation_text.data, hash, out);
	return 0;
}

static int format_due(void *format, uint64_t real_ns, struct pl_buf *out)
{
	struct webhook *w = format;

	if (w->form == PL_WEBHOOK_RECEIVER)
		return 0;
	for (uint32_t k = 0; k < w->n; k++) {
		struct alert *a = &w->alerts[w->next++ % w->n];
		struct span s = { a->starts_ns, ahead(w, real_ns), true };

		if (real_ns >= a->told_ns && real_ns - a->told_ns < w->repeat_ns)
			continue;
		a->told_ns = real_ns;
		write_alert(w, &s, a->labels, a->annotations, a->hash, out);
		return 1;
	}
	return 0;
}

static void receiver_head(const struct webhook *w, bool firing, struct pl_buf *out)
{
	struct pl_json j;

	pl_buf_printf(out,
		"{\"version\":\"4\",\"groupKey\":\"{}:{}\",\"truncatedAlerts\":0,\"status\":\"%s\","
		"\"receiver\":\"pathline\",\"groupLabels\":{},\"commonLabels\":",
		firing ? "firing" : "resolved");
	pl_json_init(&j, out);
	pl_json_object(&j);
	added_labels(w, &j);
	pl_json_object_end(&j);
	pl_buf_str(out, ",\"commonAnnotations\":{},\"externalURL\":");
	pl_json_init(&j, out);
	pl_json_str(&j, w->link != NULL ? w->link : "");
	pl_buf_str(out, ",\"alerts\":[");
}

static int format_body(
	void *format, const struct pl_chunks *c, uint32_t first, uint32_t n, struct pl_buf *out)
{
	const struct webhook *w = format;
	bool receiver = w->form == PL_WEBHOOK_RECEIVER, firing = false;

	for (uint32_t i = first; i < first + n; i++) {
		uint32_t at = pl_chunk_begin(c, i);

		firing |= c->ends[i] - at >= sizeof(FIRING) - 1 &&
			  memcmp(c->text + at, FIRING, sizeof(FIRING) - 1) == 0;
	}
	if (receiver)
		receiver_head(w, firing, out);
	else
		pl_buf_chr(out, '[');
	for (uint32_t i = first; i < first + n; i++) {
		uint32_t at = pl_chunk_begin(c, i);

		if (i > first)
			pl_buf_chr(out, ',');
		pl_buf_add(out, c->text + at, c->ends[i] - at);
	}
	pl_buf_str(out, receiver ? "]}" : "]");
	return out->failed ? -ENOMEM : 0;
}

static uint64_t format_folded(const void *format)
{
	const struct webhook *w = format;

	return pl_counter_read(&w->folded);
}

static void format_free(void *format)
{
	struct webhook *w = format;

	if (w == NULL)
		return;
	while (w->alerts != NULL && w->n > 0)
		forget(w, &w->alerts[w->n - 1]);
	for (uint32_t i = 0; i < w->n_labels; i++)
		free(w->labels[i]);
	free(w->alerts);
	free(w->link);
	pl_buf_done(&w->label_text);
	pl_buf_done(&w->annotation_text);
	free(w);
}

const struct pl_format_ops pl_webhook_format = {
	.name = "webhook",
	.event = format_event,
	.due = format_due,
	.body = format_body,
	.folded = format_folded,
	.free = format_free,
};

/* The texts of an alert count as half a kilobyte. */
uint64_t pl_webhook_memory(void)
{
	return sizeof(struct webhook) + PL_WEBHOOK_ALERTS * (sizeof(struct alert) + 512);
}

int pl_webhook_format_new(void **ret, const struct pl_webhook_options *o)
{
	struct webhook *w;

	if (o->n_labels > PL_WEBHOOK_LABELS_MAX)
		return -EINVAL;
	w = calloc(1, sizeof(*w));
	if (w == NULL)
		return -ENOMEM;
	w->form = o->form;
	w->repeat_ns = o->repeat_ns != 0 ? o->repeat_ns : REPEAT_DEFAULT;
	w->resolve_ns = o->resolve_ns != 0 ? o->resolve_ns : RESOLVE_DEFAULT;
	pl_buf_init(&w->label_text);
	pl_buf_init(&w->annotation_text);
	w->label_text.limit = w->annotation_text.limit = ALERT_TEXT_MAX;
	w->alerts = calloc(PL_WEBHOOK_ALERTS, sizeof(*w->alerts));
	if (w->alerts == NULL)
		goto fail;
	for (uint32_t i = 0; i < o->n_labels; i++) {
		w->labels[i] = strdup(o->labels[i]);
		if (w->labels[i] == NULL)
			goto fail;
		w->n_labels++;
	}
	if (o->link != NULL) {
		w->link = strdup(o->link);
		if (w->link == NULL)
			goto fail;
	}
	*ret = w;
	return 0;
fail:
	format_free(w);
	return -ENOMEM;
}

int pl_webhook_open(struct pl_export **ret, const struct pl_webhook_options *options,
	const struct pl_sender_options *sender, uint64_t now_ns, struct pl_diag *diag)
{
	static const char *const headers[] = { "Content-Type: application/json", NULL };
	struct pl_sender_options s = *sender;
	void *format;
	int r = pl_webhook_format_new(&format, options);

	if (r < 0)
		return r;
	s.url = options->url;
	s.headers = headers;
	s.gzip = false; /* receivers of either form need not support it */
	s.in_order = true;
	return pl_sender_open(ret, &s, &pl_webhook_format, format, now_ns, diag);
}
