/* SPDX-License-Identifier: BSD-2-Clause */
/* The screens and columns of "pathline top". */
#include "show/top.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/num.h"
#include "show/top_pages.h"
#include "web/client.h"

#define N(list)                (sizeof(list) / sizeof((list)[0]))

/* Columns of the lists of the pipeline. */
#define COLUMN(k, t, w, c)     { (t), (k), (w), PL_TOP_##c },
#define PL_QUEUE_TOP(key, ...) COLUMN(#key, __VA_ARGS__)
static const struct pl_top_column queues[] = {
#include "detect/cells.def"
};
#undef PL_QUEUE_TOP
#define PL_LINK_TOP(key, ...) COLUMN(#key, __VA_ARGS__)
static const struct pl_top_column links[] = {
#include "detect/cells.def"
};
#undef PL_LINK_TOP
#define PL_PORT_TOP(key, ...) COLUMN(#key, __VA_ARGS__)
static const struct pl_top_column ports[] = {
#include "detect/cells.def"
};
#undef PL_PORT_TOP
#define PL_PATH_TOP(key, ...) COLUMN(#key, __VA_ARGS__)
static const struct pl_top_column paths[] = {
#include "detect/cells.def"
};
#undef PL_PATH_TOP
#define PL_FLOW_TOP(key, ...) COLUMN(key, __VA_ARGS__)
static const struct pl_top_column flows[] = {
#include "pipeline/flows.def"
};
#undef PL_FLOW_TOP

static const struct pl_top_column events[] = {
	{ "TIME", "time", 12, PL_TOP_CLOCK },
	{ "EVENT", "event", 11, PL_TOP_TEXT },
	{ "PHASE", "phase", 6, PL_TOP_TEXT },
	{ "NODE", "node", 6, PL_TOP_NUMBER },
	{ "PORT", "port", 5, PL_TOP_NUMBER },
	{ "Q", "queue", 3, PL_TOP_NUMBER },
	{ "VALUE", "value", 8, PL_TOP_NUMBER },
	{ "UNIT", "unit", 5, PL_TOP_TEXT },
	{ "PATH, FLOW, EXPORTER OR REGION", "flow.src", 0, PL_TOP_FLOW },
};

static const struct pl_top_column exporters[] = {
	{ "EXPORTER", "exporter", 17, PL_TOP_TEXT },
	{ "NODE", "node", 7, PL_TOP_NUMBER },
	{ "HW", "hw_id", 3, PL_TOP_NUMBER },
	{ "REPORTS", "reports", 11, PL_TOP_NUMBER },
	{ "PER S", "reports", 7, PL_TOP_RATE },
	{ "LOST", "lost", 7, PL_TOP_NUMBER },
	{ "REORD", "reordered", 6, PL_TOP_NUMBER },
	{ "TWICE", "duplicates", 6, PL_TOP_NUMBER },
	{ "LAST", "last_time", 8, PL_TOP_CLOCK },
};

static const struct pl_top_column drops[] = {
	{ "PLACE", "place", 8, PL_TOP_TEXT },
	{ "WHICH", "name", 29, PL_TOP_TEXT },
	{ "CAUSE", "cause", 19, PL_TOP_TEXT },
	{ "COUNT", "count", 11, PL_TOP_NUMBER },
	{ "PER S", "count", 8, PL_TOP_RATE },
};

static const struct pl_top_column regions[] = {
	{ "REGION", "region", 14, PL_TOP_TEXT },
	{ "PRIMITIVE", "primitive", 9, PL_TOP_TEXT },
	{ "BY", "writer", 5, PL_TOP_TEXT },
	{ "STATE", "state", 5, PL_TOP_TEXT },
	{ "SLOTS", "slots", 8, PL_TOP_NUMBER },
	{ "IN USE", "in_use", 8, PL_TOP_NUMBER },
	{ "FOUND", "found", 9, PL_TOP_NUMBER },
	{ "PER S", "found", 7, PL_TOP_RATE },
	{ "MISSED", "overrun", 7, PL_TOP_NUMBER },
	{ "NEWEST", "value", 10, PL_TOP_NUMBER },
	{ "LARGEST", "value_max", 10, PL_TOP_NUMBER },
	{ "AT", "max_number", 8, PL_TOP_NUMBER },
	{ "INCREASE", "increase", 10, PL_TOP_NUMBER },
	{ "LAST", "last_time", 8, PL_TOP_CLOCK },
};

