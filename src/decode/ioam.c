/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * IOAM of a packet into one path record. A trace gives hops; direct export, edge to edge and proof
 * of transit add what they know to the path. docs/protocols/ioam.md has the table of what goes
 * where.
 */
#include "wire/ioam.h"

#include <errno.h>

#include "base/num.h"
#include "decode/internal.h"

#define NS_PER_S    UINT64_C(1000000000)
#define NTP_TO_UNIX UINT32_C(2208988800) /* seconds from 1900 to 1970 */

int pl_ioam_namespace_parse(struct pl_ioam_namespace *ret, const char *text)
{
	static const char *const formats[] = {
		[PL_IOAM_TIME_POSIX] = "posix",
		[PL_IOAM_TIME_PTP] = "ptp",
		[PL_IOAM_TIME_NTP] = "ntp",
	};
	const char *equals = strchr(text, '=');
	char number[8];
	uint64_t ns;

	if (equals == NULL || (size_t)(equals - text) >= sizeof(number))
		return -EINVAL;
	memcpy(number, text, (size_t)(equals - text));
	number[equals - text] = '\0';
	if (pl_parse_u64(number, &ns) < 0 || ns > UINT16_MAX)
		return -EINVAL;
	for (unsigned int i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		if (strcmp(equals + 1, formats[i]) == 0) {
			*ret = (struct pl_ioam_namespace){ (uint16_t)ns, (uint8_t)i };
			return 0;
		}
	}
	return -EINVAL;
}

static enum pl_ioam_time time_format(const struct pl_decode_options *opt, uint16_t ns)
{
	for (unsigned int i = 0; i < opt->n_ioam_namespaces; i++) {
		if (opt->ioam_namespaces[i].ns == ns)
			return (enum pl_ioam_time)opt->ioam_namespaces[i].time;
	}
	return PL_IOAM_TIME_POSIX;
}

/* Converts a time. False when the format has no such value: then another format was meant, and any
 * time would be wrong. */
static bool to_unix_ns(uint64_t *ret, enum pl_ioam_time format, uint32_t seconds, uint32_t fraction)
{
	switch (format) {
	case PL_IOAM_TIME_POSIX:
		*ret = seconds * NS_PER_S + fraction * UINT64_C(1000);
		return fraction < 1000000;
	case PL_IOAM_TIME_PTP:
		*ret = seconds * NS_PER_S + fraction;
		return fraction < NS_PER_S;
	case PL_IOAM_TIME_NTP:
		*ret = (uint64_t)(seconds - NTP_TO_UNIX) * NS_PER_S + ((fraction * NS_PER_S) >> 32);
		return seconds >= NTP_TO_UNIX;
	}
	return false;
}

/* Values that a node writes for a trace type when it has them all. */
static uint32_t expected(uint32_t type)
{
	static const struct {
		uint32_t bit, has;
	} fields[] = {
		{ PL_IOAM_BIT(0), PL_IOAM_HAS_HOP_LIMIT | PL_IOAM_HAS_NODE },
		{ PL_IOAM_BIT(1), PL_IOAM_HAS_INGRESS | PL_IOAM_HAS_EGRESS },
		{ PL_IOAM_BIT(2), PL_IOAM_HAS_SECONDS },
		{ PL_IOAM_BIT(3), PL_IOAM_HAS_FRACTION },
		{ PL_IOAM_BIT(4), PL_IOAM_HAS_DELAY },
		{ PL_IOAM_BIT(5), PL_IOAM_HAS_NS_DATA },
		{ PL_IOAM_BIT(6), PL_IOAM_HAS_QUEUE },
		{ PL_IOAM_BIT(8), PL_IOAM_HAS_HOP_LIMIT | PL_IOAM_HAS_NODE_WIDE },
		{ PL_IOAM_BIT(9), PL_IOAM_HAS_INGRESS_WIDE | PL_IOAM_HAS_EGRESS_WIDE },
		{ PL_IOAM_BIT(10), PL_IOAM_HAS_NS_DATA_WIDE },
		{ PL_IOAM_BIT(11), PL_IOAM_HAS_BUFFER },
	};
	uint32_t all = 0;

	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		all |= (type & fields[i].bit) != 0 ? fields[i].has : 0;
	return all;
}

