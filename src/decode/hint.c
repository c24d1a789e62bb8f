/* SPDX-License-Identifier: BSD-2-Clause */
/* Hints are found by trying: datagrams to ports that were not expected go through a decoder kept
 * for that, which takes them for reports. Each table is small and counts entries without room, so
 * that work and memory are bounded for any capture. */
#include "decode/hint.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "wire/layers.h"
#include "wire/linktype.h"

#define PORTS_MAX     256
#define PORTS_TOLD    3
#define LINKS_MAX     8
#define SCRATCH_PATHS 64
/* The number for experiments (RFC 3692) that draft-kumar-ippm-ifa takes. */
#define IP_IFA        253

struct port {
	uint16_t port;
	uint64_t reports, others;
};

struct pl_hint {
	struct pl_decode *probe;
	struct pl_record_batch scratch;
	struct pl_batch datagrams;
	bool report[PL_BATCH_MAX]; /* for each datagram: it is a report */
	struct port ports[PORTS_MAX];
	unsigned int n_ports;
	struct {
		uint16_t number;
		uint64_t packets;
	} links[LINKS_MAX];
	unsigned int n_links;
	uint64_t other_links; /* packets of further link types */
	uint64_t ifa;
};

/* Bytes of nearly any kind may be a report's header; one that names a flow or a hop is a report. */
static void take_records(struct pl_record_batch *batch, void *arg)
{
	struct pl_hint *hint = arg;

	for (uint32_t i = 0; i < batch->n_paths; i++)
		hint->report[batch->pkt[i]] |= (batch->paths[i].present & PL_PATH_HAS_src) != 0 ||
					       batch->paths[i].hop_count > 0;
	pl_record_batch_clear(batch);
}

int pl_hint_new(struct pl_hint **ret, const struct pl_decode_options *decode)
{
	struct pl_decode_options options = *decode;
	struct pl_hint *hint = calloc(1, sizeof(*hint));

	if (hint == NULL)
		return -ENOMEM;
	/* The tables of the probe are not used. */
	options.max_exporters = 1;
	options.max_paths = 1;
	options.any_port = true;
	if (pl_record_batch_init(&hint->scratch, SCRATCH_PATHS, PL_BATCH_HOPS_MIN) < 0 ||
		pl_decode_new(&hint->probe, &options) < 0) {
		pl_hint_free(hint);
		return -ENOMEM;
	}
	hint->scratch.flush = take_records;
	hint->scratch.flush_arg = hint;
	*ret = hint;
	return 0;
}

void pl_hint_free(struct pl_hint *hint)
{
	if (hint == NULL)
		return;
	pl_decode_free(hint->probe);
	pl_record_batch_done(&hint->scratch);
	free(hint);
}

static void note_link(struct pl_hint *hint, uint16_t number)
{
	unsigned int i = 0;

	while (i < hint->n_links && hint->links[i].number != number)
		i++;
	if (i == LINKS_MAX) {
		hint->other_links++;
		return;
	}
	hint->n_links += i == hint->n_links;
	hint->links[i].number = number;
	hint->links[i].packets++;
}

/* Ports beyond the table are not reported: when packets go to that many ports, none of them is the
 * port of reports. */
static void note_port(struct pl_hint *hint, uint16_t port, bool report)
{
	unsigned int i = 0;

	while (i < hint->n_ports && hint->ports[i].port != port)
		i++;
	if (i == PORTS_MAX)
		return;
	hint->n_ports += i == hint->n_ports;
	hint->ports[i].port = port;
	hint->ports[i].reports += report;
	hint->ports[i].others += !report;
}

/* Adds the payload of a datagram to those that are tried, as a socket would give it. */
static void add_datagram(
	struct pl_hint *hint, const struct pl_packet *packet, const struct pl_layers *l)
{
	const uint32_t left = (uint32_t)pl_cursor_left(&l->payload);

