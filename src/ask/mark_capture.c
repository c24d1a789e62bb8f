/* SPDX-License-Identifier: BSD-2-Clause */
/* Meters the packets of a capture. */
#include "ask/mark_capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ask/mark_hash.h"
#include "base/complain.h"
#include "mark/select.h"
#include "netio/port.h"
#include "record/flow_hash.h"

#define LONG_BYTES 9216u /* Ethernet's largest common frame */

static void keep(void *arg, const struct pl_mark128 *record)
{
	struct pl_mark_capture *c = arg;

	if (c->n_records == c->room) {
		const size_t room = c->room == 0 ? 1024 : 2 * c->room;
		struct pl_mark128 *more =
			c->no_memory ? NULL : realloc(c->records, room * sizeof(*more));

		if (more == NULL) {
			c->no_memory = true;
			return;
		}
		c->records = more;
		c->room = room;
	}
	c->records[c->n_records++] = *record;
}

struct pl_pkt96 pl_mark_capture_record(const struct pl_packet *p, const struct pl_layers *layers)
{
	const struct pl_flow *f = &layers->flow;
	const uint32_t ahead = layers->network != NULL && layers->network > p->data
				       ? (uint32_t)(layers->network - p->data)
				       : 0;
	const uint32_t len = p->wire_len > ahead ? p->wire_len - ahead : 0;
	struct pl_pkt96 r = { .ts_ns = p->ts_ns,
		.src = f->src,
		.dst = (layers->flags & PL_LAYERS_ROUTED) != 0 ? pl_addr_v6(layers->last_segment)
							       : f->dst,
		.sport = f->sport,
		.dport = f->dport,
		.proto = f->proto,
		.ttl = layers->ttl,
		.tos = (uint8_t)(f->dscp << 2 | layers->ecn),
		.wire_len = (uint16_t)(len < UINT16_MAX ? len : UINT16_MAX),
		.vlan = f->vlan };

	if ((f->have & PL_FLOW_PORTS) == 0)
		r.sport = r.dport = 0;
	r.flow_hash = pl_flow_hash_packet(&r);
	return r;
}

static struct pl_mark_flow flow_of(
	const struct pl_mark_capture *c, const struct pl_pkt96 *r, const struct pl_altmark *option)
{
	struct pl_mark_flow f = { .src = r->src, .dst = r->dst };

	if (c->options->where.colour.carrier == PL_MARK_AT_OPTION) {
		f.has_flow_id = 1;
		f.flow_id = option->flow_id;
		return f;
	}
	f.sport = r->sport;
	f.dport = r->dport;
	f.proto = r->proto;
	return f;
}

static void note_length(struct pl_mark_capture *c, const struct pl_pkt96 *r)
{
	if (r->proto == PL_IP_TCP && r->wire_len > c->longest_tcp)
		c->longest_tcp = r->wire_len;
	if (r->proto == PL_IP_UDP && r->wire_len > c->longest_udp)
		c->longest_udp = r->wire_len;
}

/* Marks the blocks around the one for which a packet came too late: it belongs to this block or to
 * a neighbour. */
static void note_late(struct pl_mark_capture *c, uint64_t block)
{
	if (c->late_to == 0 || block - 1 < c->late_from)
		c->late_from = block - 1;
	if (block + 1 > c->late_to)
		c->late_to = block + 1;
}

/* Beside a colour: keeps the time of a packet counted in the block when the hash chooses it. */
static void sample(struct pl_mark_capture *c, const struct pl_layers *layers,
	const struct pl_mark_flow *flow, uint64_t block, uint64_t time_ns)
{
	if (!pl_mark_hashes_add(c->hashes, flow, block, pl_mark_select_hash(layers, 0), time_ns))
		c->unsampled++;
}

/* Zero marking: keeps the packet's time when the hash chooses it. */
static void choose(struct pl_mark_capture *c, const struct pl_layers *layers,
	const struct pl_pkt96 *r, uint64_t time_ns)
{
	const struct pl_mark_flow flow = { .src = r->src,
		.dst = r->dst,
		.sport = r->sport,
		.dport = r->dport,
		.proto = r->proto };

	if (pl_mark_hashes_add(c->hashes, &flow, time_ns / c->options->period_ns,
		    pl_mark_select_hash(layers, 0), time_ns))
		c->metered++;
	else
		c->unsampled++;
	note_length(c, r);
}

/* Returns true when the capture has too few bytes of the packet for its flow, or its hash. */
static bool is_cut(const struct pl_mark_capture *c, const struct pl_layers *layers)
{
	return (layers->flags & PL_LAYERS_NO_L4) != 0 ||
	       (c->hashes != NULL && (layers->flags & PL_LAYERS_CUT) != 0 &&
		       pl_cursor_left(&layers->transport) < PL_MARK_PAYLOAD_BYTES);
}