#define SET(hop, field, value)                                                                     \
	do {                                                                                       \
		(hop)->field = (value);                                                            \
		(hop)->present |= PL_HOP_HAS_##field;                                              \
	} while (0)

static void set_names(struct pl_hop *h, const struct pl_ioam_node *n)
{
	if (n->have & PL_IOAM_HAS_NODE)
		SET(h, node, n->node);
	else if (n->have & PL_IOAM_HAS_NODE_WIDE)
		SET(h, node, n->node_wide);
	if (n->have & PL_IOAM_HAS_NODE_WIDE)
		SET(h, node_wide, n->node_wide);
	if (n->have & PL_IOAM_HAS_INGRESS)
		SET(h, ingress_port, n->ingress);
	else if (n->have & PL_IOAM_HAS_INGRESS_WIDE)
		SET(h, ingress_port, n->ingress_wide);
	if (n->have & PL_IOAM_HAS_EGRESS)
		SET(h, egress_port, n->egress);
	else if (n->have & PL_IOAM_HAS_EGRESS_WIDE)
		SET(h, egress_port, n->egress_wide);
	if (n->have & PL_IOAM_HAS_INGRESS_WIDE)
		SET(h, ingress_port2, n->ingress_wide);
	if (n->have & PL_IOAM_HAS_EGRESS_WIDE)
		SET(h, egress_port2, n->egress_wide);
}

/* The time is the time of arrival. Whole seconds are too coarse to compute a latency. */
static void set_times(
	struct job *j, struct pl_hop *h, const struct pl_ioam_node *n, enum pl_ioam_time format)
{
	const uint32_t both = PL_IOAM_HAS_SECONDS | PL_IOAM_HAS_FRACTION;
	uint64_t ns;

	if ((n->have & PL_IOAM_HAS_DELAY) != 0 && n->delay_overflow)
		j->notes |= PL_NOTE_BIT(LATENCY_IMPLAUSIBLE);
	else if (n->have & PL_IOAM_HAS_DELAY)
		SET(h, hop_latency_ns, n->delay_ns);
	if ((n->have & both) != both)
		return;
	if (!to_unix_ns(&ns, format, n->seconds, n->fraction)) {
		j->notes |= PL_NOTE_BIT(IOAM_TIME);
		return;
	}
	SET(h, ingress_ts_ns, ns);
	SET(h, time_bits, 64);
	/* The delay is the time from arrival to departure, by the same clock. */
	if (h->present & PL_HOP_HAS_hop_latency_ns)
		SET(h, egress_ts_ns, ns + n->delay_ns);
}

static void set_hop(struct job *j, struct pl_hop *h, const struct pl_ioam_node *n, uint16_t ns,
	enum pl_ioam_time format)
{
	memset(h, 0, sizeof(*h));
	h->record_version = PL_RECORD_VERSION;
	SET(h, ioam_namespace, ns);
	set_names(h, n);
	set_times(j, h, n, format);
	if (n->have & PL_IOAM_HAS_HOP_LIMIT)
		SET(h, hop_limit, n->hop_limit);
	if (n->have & PL_IOAM_HAS_QUEUE)
		SET(h, queue_depth, n->queue);
	if (n->have & PL_IOAM_HAS_BUFFER)
		SET(h, buffer_depth, n->buffer);
	if (n->have & PL_IOAM_HAS_NS_DATA)
		pl_hop_set_ns_data(h, n->ns_data);
	if (n->have & PL_IOAM_HAS_NS_DATA_WIDE)
		SET(h, ns_data_wide, n->ns_data_wide);
	if (n->have & PL_IOAM_HAS_SCHEMA)
		SET(h, schema_id, n->schema);
}

