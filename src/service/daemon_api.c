/* SPDX-License-Identifier: BSD-2-Clause */
/* Answers requests of /api/v1/. */
#include "service/daemon_api.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"
#include "export/queue.h"
#include "marks/marks.h"
#include "memory/history.h"
#include "pipeline/api.h"
#include "pipeline/kind.h"
#include "service/tapped.h"
#include "service/taps.h"

#define OUTPUT_NAME   "live"
#define QUEUE_RECORDS 16384
#define WHERE_MAX     768 /* characters; a query has at most 1023 */

/* ---- parameters ---- */

static void problem(struct pl_http_reply *reply, const struct pl_api_problem *p)
{
	char text[sizeof(p->diag.text) + 64];

	if (p->diag.column > 0)
		snprintf(text, sizeof(text), "%s (at character %u)", p->diag.text, p->diag.column);
	else
		snprintf(text, sizeof(text), "%s", p->diag.text);
	pl_http_problem(reply, p->status, p->code, text);
}

/* Returns false when the query has a parameter that is not in names; the reply is then an error. */
static bool parameters_known(const struct pl_http_request *request, const char *const *names,
	size_t n, struct pl_http_reply *reply)
{
	char name[48], text[160];
	const char *near;

	if (pl_http_query_unknown(request->query, names, n, name, sizeof(name)) == 0)
		return true;
	near = pl_nearest(name, names, n);
	snprintf(text, sizeof(text), "there is no parameter \"%s\"%s%s%s", name,
		near != NULL ? ", did you mean \"" : "", near != NULL ? near : "",
		near != NULL ? "\"?" : "");
	pl_http_problem(reply, 400, "bad_parameter", text);
	return false;
}

/* Returns 1 when the parameter is given, 0 when not, negative when it is malformed; the reply is
 * then an error. */
static int parameter(const struct pl_http_request *request, const char *name, char *dst, size_t cap,
	struct pl_http_reply *reply)
{
	int r = pl_http_query_get(request->query, name, dst, cap);
	char text[96];

	if (r < 0) {
		snprintf(text, sizeof(text), "%s is badly encoded or too long", name);
		pl_http_problem(reply, 400, "bad_parameter", text);
	}
	return r;
}

/* ---- tables and status ---- */

static void page_table(
	void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	static const char *const names[] = { "sort", "where", "limit" };
	struct pl_daemon_api *api = arg;
	const struct pl_api_table *table = pl_api_table_find(request->path + strlen("/api/v1/"));
	char sort[48], where[WHERE_MAX], limit[24];
	struct pl_api_problem why = { .status = 500, .code = "failed" };
	struct pl_api_query query = { 0 };
	int has_sort, has_where, has_limit;

	if (!parameters_known(request, names, 3, reply))
		return;
	has_sort = parameter(request, "sort", sort, sizeof(sort), reply);
	has_where = parameter(request, "where", where, sizeof(where), reply);
	has_limit = parameter(request, "limit", limit, sizeof(limit), reply);
	if (has_sort < 0 || has_where < 0 || has_limit < 0)
		return;
	query.sort = has_sort > 0 ? sort : NULL;
	query.where = has_where > 0 ? where : NULL;
	if (has_limit > 0 && (pl_parse_u64(limit, &query.limit) < 0 || query.limit == 0)) {
		pl_http_problem(reply, 400, "bad_limit", "limit is a number from 1 to 1000");
		return;
	}
	if (pl_api_table_write(api->pipeline, api->live, table, &query, &reply->body, &why) < 0)
		problem(reply, &why);
	else
		reply->content_type = "application/json";
	/* The state made here answers readiness requests that come while the pipeline is locked. */
	pl_pipeline_ready(api->pipeline, NULL);
}

static void page_status(
	void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	struct pl_daemon_api *api = arg;
	struct pl_api_problem why = { .status = 500, .code = "failed" };

	if (!parameters_known(request, NULL, 0, reply))
		return;
	if (pl_api_status_write(api->pipeline, api->live, &api->parts, &reply->body, &why) < 0)
		problem(reply, &why);
	else
		reply->content_type = "application/json";
}