static const struct pl_top_column values[] = {
	{ "TIME", "time", 12, PL_TOP_CLOCK },
	{ "REGION", "region", 14, PL_TOP_TEXT },
	{ "LIST", "list", 5, PL_TOP_NUMBER },
	{ "NUMBER", "number", 9, PL_TOP_NUMBER },
	{ "NAME", "name", 15, PL_TOP_TEXT },
	{ "VALUE", "value", 10, PL_TOP_NUMBER },
	{ "INCREASE", "increase", 9, PL_TOP_NUMBER },
	{ "BYTES", "bytes", 0, PL_TOP_TEXT },
};

#define SCREEN(n, by, id, more)                                                                    \
	{                                                                                          \
		.name = #n, .columns = (n), .n_columns = N(n), .sort = (by), .identity = (id),     \
		.beyond = (more)                                                                   \
	}

const struct pl_top_screen pl_top_screens[] = {
	SCREEN(queues, 4, "node port queue", "readings of other queues (aggregate.max_queues)"),
	SCREEN(links, 7, "node port peer peer_port",
		"readings of other links (aggregate.max_links)"),
	SCREEN(ports, 4, "node port", "readings of other ports (aggregate.max_ports)"),
	SCREEN(paths, 4, "path_id", "readings of other paths (aggregate.max_paths)"),
	SCREEN(events, 0, "time", "earlier ones"),
	SCREEN(exporters, 3, "exporter node hw_id",
		"reports of other exporters (decode.max_exporters)"),
	SCREEN(drops, 3, "place name cause", NULL),
	SCREEN(flows, 0, "flow", "flows with fewer packets"),
	SCREEN(regions, 6, "region", NULL),
	SCREEN(values, 0, "time region list number", "earlier ones"),
	{ "segments", pl_top_segment_columns, PL_TOP_SEGMENT_COLUMNS, 4, "domain segment", NULL },
	{ "tapped", pl_top_tapped_columns, PL_TOP_TAPPED_COLUMNS, 3, "tap flow", NULL },
};
const unsigned int pl_top_n_screens = N(pl_top_screens);

const struct pl_top_screen *pl_top_screen_find(const char *name)
{
	for (unsigned int i = 0; i < pl_top_n_screens; i++) {
		if (strcmp(pl_top_screens[i].name, name) == 0)
			return &pl_top_screens[i];
	}
	return NULL;
}

int pl_top_column_find(const struct pl_top_screen *screen, const char *name)
{
	/* Keys are tried first: two titles may be equal. */
	for (unsigned int i = 0; i < screen->n_columns; i++) {
		const struct pl_top_column *c = &screen->columns[i];

		if (c->cell == PL_TOP_RATE ? strcasecmp(name, "rate") == 0
					   : strcmp(name, c->key) == 0)
			return (int)i;
	}
	for (unsigned int i = 0; i < screen->n_columns; i++) {
		if (strcasecmp(name, screen->columns[i].title) == 0)
			return (int)i;
	}
	return -1;
}

bool pl_top_descends(const struct pl_top_column *column)
{
	static const char *const names[] = { "node", "port", "queue", "peer", "peer_port",
		"hw_id" };

	for (size_t i = 0; i < N(names); i++) {
		if (strcmp(column->key, names[i]) == 0)
			return false;
	}
	return column->cell != PL_TOP_TEXT && column->cell != PL_TOP_NODES &&
	       column->cell != PL_TOP_FLOW;
}

/* ---- rates ---- */

void pl_top_rates_done(struct pl_top_rates *rates)
{
	json_decref(rates->before);
	*rates = (struct pl_top_rates){ .before = NULL };
}

static void add_object(struct pl_buf *out, const json_t *object)
{
	char *text = json_dumps(object, JSON_COMPACT);

	pl_buf_str(out, text != NULL ? text : "");
	free(text);
}