static void take(void *arg, const struct pl_packet *p)
{
	struct pl_mark_capture *c = arg;
	const uint64_t time_ns = p->ts_ns + c->options->tai_offset * UINT64_C(1000000000);
	struct pl_layers layers;
	struct pl_pkt96 record;
	struct pl_altmark option;
	struct pl_mark_flow flow;
	enum pl_mark_read read;
	unsigned int bits = 0;
	struct pl_mark_meter_stats before;

	c->packets++;
	c->first_ns = c->first_ns == 0 || time_ns < c->first_ns ? time_ns : c->first_ns;
	c->last_ns = time_ns > c->last_ns ? time_ns : c->last_ns;
	if (pl_layers_walk(&layers, pl_cursor(p->data, p->len), (enum pl_link)p->link, true) !=
			PL_V_OK ||
		layers.network == NULL) {
		c->not_ip++;
		return;
	}
	/* A router copies the mark into all fragments that it makes. */
	if ((layers.flags & PL_LAYERS_FRAGMENT) != 0) {
		c->fragments++;
		return;
	}
	if (is_cut(c, &layers)) {
		c->cut++;
		return;
	}
	record = pl_mark_capture_record(p, &layers);
	if (pl_tap_rules_apply(&c->rules, &record) == PL_TAP_RULED_SKIP) {
		c->left_out++;
		return;
	}
	if (c->options->unmarked) {
		choose(c, &layers, &record, time_ns);
		return;
	}
	read = pl_mark_read(&c->options->where, &layers, &bits, &option);
	if (read != PL_MARK_READ_OK) {
		c->elsewhere += read == PL_MARK_READ_ELSEWHERE;
		c->broken_option += read == PL_MARK_READ_BROKEN;
		return;
	}
	c->metered++;
	note_length(c, &record);
	flow = flow_of(c, &record, &option);
	before = *pl_mark_meter_stats(c->meter);
	pl_mark_meter_count(c->meter, &flow, time_ns, bits, 1, record.wire_len);
	if (pl_mark_meter_stats(c->meter)->too_late != before.too_late)
		note_late(c, time_ns / c->options->period_ns);
	if (c->hashes != NULL && pl_mark_meter_stats(c->meter)->counted != before.counted)
		sample(c, &layers, &flow,
			pl_mark_see(c->options->method, time_ns, c->options->period_ns, bits).block,
			time_ns);
}

bool pl_mark_capture_each(
	const char *path, void (*one)(void *arg, const struct pl_packet *packet), void *arg)
{
	static struct pl_batch batch; /* one capture after the other */
	struct pl_diag diag = { 0 };
	struct pl_port *port;
	int r = pl_port_open(&port, path, PL_PORT_RECV, &(struct pl_port_options){ 0 }, &diag);

	if (r < 0) {
		pl_complain_diag(&diag);
		return false;
	}
	for (;;) {
		r = pl_port_recv(port, &batch, -1, &diag);
		if (r < 0)
			break;
		if (r == 0)
			continue;
		for (uint32_t i = 0; i < batch.n; i++)
			one(arg, &batch.pkts[i]);
		pl_port_release(port, &batch);
	}
	if (r != -ENODATA)
		pl_complain_diag(&diag);
	(void)pl_port_close(port);
	return r == -ENODATA;
}

bool pl_mark_capture_read(struct pl_mark_capture *c)
{
	const struct pl_mark_read_options *o = c->options;
	const struct pl_mark_meter_config config = {
		.point = { .point = c->point,
			.method = o->method,
			.period_ns = o->period_ns,
			.flags = c->point == 1 ? PL_MARK_IS_MARKER : 0,
			.tai_offset = (uint16_t)o->tai_offset,
			.clock_error_ns = UINT64_MAX },
		.guard_ns = o->guard_ns,
		.flows_max = o->flows_max,
		.record = keep,
		.arg = c,
	};
	struct pl_diag diag = { 0 };
	int r;
	bool good;

	c->rules = o->rules;
	if (o->samples != 0) {
		c->hashes = pl_mark_hashes_new(o->samples);
		if (c->hashes == NULL)
			return pl_fail(false, "out of memory");
	}
	if (o->unmarked)
		return pl_mark_capture_each(c->path, take, c);
	r = pl_mark_meter_new(&c->meter, &config, &diag);
	if (r < 0)
		return pl_fail(false, "%s", r == -ENOMEM ? "out of memory" : diag.text);
	good = pl_mark_capture_each(c->path, take, c);
	pl_mark_meter_finish(c->meter);
	c->stats = *pl_mark_meter_stats(c->meter);
	c->absent_flags = c->stats.without_room > 0 ? PL_MARK_NO_ROOM : 0;
	if (c->no_memory)
		pl_complain("%s: out of memory for its blocks", c->path);
	return good && !c->no_memory;
}