	hint->datagrams.pkts[hint->datagrams.n++] = (struct pl_packet){
		.data = l->payload.pos,
		.len = left,
		.wire_len = left + l->missing,
		.ts_ns = packet->ts_ns,
		.link = PL_LINK_UDP,
		.sport = l->flow.sport,
		.dport = l->flow.dport,
		.src = l->flow.src,
		.dst = l->flow.dst,
	};
}

static void look_at(struct pl_hint *hint, const struct pl_packet *packet, bool ports)
{
	struct pl_layers l;

	if (pl_layers_walk(&l, pl_cursor(packet->data, packet->len), (enum pl_link)packet->link,
		    true) != PL_V_OK ||
		(l.flags & (PL_LAYERS_FRAGMENT | PL_LAYERS_NO_L4)) != 0)
		return;
	hint->ifa += l.flow.proto == IP_IFA;
	if (ports && l.flow.proto == PL_IP_UDP)
		add_datagram(hint, packet, &l);
}

void pl_hint_batch(struct pl_hint *hint, const struct pl_batch *batch,
	const struct pl_outcome *outcomes, bool ports)
{
	const struct pl_outcome *tried = pl_decode_outcomes(hint->probe);

	hint->datagrams.n = 0;
	memset(hint->report, 0, sizeof(hint->report));
	for (uint32_t i = 0; i < batch->n; i++) {
		if (outcomes[i].verdict == PL_V_LINK_UNKNOWN)
			note_link(hint, batch->pkts[i].sport);
		else if (outcomes[i].verdict == PL_V_NOT_TELEMETRY)
			look_at(hint, &batch->pkts[i], ports);
	}
	if (hint->datagrams.n == 0)
		return;
	pl_decode_batch(hint->probe, &hint->datagrams, &hint->scratch);
	take_records(&hint->scratch, hint);
	for (uint32_t i = 0; i < hint->datagrams.n; i++)
		note_port(hint, hint->datagrams.pkts[i].dport,
			tried[i].verdict == PL_V_OK && hint->report[i]);
}

/* Port with most reports behind `before`, the last one reported; NULL: none. */
static const struct port *next_port(const struct pl_hint *hint, const struct port *before)
{
	const struct port *best = NULL;

	for (unsigned int i = 0; i < hint->n_ports; i++) {
		const struct port *p = &hint->ports[i];

		if (p->reports <= p->others ||
			(before != NULL && (p->reports > before->reports ||
						   (p->reports == before->reports && p <= before))))
			continue;
		if (best == NULL || p->reports > best->reports)
			best = p;
	}
	return best;
}

static const char *plural(uint64_t n)
{
	return n == 1 ? "" : "s";
}

void pl_hint_ports(const struct pl_hint *hint, struct pl_buf *out)
{
	const struct port *p = NULL;

	for (unsigned int i = 0; i < PORTS_TOLD && (p = next_port(hint, p)) != NULL; i++)
		pl_buf_printf(out, "%s--report-port %u would read %" PRIu64 " packet%s",
			i > 0 ? ", " : "", p->port, p->reports, plural(p->reports));
}

void pl_hint_unread(const struct pl_hint *hint, struct pl_buf *out)
{
	const char *sep = "";

	for (unsigned int i = 0; i < hint->n_links; i++) {
		const char *name = pl_linktype_name(hint->links[i].number);
		const uint64_t n = hint->links[i].packets;

		pl_buf_printf(out, "%slink type %u", sep, hint->links[i].number);
		if (name != NULL)
			pl_buf_printf(out, " (%s)", name);
		pl_buf_printf(out, " is not read: %" PRIu64 " packet%s", n, plural(n));
		sep = "; ";
	}
	if (hint->other_links > 0) {
		pl_buf_printf(out, "%sfurther link types are not read: %" PRIu64 " packet%s", sep,
			hint->other_links, plural(hint->other_links));
		sep = "; ";
	}
	if (hint->ifa > 0)
		pl_buf_printf(out,
			"%sIP protocol 253, as Broadcom's IFA has it, is not read: %" PRIu64
			" packet%s",
			sep, hint->ifa, plural(hint->ifa));
}