/* Values of the options of a level so far. */
struct gathered {
	struct job *j;
	struct pl_path *path;
	struct pl_hop *hops;
	unsigned int n;
	uint32_t kinds; /* bits of enum pl_ioam_kind */
	/* namespace of the first option of a kind; of direct export, of the first with a flow id or
	 * a number */
	uint16_t ns[PL_IOAM_DEX + 1];
	/* direct export gave a flow id or a number: flow_id and flow_seq are from it */
	bool dex_flow;
	bool e2e_time;
	uint64_t e2e_ns;
	struct pl_ioam_pot pot; /* have_values: it has some */
};

static enum pl_verdict gather_trace(struct gathered *g, const struct pl_ioam_option *option)
{
	struct pl_ioam_node nodes[PL_IOAM_NODES_MAX];
	struct pl_ioam_trace trace;
	enum pl_verdict v = pl_ioam_trace_parse(&trace, option);
	enum pl_ioam_time format;
	unsigned int n = 0;
	uint32_t want;

	if (v != PL_V_OK)
		return v;
	while (n < PL_IOAM_NODES_MAX && pl_ioam_node_next(&trace, &nodes[n], &v))
		n++;
	if (v != PL_V_OK)
		return v;
	if ((g->kinds & (1u << PL_IOAM_PREALLOCATED | 1u << PL_IOAM_INCREMENTAL)) != 0) {
		g->j->notes |= PL_NOTE_BIT(IOAM_MORE);
		return PL_V_OK;
	}
	format = time_format(&g->j->d->opt, trace.ns);
	want = expected(trace.type);
	/* Newest first on the wire; the record has the source first. */
	for (unsigned int i = 0; i < n; i++) {
		const struct pl_ioam_node *node = &nodes[n - 1 - i];

		set_hop(g->j, &g->hops[i], node, trace.ns, format);
		if ((want & ~node->have) != 0)
			g->j->notes |= PL_NOTE_BIT(VALUES_MISSING);
	}
	g->n = n;
	g->ns[PL_IOAM_PREALLOCATED] = trace.ns;
	g->j->notes |= trace.notes;
	if (n == 0)
		g->j->notes |= PL_NOTE_BIT(NO_HOPS);
	if ((trace.flags & PL_IOAM_OVERFLOW) != 0) {
		g->path->flags |= PL_FLAG_PARTIAL;
		g->j->notes |= PL_NOTE_BIT(PARTIAL);
		/* As with E of INT: nodes are missing behind the newest one. */
		g->j->links = n;
	}
	/* An active packet is a measurement, not traffic (RFC 9322 5). */
	if ((trace.flags & PL_IOAM_ACTIVE) != 0)
		g->path->flags |= PL_FLAG_COPY;
	return PL_V_OK;
}

/* Sets the flow's number. The number of direct export, which belongs to its flow id, has
 * precedence, because a record has one namespace for both. */
static void set_flow_seq(struct gathered *g, uint64_t seq)
{
	if (seq > UINT32_MAX) {
		g->j->notes |= PL_NOTE_BIT(IOAM_SEQUENCE);
	} else if (!g->dex_flow) {
		g->path->flow_seq = (uint32_t)seq;
		g->path->present |= PL_PATH_HAS_flow_seq;
	}
}

static enum pl_verdict gather_e2e(struct gathered *g, const struct pl_ioam_option *option)
{
	struct pl_ioam_e2e e2e;
	enum pl_verdict v = pl_ioam_e2e_parse(&e2e, option);

	if (v != PL_V_OK)
		return v;
	g->j->notes |= e2e.notes;
	if ((g->kinds & 1u << PL_IOAM_E2E) != 0) {
		g->j->notes |= PL_NOTE_BIT(IOAM_MORE);
		return PL_V_OK;
	}
	g->ns[PL_IOAM_E2E] = e2e.ns;
	if (e2e.have_seq)
		set_flow_seq(g, e2e.seq);
	if (!e2e.have_seconds || !e2e.have_fraction)
		return PL_V_OK;
	g->e2e_time = to_unix_ns(
		&g->e2e_ns, time_format(&g->j->d->opt, e2e.ns), e2e.seconds, e2e.fraction);
	if (!g->e2e_time)
		g->j->notes |= PL_NOTE_BIT(IOAM_TIME);
	return PL_V_OK;
}

