/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes records as aligned columns. */
#include "record/table.h"

#include <time.h>

#include "base/num.h"
#include "record/path_book.h"
#include "record/put.h"
#include "record/text.h"

#define NS_PER_S 1000000000u

struct column {
	const char *title;
	unsigned int at; /* column of its begin, if the values before fit */
};

enum { TIME, EXPORTER, FLOW, PATH, LATENCY, FLAGS };
static const struct column columns[] = {
	[TIME] = { "TIME", 0 },
	[EXPORTER] = { "EXPORTER", 13 },
	[FLOW] = { "FLOW", 27 },
	[PATH] = { "PATH", 55 },
	[LATENCY] = { "LATENCY", 67 },
	[FLAGS] = { "FLAGS", 75 },
};

enum {
	W_TIME,
	W_EXPORTER,
	W_NODE,
	W_REPORT,
	W_SEQ,
	W_MODE,
	W_DIALECT,
	W_FLOW,
	W_PATH,
	W_LATENCY,
	W_HOPS,
	W_QUEUES,
	W_FLAGS,
	W_PATH_ID,
};
static const struct column wide_columns[] = {
	[W_TIME] = { "TIME", 0 },
	[W_EXPORTER] = { "EXPORTER", 31 },
	[W_NODE] = { "NODE", 53 },
	[W_REPORT] = { "REPORT", 60 },
	[W_SEQ] = { "SEQ", 67 },
	[W_MODE] = { "MODE", 75 },
	[W_DIALECT] = { "DIALECT", 86 },
	[W_FLOW] = { "FLOW", 99 },
	[W_PATH] = { "PATH (IN,OUT)", 144 },
	[W_LATENCY] = { "LATENCY", 174 },
	[W_HOPS] = { "HOP LATENCIES", 182 },
	[W_QUEUES] = { "QUEUE DEPTHS", 206 },
	[W_FLAGS] = { "FLAGS", 222 },
	[W_PATH_ID] = { "PATH_ID", 240 },
};

enum { E_TIME, E_EVENT, E_PHASE, E_NODE, E_PORT, E_QUEUE, E_VALUE, E_THRESHOLD, E_FLOW };
static const struct column event_columns[] = {
	[E_TIME] = { "TIME", 0 },
	[E_EVENT] = { "EVENT", 13 },
	[E_PHASE] = { "PHASE", 25 },
	[E_NODE] = { "NODE", 31 },
	[E_PORT] = { "PORT", 38 },
	[E_QUEUE] = { "QUEUE", 43 },
	[E_VALUE] = { "VALUE", 49 },
	[E_THRESHOLD] = { "OVER", 60 },
	[E_FLOW] = { "FLOW OR PATHS", 71 },
};

enum { H_TIME, H_NODE, H_IN, H_OUT, H_QUEUE, H_LATENCY, H_DEPTH, H_UTIL, H_LINK };
static const struct column hop_columns[] = {
	[H_TIME] = { "TIME", 0 },
	[H_NODE] = { "NODE", 13 },
	[H_IN] = { "IN", 21 },
	[H_OUT] = { "OUT", 28 },
	[H_QUEUE] = { "QUEUE", 35 },
	[H_LATENCY] = { "LATENCY", 41 },
	[H_DEPTH] = { "DEPTH", 50 },
	[H_UTIL] = { "UTIL", 60 },
	[H_LINK] = { "LINK", 70 },
};