/* Lists the pages and tables, the tables with their columns. */
static void page_index(
	void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	const struct pl_api_table *t;
	struct pl_json json;

	(void)arg;
	(void)request;
	pl_json_init(&json, &reply->body);
	pl_json_object(&json);
	pl_json_text(&json, "version", PL_VERSION);
	pl_json_text(&json, "status", "/api/v1/status");
	pl_json_text(&json, "tail", "/api/v1/tail");
	pl_json_text(&json, "segments", "/api/v1/segments");
	pl_json_text(&json, "tapped", "/api/v1/tapped");
	pl_json_key(&json, "tables");
	pl_json_object(&json);
	for (unsigned int i = 0; (t = pl_api_table_at(i)) != NULL; i++) {
		size_t n;
		const struct pl_field *fields = pl_api_table_fields(t, &n);

		pl_json_key(&json, pl_api_table_name(t));
		pl_json_object(&json);
		pl_json_text(&json, "help", pl_api_table_help(t));
		pl_json_key(&json, "columns");
		pl_json_object(&json);
		for (size_t k = 0; k < n; k++) {
			if (fields[k].name[0] == '\0')
				continue;
			pl_json_text(&json, fields[k].name, fields[k].help);
		}
		pl_json_object_end(&json);
		pl_json_object_end(&json);
	}
	pl_json_object_end(&json);
	pl_json_object_end(&json);
	pl_buf_chr(&reply->body, '\n');
	reply->content_type = "application/json";
}

/* ---- streams ---- */

struct pl_daemon_stream {
	struct pl_daemon_api *api;
	struct pl_daemon_stream *next, **link;
	struct pl_watch_client *client; /* NULL: closed to make room for another address */
	struct pl_addr address;
};

/* Tells every client how many records the output's queues dropped. */
static void tell_missed(struct pl_daemon_api *api)
{
	struct pl_output_stats s;

	pl_output_stats(api->output, &s);
	pl_watch_missed(api->live, s.full_paths, s.full_events, s.full_values);
}

static size_t stream_read(void *arg, char *dst, size_t cap)
{
	struct pl_daemon_stream *s = arg;

	return s->client != NULL ? pl_watch_read(s->client, dst, cap, pl_clock_mono_ns())
				 : PL_HTTP_STREAM_OVER;
}

static bool stream_ready(void *arg)
{
	struct pl_daemon_stream *s = arg;

	tell_missed(s->api);
	return s->client == NULL || pl_watch_ready(s->client, pl_clock_mono_ns());
}

static void stream_close(void *arg)
{
	struct pl_daemon_stream *s = arg;

	*s->link = s->next;
	if (s->next != NULL)
		s->next->link = s->link;
	if (s->client != NULL)
		pl_watch_close(s->client);
	free(s);
}

static unsigned int streams_of(const struct pl_daemon_api *api, const struct pl_addr *address)
{
	unsigned int n = 0;

	for (const struct pl_daemon_stream *s = api->streams; s != NULL; s = s->next)
		n += s->client != NULL && memcmp(&s->address, address, sizeof(*address)) == 0;
	return n;
}

/* Ends the newest stream of the address with most streams, when that has at least two more than
 * `address`. Returns whether it did. */
static bool make_room(struct pl_daemon_api *api, const struct pl_addr *address)
{
	struct pl_daemon_stream *best = NULL;
	unsigned int most = streams_of(api, address) + 1;

	for (struct pl_daemon_stream *s = api->streams; s != NULL; s = s->next) {
		unsigned int n = s->client != NULL ? streams_of(api, &s->address) : 0;

		if (n > most) {
			most = n;
			best = s;
		}
	}
	if (best == NULL)
		return false;
	pl_watch_close(best->client);
	best->client = NULL;
	return true;
}