static enum pl_verdict gather_dex(struct gathered *g, const struct pl_ioam_option *option)
{
	struct pl_ioam_dex dex;
	enum pl_verdict v = pl_ioam_dex_parse(&dex, option);

	if (v != PL_V_OK)
		return v;
	g->j->notes |= dex.notes;
	if (g->dex_flow) {
		g->j->notes |= PL_NOTE_BIT(IOAM_MORE);
		return PL_V_OK;
	}
	g->ns[PL_IOAM_DEX] = dex.ns;
	if (!dex.have_flow && !dex.have_seq)
		return PL_V_OK;
	g->dex_flow = true;
	g->path->flow_id = dex.flow;
	g->path->flow_seq = dex.seq;
	g->path->present &= ~(uint32_t)(PL_PATH_HAS_flow_id | PL_PATH_HAS_flow_seq);
	if (dex.have_flow)
		g->path->present |= PL_PATH_HAS_flow_id;
	if (dex.have_seq)
		g->path->present |= PL_PATH_HAS_flow_seq;
	return PL_V_OK;
}

static enum pl_verdict gather_pot(struct gathered *g, const struct pl_ioam_option *option)
{
	struct pl_ioam_pot pot;
	enum pl_verdict v = pl_ioam_pot_parse(&pot, option);

	if (v != PL_V_OK)
		return v;
	g->j->notes |= pot.notes;
	if (g->pot.have_values) {
		g->j->notes |= PL_NOTE_BIT(IOAM_MORE);
		return PL_V_OK;
	}
	g->pot = pot;
	g->ns[PL_IOAM_POT] = pot.ns;
	return PL_V_OK;
}

static enum pl_verdict gather_option(struct gathered *g, const struct pl_ioam_option *option)
{
	switch ((enum pl_ioam_kind)option->kind) {
	case PL_IOAM_PREALLOCATED:
	case PL_IOAM_INCREMENTAL:
		return gather_trace(g, option);
	case PL_IOAM_POT:
		return gather_pot(g, option);
	case PL_IOAM_E2E:
		return gather_e2e(g, option);
	case PL_IOAM_DEX:
		return gather_dex(g, option);
	}
	return PL_V_IOAM_OPTION;
}

static enum pl_verdict gather(struct gathered *g, struct pl_cursor area, bool *ret_unassigned)
{
	struct pl_ioam_option option;
	enum pl_verdict v;

	for (;;) {
		if (!pl_ioam_next(&area, &option, &v)) {
			if (v != PL_V_IOAM_OPTION)
				return v;
			*ret_unassigned = true;
			continue;
		}
		v = gather_option(g, &option);
		if (v != PL_V_OK)
			return v;
		g->kinds |= 1u << option.kind;
	}
}

/* The kind with most values names the mode. */
static enum pl_mode mode_of(uint32_t kinds)
{
	if (kinds & (1u << PL_IOAM_PREALLOCATED | 1u << PL_IOAM_INCREMENTAL))
		return PL_MODE_IOAM_TRACE;
	if (kinds & 1u << PL_IOAM_DEX)
		return PL_MODE_IOAM_DEX;
	if (kinds & 1u << PL_IOAM_E2E)
		return PL_MODE_IOAM_E2E;
	return PL_MODE_IOAM_POT;
}

/* Namespace of the path: flow id and number belong to it, and mean nothing without it. */
static uint16_t namespace_of(const struct gathered *g)
{
	static const uint8_t first[] = { PL_IOAM_E2E, PL_IOAM_DEX, PL_IOAM_POT };

	if (g->dex_flow)
		return g->ns[PL_IOAM_DEX];
	for (size_t i = 0; i < sizeof(first); i++) {
		if (g->kinds & 1u << first[i])
			return g->ns[first[i]];
	}
	return g->ns[PL_IOAM_PREALLOCATED];
}

/* Sets the encapsulating node's time; without a trace, which would have more, also makes a path of
 * that single node. */