/* Writes the values of the identity's keys, one behind the other. */
static void identity_text(const struct pl_top_screen *s, const json_t *row, struct pl_buf *out)
{
	char keys[64], *rest = keys, *key;

	pl_buf_reset(out);
	snprintf(keys, sizeof(keys), "%s", s->identity);
	while ((key = strsep(&rest, " ")) != NULL) {
		const json_t *v = json_object_get(row, key);

		if (json_is_integer(v))
			pl_buf_i64(out, json_integer_value(v));
		else if (json_is_string(v))
			pl_buf_str(out, json_string_value(v));
		else if (json_is_object(v))
			add_object(out, v);
		pl_buf_chr(out, '|');
	}
}

static const char *counter_of(const struct pl_top_screen *s)
{
	for (unsigned int i = 0; i < s->n_columns; i++) {
		if (s->columns[i].cell == PL_TOP_RATE)
			return s->columns[i].key;
	}
	return NULL;
}

static double rate_of(const json_t *row)
{
	const json_t *v = json_object_get(row, "rate");

	return v != NULL ? json_real_value(v) : -1;
}

static int by_rate_up(const void *a, const void *b)
{
	double x = rate_of(*(json_t *const *)a), y = rate_of(*(json_t *const *)b);

	return (x > y) - (x < y);
}

static int by_rate_down(const void *a, const void *b)
{
	return by_rate_up(b, a);
}

static void sort_by_rate(json_t *rows, bool descending)
{
	size_t n = json_array_size(rows);
	json_t **list = calloc(n + 1, sizeof(json_t *));

	if (list == NULL)
		return;
	for (size_t i = 0; i < n; i++)
		list[i] = json_incref(json_array_get(rows, i));
	/* NOLINTNEXTLINE(bugprone-sizeof-expression): the pointers are sorted */
	qsort(list, n, sizeof(list[0]), descending ? by_rate_down : by_rate_up);
	json_array_clear(rows);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(rows, list[i]);
	free(list);
}

void pl_top_rates_apply(struct pl_top_rates *rates, const struct pl_top_screen *s, json_t *doc,
	bool by_rate, bool descending)
{
	const char *counter = counter_of(s);
	uint64_t now = strtoull(pl_json_member_text(doc, "time_ns"), NULL, 10);
	json_t *rows = json_object_get(doc, "rows"), *after, *row;
	struct pl_buf id;
	size_t i;

	if (counter == NULL)
		return;
	after = json_object();
	pl_buf_init(&id);
	rates->seconds = rates->before != NULL && now > rates->before_ns
				 ? (double)(now - rates->before_ns) * 1e-9
				 : 0;
	json_array_foreach(rows, i, row)
	{
		const json_t *old;

		identity_text(s, row, &id);
		if (id.failed)
			break;
		old = rates->before != NULL ? json_object_get(rates->before, id.data) : NULL;
		/* A counter that is smaller than before was reset. */
		if (json_is_integer(old) && rates->seconds > 0) {
			uint64_t was = (uint64_t)json_integer_value(old);
			uint64_t is = pl_json_member_u64(row, counter);

			json_object_set_new(row, "rate",
				json_real((double)(is >= was ? is - was : is) / rates->seconds));
		}
		json_object_set_new(
			after, id.data, json_integer((json_int_t)pl_json_member_u64(row, counter)));
	}
	pl_buf_done(&id);
	json_decref(rates->before);
	rates->before = after;
	rates->before_ns = now;
	if (by_rate)
		sort_by_rate(rows, descending);
}

/* ---- lines ---- */

/* Returns the columns of a text of pl_client_text, one for each character. Characters of another
 * width are rare there (addresses, words, numbers), and a line is cut at its end anyway. */
static unsigned int columns_of(const char *text)
{
	unsigned int n = 0;

	for (; *text != '\0'; text++)
		n += ((unsigned char)*text & 0xc0) != 0x80;
	return n;
}

void pl_top_cut(char *text, unsigned int width)
{
	unsigned int n = 0;

	for (; *text != '\0'; text++) {
		if (((unsigned char)*text & 0xc0) != 0x80 && n++ == width) {
			*text = '\0';
			return;
		}
	}
}

static void to_ascii(char *text)
{
	char *to = text;

	for (; *text != '\0'; text++) {
		if (((unsigned char)*text & 0x80) == 0)
			*to++ = *text;
		else if (((unsigned char)*text & 0xc0) != 0x80)
			*to++ = '?';
	}
	*to = '\0';
}