void pl_mark_capture_done(struct pl_mark_capture *c)
{
	pl_mark_meter_free(c->meter);
	pl_mark_hashes_free(c->hashes);
	c->hashes = NULL;
	free(c->records);
	c->meter = NULL;
	c->records = NULL;
}

/* Records are in the order of their blocks. */
static const struct pl_mark128 *record_of(const struct pl_mark_capture *c, uint64_t block)
{
	size_t from = 0, to = c->n_records;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (c->records[middle].block < block)
			from = middle + 1;
		else
			to = middle;
	}
	return from < c->n_records && c->records[from].block == block ? &c->records[from] : NULL;
}

bool pl_mark_capture_covers(const struct pl_mark_capture *c, uint64_t block, bool marks)
{
	const uint64_t period = c->options->period_ns;
	const uint64_t guard = marks ? 0 : c->options->guard_ns;

	if (c->of_file)
		return record_of(c, block) != NULL;
	/* Without a marked packet it is unknown whether marked ones could be captured there. */
	if (c->metered == 0 || c->cut > 0)
		return false;
	return c->first_ns != 0 && c->first_ns + guard <= block * period &&
	       c->last_ns >= (block + 1) * period + guard;
}

bool pl_mark_captures_cover(
	const struct pl_mark_capture *captures, const uint32_t *points, uint32_t n, uint64_t block)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!pl_mark_capture_covers(&captures[points[i] - 1], block, points[i] == 1))
			return false;
	}
	return true;
}

bool pl_mark_capture_is_long(const struct pl_mark_capture *c)
{
	return c->longest_tcp > LONG_BYTES || c->longest_udp > LONG_BYTES;
}

/* Returns the longest packet that may belong to the flow; flows by FlowMonID have no protocol. */
static uint32_t longest_of(const struct pl_mark_capture *c, const struct pl_mark128 *of)
{
	if (of->proto == PL_IP_TCP)
		return c->longest_tcp;
	if (of->proto == PL_IP_UDP)
		return c->longest_udp;
	return c->longest_tcp > c->longest_udp ? c->longest_tcp : c->longest_udp;
}

/* Returns true when `few` has the octets of `many` in fewer packets: those it has not would be less than
 * half as long as the others. */
static bool has_as_much(const struct pl_mark128 *few, const struct pl_mark128 *many)
{
	const uint64_t packets = many->packets - few->packets,
		       bytes = many->bytes > few->bytes ? many->bytes - few->bytes : 0;

	return bytes < packets * (many->bytes / many->packets) / 2;
}

bool pl_mark_capture_joins(const struct pl_mark_capture *captures, const struct pl_mark128 *of,
	const struct pl_mark128 *records, size_t n)
{
	const uint64_t longest = longest_of(&captures[of->point - 1], of);

	if (longest > LONG_BYTES)
		return true;
	/* Half as long again as any at the other point. */
	for (size_t i = 0; i < n; i++) {
		const struct pl_mark128 *other = &records[i];

		if (longest * 2 > (uint64_t)longest_of(&captures[other->point - 1], other) * 3 &&
			of->packets < other->packets && has_as_much(of, other))
			return true;
	}
	return false;
}

void pl_mark_names_put(struct pl_buf *out, const struct pl_mark_capture *captures,
	const uint32_t *points, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		pl_buf_printf(out, "%s%s", i > 0 ? "+" : "", captures[points[i] - 1].name);
}

bool pl_mark_capture_touches(const struct pl_mark_capture *c, uint64_t block)
{
	const uint64_t period = c->options->period_ns;

	if (c->of_file)
		return record_of(c, block) != NULL;
	return c->first_ns != 0 && c->first_ns < (block + 1) * period + period / 2 &&
	       c->last_ns + period / 2 >= block * period;
}

void pl_mark_capture_share(const struct pl_mark_capture *c, struct pl_mark128 *r)
{
	const struct pl_mark128 *other = c->of_file ? record_of(c, r->block) : NULL;

	if (other == NULL)
		return;
	r->tai_offset = other->tai_offset;
	r->clock_error_ns = other->clock_error_ns;
	r->mark_flags |=
		other->mark_flags & (PL_MARK_IS_PARTIAL | PL_MARK_NO_ROOM | PL_MARK_IS_STEPPED |
					    PL_MARK_UNTIMED | PL_MARK_LATE_CHANGE);
}