enum { V_TIME, V_REGION, V_WHERE, V_NAME, V_VALUE, V_INCREASE, V_BYTES };
static const struct column value_columns[] = {
	[V_TIME] = { "TIME", 0 },
	[V_REGION] = { "REGION", 13 },
	[V_WHERE] = { "LIST:NUMBER", 26 },
	[V_NAME] = { "NAME", 38 },
	[V_VALUE] = { "VALUE", 52 },
	[V_INCREASE] = { "INCREASE", 64 },
	[V_BYTES] = { "BYTES", 74 },
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A line being written; begin is where it started in the buffer. */
struct line {
	struct pl_buf *buf;
	const struct column *columns;
	size_t begin;
};

/* Goes to the next column: to its place, or one space behind a value that reached past it. */
static void column(struct line *line, unsigned int i)
{
	size_t used = line->buf->len - line->begin;

	if (i == 0)
		return;
	do
		pl_buf_chr(line->buf, ' ');
	while (++used < line->columns[i].at);
}

static void add_titles(struct pl_buf *buf, const struct column *cols, size_t n)
{
	struct line line = { buf, cols, buf->len };

	for (size_t i = 0; i < n; i++) {
		column(&line, (unsigned int)i);
		pl_buf_str(buf, cols[i].title);
	}
	pl_buf_chr(buf, '\n');
}

static void add_clock(struct pl_buf *buf, uint64_t ts_ns)
{
	uint64_t s = ts_ns / NS_PER_S % 86400;

	if (ts_ns == 0) {
		pl_buf_chr(buf, '-');
		return;
	}
	pl_buf_printf(buf, "%02u:%02u:%02u.%03u", (unsigned int)(s / 3600),
		(unsigned int)(s / 60 % 60), (unsigned int)(s % 60),
		(unsigned int)(ts_ns % NS_PER_S / 1000000));
}

static void add_date(struct pl_buf *buf, uint64_t ts_ns)
{
	time_t s = (time_t)(ts_ns / NS_PER_S);
	struct tm tm;

	if (ts_ns == 0) {
		pl_buf_chr(buf, '-');
		return;
	}
	if (gmtime_r(&s, &tm) == NULL) {
		pl_buf_u64(buf, ts_ns);
		return;
	}
	pl_buf_printf(buf, "%04d-%02d-%02dT%02d:%02d:%02d.%09uZ", tm.tm_year + 1900, tm.tm_mon + 1,
		tm.tm_mday, tm.tm_hour, tm.tm_min, tm.tm_sec, (unsigned int)(ts_ns % NS_PER_S));
}

/* An address, with its port when there is one. */
static void add_endpoint(
	struct pl_buf *buf, const struct pl_addr *addr, bool has_port, uint16_t port)
{
	bool brackets = has_port && !pl_addr_is_v4(addr);
	char text[PUT_VALUE_MAX];

	if (brackets)
		pl_buf_chr(buf, '[');
	pl_buf_add(buf, text, (size_t)(put_addr(text, addr) - text));
	if (brackets)
		pl_buf_chr(buf, ']');
	if (has_port) {
		pl_buf_chr(buf, ':');
		pl_buf_u64(buf, port);
	}
}

static void add_flow(struct pl_buf *buf, const struct pl_path *path)
{
	bool ports = (path->present & PL_PATH_HAS_sport) != 0;

	if ((path->present & PL_PATH_HAS_src) == 0) {
		pl_buf_chr(buf, '-');
		return;
	}
	add_endpoint(buf, &path->src, ports, path->sport);
	pl_buf_chr(buf, '>');
	add_endpoint(buf, &path->dst, ports, path->dport);
}

static void add_protocol(struct pl_buf *buf, const struct pl_path *path)
{
	if ((path->present & PL_PATH_HAS_proto) != 0) {
		switch (path->proto) {
		case 6:
			pl_buf_str(buf, " tcp");
			break;
		case 17:
			pl_buf_str(buf, " udp");
			break;
		default:
			pl_buf_printf(buf, " proto %u", path->proto);
			break;
		}
	}
	if ((path->present & PL_PATH_HAS_vlan) != 0)
		pl_buf_printf(buf, " vlan %u", path->vlan);
	if ((path->present & PL_PATH_HAS_vni) != 0)
		pl_buf_printf(buf, " vni %u", path->vni);
}

/* A number that may be missing. */
static void add_number(struct pl_buf *buf, bool has, uint64_t v, const char *missing)
{
	if (has)
		pl_buf_u64(buf, v);
	else
		pl_buf_str(buf, missing);
}

static void add_nodes(struct pl_buf *buf, const struct pl_hop *hops, size_t n, bool ports)
{
	if (n == 0)
		pl_buf_chr(buf, '-');
	for (size_t i = 0; i < n; i++) {
		uint32_t has = hops[i].present;

		if (i > 0)
			pl_buf_chr(buf, '>');
		if ((has & PL_HOP_HAS_node) == 0 && (has & PL_HOP_HAS_node_wide) != 0)
			pl_buf_u64(buf, hops[i].node_wide);
		else
			add_number(buf, (has & PL_HOP_HAS_node) != 0, hops[i].node, "?");
		if (!ports)
			continue;
		pl_buf_chr(buf, '(');
		add_number(buf, (has & PL_HOP_HAS_ingress_port) != 0, hops[i].ingress_port, "?");
		pl_buf_chr(buf, ',');
		add_number(buf, (has & PL_HOP_HAS_egress_port) != 0, hops[i].egress_port, "?");
		pl_buf_chr(buf, ')');
	}
}

static void add_duration(struct pl_buf *buf, bool has, uint64_t ns)
{
	char text[32];

	if (has)
		pl_buf_add(buf, text, pl_format_duration(text, sizeof(text), ns));
	else
		pl_buf_chr(buf, '-');
}

/* The set flags by letter: D and Q as the specification calls them. */
static void add_flag_letters(struct pl_buf *buf, unsigned int flags)
{
	static const char letters[] = "DQFPCIN";

	if ((flags & 0x7f) == 0)
		pl_buf_chr(buf, '-');
	for (unsigned int bit = 0; bit < sizeof(letters) - 1; bit++) {
		if (flags >> bit & 1)
			pl_buf_chr(buf, letters[bit]);
	}
}

static void add_word(struct pl_buf *buf, bool has, enum pl_form form, unsigned int value)
{
	const char *word = pl_form_word(form, value);

	if (!has)
		pl_buf_chr(buf, '-');
	else if (word != NULL)
		pl_buf_str(buf, word);
	else
		pl_buf_u64(buf, value);
}

static void add_narrow(
	struct line *line, const struct pl_path *path, const struct pl_hop *hops, size_t n)
{
	struct pl_buf *buf = line->buf;

	add_clock(buf, path->ts_ns);
	column(line, EXPORTER);
	if ((path->present & PL_PATH_HAS_exporter) != 0)
		add_endpoint(buf, &path->exporter, false, 0);
	else
		pl_buf_chr(buf, '-');
	column(line, FLOW);
	add_flow(buf, path);
	column(line, PATH);
	add_nodes(buf, hops, n, false);
	column(line, LATENCY);
	add_duration(buf, (path->present & PL_PATH_HAS_latency_ns) != 0, path->latency_ns);
	column(line, FLAGS);
	add_flag_letters(buf, path->flags);
	pl_buf_chr(buf, '\n');
}

static void add_hop_values(struct line *line, const struct pl_hop *hops, size_t n)
{
	struct pl_buf *buf = line->buf;

	column(line, W_HOPS);
	if (n == 0)
		pl_buf_chr(buf, '-');
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			pl_buf_chr(buf, ',');
		add_duration(buf, (hops[i].present & PL_HOP_HAS_hop_latency_ns) != 0,
			hops[i].hop_latency_ns);
	}
	column(line, W_QUEUES);
	if (n == 0)
		pl_buf_chr(buf, '-');
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			pl_buf_chr(buf, ',');
		add_number(buf, (hops[i].present & PL_HOP_HAS_queue_depth) != 0,
			hops[i].queue_depth, "-");
	}
}