static void number_cell(char *dst, size_t cap, const json_t *v, unsigned int width)
{
	if (json_is_real(v)) {
		pl_format_count(dst, cap, json_real_value(v));
		return;
	}
	if (!json_is_integer(v)) {
		snprintf(dst, cap, "-");
		return;
	}
	snprintf(dst, cap, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	if (strlen(dst) > width)
		pl_format_count(dst, cap, (double)json_integer_value(v));
}

static void endpoint(char *dst, size_t cap, const json_t *flow, const char *addr, const char *port)
{
	const json_t *p = json_object_get(flow, port);
	char text[64];

	pl_client_text(text, sizeof(text), pl_json_member_text(flow, addr));
	if (json_is_integer(p))
		snprintf(dst, cap,
			strchr(text, ':') != NULL ? "[%s]:%" JSON_INTEGER_FORMAT
						  : "%s:%" JSON_INTEGER_FORMAT,
			text, json_integer_value(p));
	else
		snprintf(dst, cap, "%s", text);
}

/* Shortens the nodes of a path to at most `width` columns: keeps the first ones and the last, all
 * of them whole, because cut digits would be another node. */
static void shorten_nodes(char *text, unsigned int width)
{
	static const char gap[] = ">..";
	const char *last = strrchr(text, '>');
	size_t tail, keep = 0;

	if (columns_of(text) <= width)
		return;
	if (last == NULL || columns_of(last) + sizeof(gap) - 2 > width) {
		snprintf(text, 2, "#");
		return;
	}
	tail = strlen(last);
	for (size_t i = 1; &text[i] < last; i++) {
		if (text[i] == '>' && i + sizeof(gap) - 1 + tail <= width)
			keep = i;
	}
	/* Without room for the first node it begins with the gap. */
	memmove(text + keep + sizeof(gap) - 1 - (keep == 0), last, tail + 1);
	memcpy(text + keep, gap + (keep == 0), sizeof(gap) - 1 - (keep == 0));
}

static void nodes_cell(
	char *dst, size_t cap, const json_t *row, const char *key, unsigned int width)
{
	pl_client_text(dst, cap, pl_json_member_text(row, key));
	shorten_nodes(dst, width);
}

/* Writes region, place and key of an event of a value. */
static void region_cell(char *dst, size_t cap, const json_t *row)
{
	const char *key = pl_json_member_text(row, "key");
	char region[64], of[64] = "";

	pl_client_text(region, sizeof(region), pl_json_member_text(row, "region"));
	if (json_is_string(json_object_get(row, "key")))
		pl_client_text(of, sizeof(of), key);
	snprintf(dst, cap, "%s at %lld%s%s", region,
		(long long)json_integer_value(json_object_get(row, "place")),
		of[0] != '\0' ? " of " : "", of);
}

static void flow_text(char *dst, size_t cap, const json_t *row)
{
	const json_t *flow = json_object_get(row, "flow");
	char src[96], dst_text[96];

	if (flow == NULL && json_object_get(row, "region") != NULL) {
		region_cell(dst, cap, row);
		return;
	}
	if (flow == NULL) {
		pl_client_text(dst, cap, pl_json_member_text(row, "exporter"));
		return;
	}
	endpoint(src, sizeof(src), flow, "src", "sport");
	endpoint(dst_text, sizeof(dst_text), flow, "dst", "dport");
	snprintf(dst, cap, "%s>%s", src, dst_text);
}

/* Writes for example "1>5>2 was 1>6>2 10.0.0.1:40000>10.0.0.2:53". */
static void flow_cell(char *dst, size_t cap, const json_t *row, unsigned int width)
{
	static const char was[] = " was ";
	const unsigned int each = width > sizeof(was) ? (width - (sizeof(was) - 1)) / 2 : 0;
	char now[256], before[256];
	int n = 0;

	if (json_object_get(row, "old_path_nodes") != NULL) {
		nodes_cell(now, sizeof(now), row, "path_nodes", each);
		nodes_cell(before, sizeof(before), row, "old_path_nodes", each);
		n = snprintf(dst, cap, "%s%s%s ", now, was, before);
	}
	if (n >= 0 && (size_t)n < cap)
		flow_text(dst + n, cap - (size_t)n, row);
}

static void cell_text(
	char *dst, size_t cap, const struct pl_top_column *c, const json_t *row, unsigned int width)
{
	const json_t *v = json_object_get(row, c->cell == PL_TOP_RATE ? "rate" : c->key);
	const char *clock;

	dst[0] = '\0';
	switch (c->cell) {
	case PL_TOP_NUMBER:
		number_cell(dst, cap, v, width);
		break;
	case PL_TOP_DURATION:
		if (json_is_integer(v))
			pl_format_duration(dst, cap, (uint64_t)json_integer_value(v));
		else
			snprintf(dst, cap, "-");
		break;
	case PL_TOP_TEXT:
		pl_client_text(dst, cap, pl_json_member_text(row, c->key));
		break;
	case PL_TOP_NODES:
		/* A path with unknown nodes has an id. */
		if (v != NULL)
			nodes_cell(dst, cap, row, c->key, width);
		else
			pl_client_text(dst, cap, pl_json_member_text(row, "path_id"));
		break;
	case PL_TOP_CLOCK:
		clock = strchr(pl_json_member_text(row, c->key), 'T');
		pl_client_text(dst, cap, clock != NULL ? clock + 1 : "-");
		break;
	case PL_TOP_RATE:
		if (json_is_real(v))
			pl_format_count(dst, cap, json_real_value(v));
		else
			snprintf(dst, cap, "-");
		break;
	case PL_TOP_FLOW:
		flow_cell(dst, cap, row, width);
		break;
	}
}

static bool is_left(const struct pl_top_column *c)
{
	return c->cell == PL_TOP_TEXT || c->cell == PL_TOP_CLOCK || c->cell == PL_TOP_NODES ||
	       c->cell == PL_TOP_FLOW;
}

static void add_cell(
	struct pl_buf *out, const char *text, unsigned int width, bool left, unsigned int *used)
{
	unsigned int n = columns_of(text), pad = width > n ? width - n : 0;

	if (!left)
		pl_buf_printf(out, "%*s", (int)pad, "");
	pl_buf_str(out, text);
	if (left)
		pl_buf_printf(out, "%*s", (int)pad, "");
	*used += n + pad;
}

/* Returns the width of a column behind `used` columns; 0: no room is left. A text may be cut, but
 * cut digits would be another number. */
static unsigned int room(const struct pl_top_column *c, unsigned int used, unsigned int cols)
{
	unsigned int left = cols > used ? cols - used : 0;

	if (c->width == 0 || c->width > left)
		return is_left(c) ? left : 0;
	return c->width;
}

/* Fits a text into its column: a text is cut, a number is replaced by "#". */
static void fit(char *text, const struct pl_top_column *c, unsigned int width)
{
	if (!is_left(c) && columns_of(text) > width)
		snprintf(text, 2, "#");
	pl_top_cut(text, width);
}

static void trim(struct pl_buf *out, size_t from)
{
	while (!out->failed && out->len > from && out->data[out->len - 1] == ' ')
		out->data[--out->len] = '\0';
}

void pl_top_titles(struct pl_buf *out, const struct pl_top_screen *s, unsigned int sort,
	bool descending, unsigned int cols)
{
	unsigned int used = 0;

	for (unsigned int i = 0; i < s->n_columns; i++) {
		const struct pl_top_column *c = &s->columns[i];
		unsigned int width = room(c, used + (i > 0), cols);
		char text[64];

		if (width == 0)
			return;
		if (i > 0)
			add_cell(out, " ", 1, true, &used);
		snprintf(text, sizeof(text), "%s%s", c->title,
			i != sort    ? ""
			: descending ? "v"
				     : "^");
		pl_top_cut(text, width);
		add_cell(out, text, width, is_left(c), &used);
	}
}

void pl_top_row(struct pl_buf *out, const struct pl_top_screen *s, const json_t *row,
	unsigned int cols, bool ascii)
{
	unsigned int used = 0;
	size_t from = out->len;

	for (unsigned int i = 0; i < s->n_columns; i++) {
		const struct pl_top_column *c = &s->columns[i];
		unsigned int width = room(c, used + (i > 0), cols);
		char text[512];

		if (width == 0)
			break;
		if (i > 0)
			add_cell(out, " ", 1, true, &used);
		cell_text(text, sizeof(text), c, row, width);
		if (ascii)
			to_ascii(text);
		fit(text, c, width);
		add_cell(out, text, width, is_left(c), &used);
	}
	trim(out, from);
}