static int open_stream(struct pl_daemon_stream *s, struct pl_daemon_api *api,
	const struct pl_watch_request *wanted, struct pl_diag *diag)
{
	int r;

	s->api = api;
	s->address = pl_http_address_share(&wanted->address);
	r = pl_watch_open(&s->client, api->live, wanted, pl_clock_mono_ns(), diag);
	if (r == -EBUSY && make_room(api, &s->address))
		r = pl_watch_open(&s->client, api->live, wanted, pl_clock_mono_ns(), diag);
	if (r < 0)
		return r;
	s->next = api->streams;
	s->link = &api->streams;
	if (s->next != NULL)
		s->next->link = &s->next;
	api->streams = s;
	return 0;
}

static const struct pl_http_stream_ops stream_ops = { .read = stream_read,
	.ready = stream_ready,
	.close = stream_close };

static bool parse_kind(const char *text, size_t n, struct pl_watch_request *ret)
{
	const struct pl_watch_kind *kind;

	if (n == 6 && strncmp(text, "events", 6) == 0)
		return ret->events = true;
	if (n == 5 && strncmp(text, "paths", 5) == 0)
		return ret->paths = true;
	if (n == 6 && strncmp(text, "values", 6) == 0)
		return ret->values = true;
	for (unsigned int i = 0; (kind = pl_watch_kind_at(i)) != NULL; i++) {
		if (n != strlen(kind->name) || strncmp(text, kind->name, n) != 0)
			continue;
		ret->flat |= 1u << kind->flat;
		return true;
	}
	return false;
}

/* Reads "events,paths,packets" and so on; pl_watch_open refuses kinds that cannot be combined. */
static bool parse_kinds(const char *text, struct pl_watch_request *ret)
{
	bool any = false;

	while (*text != '\0') {
		size_t n = strcspn(text, ",");

		any = parse_kind(text, n, ret);
		if (!any)
			return false;
		text += n;
		if (*text == ',')
			text++;
	}
	return any;
}

static bool parse_form(const char *text, struct pl_watch_request *ret)
{
	for (unsigned int f = 0; f < PL_WATCH_FORM_MAX; f++) {
		if (strcmp(text, pl_watch_form_name((enum pl_watch_form)f)) == 0) {
			ret->form = (enum pl_watch_form)f;
			return true;
		}
	}
	return false;
}

/* Returns false when the request is bad; the reply then has the reason. *ret points into
 * `where`. */
static bool parse_request(const struct pl_http_request *request, struct pl_watch_request *ret,
	char where[WHERE_MAX], struct pl_http_reply *reply)
{
	static const char *const names[] = { "kind", "where", "form" };
	char kind[96], form[16];
	int has_kind, has_where, has_form;

	*ret = (struct pl_watch_request){ .address = request->client };
	if (!parameters_known(request, names, 3, reply))
		return false;
	has_kind = parameter(request, "kind", kind, sizeof(kind), reply);
	has_where = parameter(request, "where", where, WHERE_MAX, reply);
	has_form = parameter(request, "form", form, sizeof(form), reply);
	if (has_kind < 0 || has_where < 0 || has_form < 0)
		return false;
	ret->where = has_where > 0 ? where : NULL;
	if (has_kind > 0 && !parse_kinds(kind, ret)) {
		pl_http_problem(reply, 400, "bad_kind",
			"kind is events, paths, values, flows, packets, dns, drops, marks or segments, or several of them with commas between");
		return false;
	}
	if (has_form > 0 && !parse_form(form, ret)) {
		pl_http_problem(reply, 400, "bad_form",
			"form is one of api, jsonl, table, wide, csv, text, record");
		return false;
	}
	return true;
}

/* Says that no tap makes records of the kind, or no marking domain. */
static void none_makes(const struct pl_watch_kind *kind, struct pl_http_reply *reply)
{
	char text[256], code[24];

	snprintf(code, sizeof(code), "no_%s", kind->name);
	if (kind->flat == PL_FLAT_MARK128 || kind->flat == PL_FLAT_SEG192)
		snprintf(text, sizeof(text),
			"no marking domain is configured (the key marks), so there are no %s",
			kind->name);
	else
		snprintf(text, sizeof(text),
			"no tap of this process makes records of %s (records: %s with an output, or a query of %s)",
			kind->name, kind->name, kind->name);
	pl_http_problem(reply, 404, code, text);
}