static void add_wide(
	struct line *line, const struct pl_path *path, const struct pl_hop *hops, size_t n)
{
	struct pl_buf *buf = line->buf;
	uint32_t has = path->present;

	add_date(buf, path->ts_ns);
	column(line, W_EXPORTER);
	if ((has & PL_PATH_HAS_exporter) != 0)
		add_endpoint(buf, &path->exporter, true, path->exporter_port);
	else
		pl_buf_chr(buf, '-');
	column(line, W_NODE);
	add_number(buf, (has & PL_PATH_HAS_node) != 0, path->node, "-");
	column(line, W_REPORT);
	add_word(buf, (has & PL_PATH_HAS_report_version) != 0, PL_FORM_REPORT_VERSION,
		path->report_version);
	column(line, W_SEQ);
	add_number(buf, (has & PL_PATH_HAS_seq) != 0, path->seq, "-");
	column(line, W_MODE);
	add_word(buf, true, PL_FORM_MODE, path->mode);
	column(line, W_DIALECT);
	add_word(buf, (has & PL_PATH_HAS_dialect) != 0, PL_FORM_DIALECT, path->dialect);
	column(line, W_FLOW);
	add_flow(buf, path);
	add_protocol(buf, path);
	column(line, W_PATH);
	add_nodes(buf, hops, n, true);
	column(line, W_LATENCY);
	add_duration(buf, (has & PL_PATH_HAS_latency_ns) != 0, path->latency_ns);
	add_hop_values(line, hops, n);
	column(line, W_FLAGS);
	pl_path_flags_text(buf, path->flags, "-");
	column(line, W_PATH_ID);
	if ((has & PL_PATH_HAS_path_id) != 0)
		pl_buf_hex64(buf, path->path_id);
	else
		pl_buf_chr(buf, '-');
	pl_buf_chr(buf, '\n');
}

void pl_path_table_header(struct pl_buf *buf, bool wide)
{
	if (wide)
		add_titles(buf, wide_columns, COUNT(wide_columns));
	else
		add_titles(buf, columns, COUNT(columns));
}