static void set_e2e_time(struct gathered *g)
{
	if (g->n > 0)
		return;
	memset(&g->hops[0], 0, sizeof(g->hops[0]));
	g->hops[0].record_version = PL_RECORD_VERSION;
	SET(&g->hops[0], ioam_namespace, g->ns[PL_IOAM_E2E]);
	SET(&g->hops[0], egress_ts_ns, g->e2e_ns);
	SET(&g->hops[0], time_bits, 64);
	g->n = 1;
}

/* Sets values that belong to no hop. They take the place of the exporter in a record, so they are
 * not set in a record of a report. */
static void set_path(struct gathered *g)
{
	struct pl_path *path = g->path;

	if ((path->present & PL_PATH_HAS_exporter) != 0) {
		/* The hops have the rest. */
		if ((g->kinds & (1u << PL_IOAM_DEX | 1u << PL_IOAM_POT)) != 0 ||
			(g->e2e_time && mode_of(g->kinds) != PL_MODE_IOAM_E2E))
			g->j->notes |= PL_NOTE_BIT(IOAM_IN_REPORT);
		return;
	}
	pl_path_set_ioam_namespace(path, namespace_of(g));
	if (g->e2e_time)
		pl_path_set_e2e_ts_ns(path, g->e2e_ns);
	if (g->pot.have_values) {
		pl_path_set_pot_packet_id(path, g->pot.packet_id);
		pl_path_set_pot_cumulative(path, g->pot.cumulative);
	}
}

static bool area_holds_ioam(struct pl_cursor area)
{
	struct pl_ioam_option option;
	enum pl_verdict v = PL_V_OK;

	return pl_ioam_next(&area, &option, &v) || v != PL_V_OK;
}

bool holds_ioam(const struct pl_layers *level)
{
	return ((level->flags & PL_LAYERS_HOP_OPTS) != 0 && area_holds_ioam(level->hop_opts)) ||
	       ((level->flags & PL_LAYERS_DST_OPTS) != 0 && area_holds_ioam(level->dst_opts));
}

enum pl_verdict decode_ioam(struct job *j, struct pl_path *path, struct pl_hop *hops,
	unsigned int *ret_n, const struct pl_layers *level, bool *ret_found)
{
	struct gathered g = { .j = j, .path = path, .hops = hops };
	enum pl_verdict v = PL_V_OK;
	bool unassigned = false;

	*ret_n = 0;
	*ret_found = false;
	if (level->flags & PL_LAYERS_HOP_OPTS)
		v = gather(&g, level->hop_opts, &unassigned);
	if (v == PL_V_OK && (level->flags & PL_LAYERS_DST_OPTS) != 0)
		v = gather(&g, level->dst_opts, &unassigned);
	if (v != PL_V_OK)
		return v;
	/* An unknown type beside a known one does not invalidate the known one. */
	if (unassigned && g.kinds == 0)
		return PL_V_IOAM_OPTION;
	if (unassigned)
		j->notes |= PL_NOTE_BIT(UNASSIGNED);
	if (g.kinds == 0)
		return PL_V_OK;
	path->mode = (uint8_t)mode_of(g.kinds);
	if (g.e2e_time)
		set_e2e_time(&g);
	set_path(&g);
	*ret_n = g.n;
	*ret_found = true;
	return PL_V_OK;
}

enum pl_verdict decode_ioam_trace(struct job *j, struct pl_path *path, struct pl_hop *hops,
	unsigned int *ret_n, struct pl_cursor body)
{
	const struct pl_ioam_option option = {
		.kind = PL_IOAM_PREALLOCATED, .option_type = PL_IP6_OPT_IOAM_MUTABLE, .body = body
	};
	struct gathered g = { .j = j, .path = path, .hops = hops };
	enum pl_verdict v = gather_trace(&g, &option);

	*ret_n = 0;
	if (v != PL_V_OK)
		return v;
	g.kinds = 1u << PL_IOAM_PREALLOCATED;
	path->mode = PL_MODE_IOAM_TRACE;
	set_path(&g);
	*ret_n = g.n;
	return PL_V_OK;
}