/* Returns whether taps make records of the kind for all packets; if not, the reply has the
 * reason. */
static bool taps_have(const struct pl_daemon_api *api, const struct pl_watch_kind *kind,
	struct pl_http_reply *reply)
{
	char text[256];
	bool any = false;

	if (api->taps == NULL) {
		pl_http_problem(reply, 404, "no_taps",
			"no tap and no marking domain is configured (the keys taps and marks), so there are no records of them");
		return false;
	}
	for (unsigned int i = 0; i < api->taps->n; i++) {
		const struct pl_taps_one *one = api->taps->taps[i];
		const uint32_t makes = one->makes;

		if ((makes & 1u << kind->flat) == 0)
			continue;
		any = true;
		if ((makes & PL_TAPS_PARTIAL) == 0)
			continue;
		snprintf(text, sizeof(text),
			"the tap %s leaves to the kernel what standing queries filter and count, so it lacks the other packets; with rules: [take] it makes records of all",
			one->name);
		pl_http_problem(reply, 404, "in_kernel", text);
		return false;
	}
	if (!any)
		none_makes(kind, reply);
	return any;
}

/* Returns whether taps_have is true for all kinds in `wanted`. */
static bool taps_have_all(
	const struct pl_daemon_api *api, uint32_t wanted, struct pl_http_reply *reply)
{
	const struct pl_watch_kind *kind;

	for (unsigned int i = 0; (kind = pl_watch_kind_at(i)) != NULL; i++) {
		if ((wanted & 1u << kind->flat) != 0 && !taps_have(api, kind, reply))
			return false;
	}
	return true;
}

static void page_tail(void *arg, const struct pl_http_request *request, struct pl_http_reply *reply)
{
	struct pl_daemon_api *api = arg;
	struct pl_api_problem why = { .status = 400, .code = "bad_where" };
	struct pl_watch_request wanted;
	char where[WHERE_MAX];
	struct pl_daemon_stream *s;
	int r;

	if (!parse_request(request, &wanted, where, reply))
		return;
	if (!taps_have_all(api, wanted.flat, reply))
		return;
	s = calloc(1, sizeof(*s));
	tell_missed(api);
	r = s == NULL ? -ENOMEM : open_stream(s, api, &wanted, &why.diag);
	if (r < 0) {
		free(s);
		if (r != -EINVAL) {
			why.status = 503;
			why.code = r == -EBUSY ? "too_many_streams" : "no_memory";
		}
		if (why.diag.text[0] == '\0')
			pl_diag_set(&why.diag, "%s", strerrordesc_np(-r));
		problem(reply, &why);
		return;
	}
	reply->stream = s;
	reply->stream_ops = &stream_ops;
	reply->content_type = wanted.form <= PL_WATCH_JSONL ? "application/x-ndjson"
							    : "text/plain; charset=utf-8";
}

static void wake(void *arg)
{
	struct pl_daemon_api *api = arg;
	struct pl_http *http = atomic_load(&api->http);

	if (http != NULL)
		pl_http_wake(http);
}

/* Paths go into the output's queues only while somebody watches them. */
static void want(void *arg, bool paths)
{
	struct pl_daemon_api *api = arg;
	struct pl_output_options options = {
		.name = OUTPUT_NAME, .paths = paths, .events = true, .values = true
	};

	/* Fails only on a bad expression, and there is none. */
	pl_output_configure(api->output, &options, NULL);
}

/* ---- making ---- */

/* Fills the event buffer with the latest events that an output of type region kept from an earlier
 * run. A file that cannot be read is reported when the output opens. */