void pl_path_table(struct pl_buf *buf, const struct pl_path *path, const struct pl_hop *hops,
	size_t n, bool wide)
{
	struct line line = { buf, wide ? wide_columns : columns, buf->len };

	if (wide)
		add_wide(&line, path, hops, n);
	else
		add_narrow(&line, path, hops, n);
}

void pl_hop_table_header(struct pl_buf *buf)
{
	add_titles(buf, hop_columns, COUNT(hop_columns));
}

void pl_hop_table(struct pl_buf *buf, const struct pl_hop *hop)
{
	struct line line = { buf, hop_columns, buf->len };
	uint32_t has = hop->present;

	add_clock(buf, hop->ts_ns);
	column(&line, H_NODE);
	if ((has & PL_HOP_HAS_node) == 0 && (has & PL_HOP_HAS_node_wide) != 0)
		pl_buf_u64(buf, hop->node_wide);
	else
		add_number(buf, (has & PL_HOP_HAS_node) != 0, hop->node, "-");
	column(&line, H_IN);
	add_number(buf, (has & PL_HOP_HAS_ingress_port) != 0, hop->ingress_port, "-");
	column(&line, H_OUT);
	add_number(buf, (has & PL_HOP_HAS_egress_port) != 0, hop->egress_port, "-");
	column(&line, H_QUEUE);
	add_number(buf, (has & PL_HOP_HAS_queue) != 0, hop->queue, "-");
	column(&line, H_LATENCY);
	add_duration(buf, (has & PL_HOP_HAS_hop_latency_ns) != 0, hop->hop_latency_ns);
	column(&line, H_DEPTH);
	add_number(buf, (has & PL_HOP_HAS_queue_depth) != 0, hop->queue_depth, "-");
	column(&line, H_UTIL);
	add_number(buf, (has & PL_HOP_HAS_tx_util) != 0, hop->tx_util, "-");
	column(&line, H_LINK);
	add_duration(buf, (has & PL_HOP_HAS_link_latency_ns) != 0 && hop->link_latency_ns >= 0,
		(uint64_t)hop->link_latency_ns);
	pl_buf_chr(buf, '\n');
}

void pl_event_table_header(struct pl_buf *buf)
{
	add_titles(buf, event_columns, COUNT(event_columns));
}

/* True when value and threshold are times. */
static bool of_time(const struct pl_event *event)
{
	unsigned int kind = event->event;

	if ((event->present & PL_EVENT_HAS_quantity) != 0)
		kind = pl_event_get_quantity(event);
	if ((event->present & PL_EVENT_HAS_role) != 0)
		return pl_event_get_role(event) == PL_ROLE_VICTIM;
	return kind == PL_EVENT_HOP_LATENCY || kind == PL_EVENT_LINK_LATENCY ||
	       kind == PL_EVENT_FLOW_LATENCY;
}

static void add_quantity(struct pl_buf *buf, const struct pl_event *event, bool has, uint64_t v)
{
	if (of_time(event))
		add_duration(buf, has, v);
	else
		add_number(buf, has, v, "-");
}

/* Adds the nodes of both paths of a path change, or their ids if the nodes are not known. */
static void add_event_path(struct pl_buf *buf, const struct pl_event *event)
{
	struct pl_path_nodes now = { 0 }, old = { 0 };
	char nodes[PL_PATH_NODES_TEXT];

	(void)pl_event_paths(event, &now, &old);
	if (old.hops != 0) {
		pl_path_nodes_text(nodes, &old);
		pl_buf_printf(buf, " was %s", nodes);
	} else if ((event->present & PL_EVENT_HAS_old_path_id) != 0) {
		pl_buf_printf(buf, " was %016llx", (unsigned long long)event->old_path_id);
	}
	if (now.hops != 0) {
		pl_path_nodes_text(nodes, &now);
		pl_buf_printf(buf, " path %s", nodes);
	} else if ((event->present & PL_EVENT_HAS_path_id) != 0) {
		pl_buf_printf(buf, " path %016llx", (unsigned long long)event->path_id);
	}
}

/* "q at 42 of sw1/3": where in which region a value is, and its key. */
static void add_event_place(struct pl_buf *buf, const struct pl_event *event)
{
	const struct pl_text32 region = pl_event_get_region(event);

	pl_buf_printf(buf, "%.*s at %llu", (int)sizeof(region.c), region.c,
		(unsigned long long)pl_event_get_place(event));
	if ((event->present & PL_EVENT_HAS_key) != 0) {
		const struct pl_text40 key = pl_event_get_key(event);

		pl_buf_printf(buf, " of %.*s", (int)sizeof(key.c), key.c);
	}
}

void pl_event_table(struct pl_buf *buf, const struct pl_event *event)
{
	struct line line = { buf, event_columns, buf->len };
	uint32_t has = event->present;
	bool ports = (has & PL_EVENT_HAS_sport) != 0;

	add_clock(buf, event->ts_ns);
	column(&line, E_EVENT);
	add_word(buf, true, PL_FORM_EVENT, event->event);
	column(&line, E_PHASE);
	add_word(buf, true, PL_FORM_PHASE, event->phase);
	column(&line, E_NODE);
	add_number(buf, (has & PL_EVENT_HAS_node) != 0, event->node, "-");
	column(&line, E_PORT);
	add_number(buf, (has & PL_EVENT_HAS_port) != 0, event->port, "-");
	column(&line, E_QUEUE);
	add_number(buf, (has & PL_EVENT_HAS_queue) != 0, event->queue, "-");
	column(&line, E_VALUE);
	add_quantity(buf, event, (has & PL_EVENT_HAS_value) != 0, event->value);
	column(&line, E_THRESHOLD);
	add_quantity(buf, event, (has & PL_EVENT_HAS_threshold) != 0, event->threshold);
	column(&line, E_FLOW);
	if ((has & PL_EVENT_HAS_src) != 0) {
		add_endpoint(buf, &event->src, ports, event->sport);
		pl_buf_chr(buf, '>');
		add_endpoint(buf, &event->dst, ports, event->dport);
	} else if ((has & PL_EVENT_HAS_exporter) != 0) {
		add_endpoint(buf, &event->exporter, false, 0);
	} else if ((has & PL_EVENT_HAS_region) != 0) {
		add_event_place(buf, event);
	} else {
		pl_buf_chr(buf, '-');
	}
	add_event_path(buf, event);
	if ((has & PL_EVENT_HAS_unit) != 0) {
		pl_buf_str(buf, " in ");
		add_word(buf, true, PL_FORM_UNIT, pl_event_get_unit(event));
	}
	if ((has & PL_EVENT_HAS_quantity) != 0) {
		pl_buf_str(buf, " of ");
		add_word(buf, true, PL_FORM_QUANTITY, pl_event_get_quantity(event));
	}
	if ((has & PL_EVENT_HAS_role) != 0) {
		pl_buf_chr(buf, ' ');
		add_word(buf, true, PL_FORM_ROLE, pl_event_get_role(event));
		pl_buf_printf(buf, " %u", pl_event_get_rank(event));
	}
	if ((has & PL_EVENT_HAS_peer_node) != 0)
		pl_buf_printf(buf, " from %llu", (unsigned long long)pl_event_get_peer_node(event));
	if ((has & PL_EVENT_HAS_duration_ns) != 0) {
		pl_buf_str(buf, " for ");
		add_duration(buf, true, pl_event_get_duration_ns(event));
	}
	pl_buf_chr(buf, '\n');
}

void pl_value_table_header(struct pl_buf *buf)
{
	add_titles(buf, value_columns, COUNT(value_columns));
}

void pl_value_table(struct pl_buf *buf, const struct pl_value *value)
{
	struct line line = { buf, value_columns, buf->len };
	uint32_t has = value->present;
	char told[PUT_LONG_MAX];

	add_clock(buf, value->ts_ns);
	column(&line, V_REGION);
	pl_buf_str(buf, value->region.c);
	column(&line, V_WHERE);
	if ((has & PL_VALUE_HAS_list) != 0)
		pl_buf_printf(buf, "%u:", value->list);
	pl_buf_u64(buf, value->number);
	column(&line, V_NAME);
	pl_buf_str(buf, (has & PL_VALUE_HAS_name) != 0 ? value->name.c : "-");
	column(&line, V_VALUE);
	add_number(buf, (has & PL_VALUE_HAS_value) != 0, value->value, "-");
	column(&line, V_INCREASE);
	add_number(buf, (has & PL_VALUE_HAS_increase) != 0, value->increase, "-");
	column(&line, V_BYTES);
	if ((has & PL_VALUE_HAS_bytes) == 0) {
		pl_buf_str(buf, "-\n");
		return;
	}
	pl_buf_add(buf, told, (size_t)(put_told(told, &value->bytes) - told));
	if (value->length > value->bytes.n)
		pl_buf_printf(buf, "... of %u bytes", value->length);
	pl_buf_chr(buf, '\n');
}