static void remember_from(struct pl_watch *live, const char *folder)
{
	struct pl_history_reader *r = calloc(1, sizeof(*r));
	struct pl_history_record *record = calloc(1, sizeof(*record));
	uint64_t head, most = pl_watch_events_max(live);
	struct pl_history *h = NULL;

	(void)pl_region_guard();
	if (r != NULL && record != NULL && pl_history_open(&h, folder, NULL) == 0 &&
		pl_history_reader_init(r, h, PL_HISTORY_EVENTS, 0, 0) == 0) {
		head = pl_append_head(r->list.a, 0);
		(void)pl_history_reader_init(
			r, h, PL_HISTORY_EVENTS, 0, head > most ? head - most : 0);
		while (pl_history_next(r, record))
			pl_watch_remember(live, &record->event, 1);
	}
	(void)pl_history_close(h);
	free(record);
	free(r);
}

static void remember(struct pl_watch *live, const struct pl_config *config)
{
	const struct pl_config_output *o = config->outputs.items;

	for (size_t i = 0; i < config->outputs.n; i++) {
		if (!pl_output_kinds[o[i].type]->history || !o[i].events)
			continue;
		remember_from(live, o[i].path);
		return;
	}
}

int pl_daemon_api_init(
	struct pl_daemon_api *ret, struct pl_pipeline *pipeline, struct pl_diag *diag)
{
	const struct pl_config *config = pl_pipeline_config(pipeline);
	struct pl_watch_options options = {
		.max_clients = (unsigned int)config->web.max_streams,
		.buffer_bytes = (uint32_t)config->web.stream_buffer,
	};
	struct pl_watch_hooks hooks = { .wake = wake, .want = want, .arg = ret };
	struct pl_export *e;
	int r;

	*ret = (struct pl_daemon_api){ .pipeline = pipeline };
	r = pl_watch_new(&e, &ret->live, &options);
	if (r < 0)
		return r;
	r = pl_pipeline_add_output(pipeline, OUTPUT_NAME, e, QUEUE_RECORDS, diag);
	if (r < 0)
		return r;
	ret->output = pl_pipeline_find_output(pipeline, OUTPUT_NAME);
	pl_watch_set_hooks(ret->live, &hooks);
	remember(ret->live, pl_pipeline_config(pipeline));
	want(ret, false);
	return 0;
}

void pl_daemon_api_serve(struct pl_daemon_api *api, struct pl_http *http)
{
	atomic_store(&api->http, http);
}

size_t pl_daemon_api_routes(
	struct pl_daemon_api *api, struct pl_http_route *routes, size_t n, size_t cap)
{
	/* Routes keep pointers to these paths. */
	static const char *const paths[] = { "/api/v1/queues", "/api/v1/links", "/api/v1/ports",
		"/api/v1/paths", "/api/v1/exporters", "/api/v1/events", "/api/v1/drops",
		"/api/v1/flows", "/api/v1/regions", "/api/v1/values" };

	assert(n + sizeof(paths) / sizeof(paths[0]) + 7 <= cap);
	routes[n++] = (struct pl_http_route){ "/api/v1", page_index, api, PL_HTTP_QUICK };
	routes[n++] = (struct pl_http_route){ "/api/v1/", page_index, api, PL_HTTP_QUICK };
	routes[n++] = (struct pl_http_route){ "/api/v1/status", page_status, api, PL_HTTP_PAGE };
	routes[n++] = (struct pl_http_route){ "/api/v1/tail", page_tail, api, PL_HTTP_QUICK };
	routes[n++] = (struct pl_http_route){ "/api/v1/segments", pl_marks_page, api->marks,
		PL_HTTP_PAGE };
	routes[n++] =
		(struct pl_http_route){ "/api/v1/tapped", pl_tapped_page, api->taps, PL_HTTP_PAGE };
	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		routes[n++] = (struct pl_http_route){ paths[i], page_table, api, PL_HTTP_PAGE };
	routes[n] = (struct pl_http_route){ NULL, NULL, NULL, PL_HTTP_PAGE };
	return n;
}

uint64_t pl_daemon_api_memory(const struct pl_config *config)
{
	struct pl_watch_options options = {
		.max_clients = (unsigned int)config->web.max_streams,
		.buffer_bytes = (uint32_t)config->web.stream_buffer,
	};

	return pl_watch_memory(&options) +
	       pl_config_workers(config) * pl_export_queue_memory(QUEUE_RECORDS);
}
