/* SPDX-License-Identifier: BSD-2-Clause */
/* Pushes a node's block onto an INT stack. */
#include "dataplane/telemetry/int_transit.h"

#include <string.h>

#include "wire/layers.h"

#define IP_BYTES_MAX       65535u
#define GENEVE_BODY_MAX    31 /* most words in an option */
#define GENEVE_OPTIONS_MAX 63 /* most words in all options */

void pl_dp_int_transit_init(struct pl_dp_int_transit *t, const struct pl_dp_int_domain *domain)
{
	memset(t, 0, sizeof(*t));
	t->domain = pl_dp_int_domain(domain);
}

uint32_t pl_dp_int_room(const struct pl_dp_node *node, const struct pl_dp_edit *e)
{
	const struct pl_dp_port_ids *port = pl_dp_node_port(node, e->pkt->out_port);
	uint32_t max = port != NULL && port->mtu != 0 ? port->mtu : IP_BYTES_MAX,
		 bytes = e->ip_bytes + (uint32_t)e->grown;

	return bytes < max ? max - bytes : 0;
}

static void set_flag(struct pl_dp_edit *e, uint32_t at, uint8_t bit)
{
	pl_dp_edit_put8(e, at, e->pkt->data[at] | bit);
}

static void set_hop_limit(const struct pl_dp_int_found *f, struct pl_dp_edit *e)
{
	set_flag(e, f->md, f->in.version == PL_INT_V20 ? 0x04 : 0x01);
}

static void set_mtu_limit(const struct pl_dp_int_found *f, struct pl_dp_edit *e)
{
	if (f->in.version == PL_INT_V20)
		set_flag(e, f->md, 0x02);
	else if (f->in.version == PL_INT_V10)
		set_flag(e, f->md + 1, 0x80);
}

/* Returns true when the length fields have room for `words` more. */
static bool lengths_take(
	const struct pl_dp_int_found *f, const struct pl_dp_edit *e, unsigned int words)
{
	const uint8_t *shim = e->pkt->data + f->shim;

	if (f->in.carrier == PL_INT_OVER_GENEVE)
		return (shim[3] & 0x1fu) + words <= GENEVE_BODY_MAX &&
		       (e->pkt->data[f->tunnel] & 0x3fu) + words <= GENEVE_OPTIONS_MAX;
	return shim[f->in.version == PL_INT_V20 ? 1 : 2] + words <= UINT8_MAX;
}

static void lengthen(const struct pl_dp_int_found *f, struct pl_dp_edit *e, unsigned int words)
{
	const uint8_t *data = e->pkt->data;
	uint32_t at = f->shim + (f->in.carrier == PL_INT_OVER_GENEVE  ? 3
					: f->in.version == PL_INT_V20 ? 1
								      : 2);

	pl_dp_edit_put8(e, at, (uint8_t)(data[at] + words));
	if (f->in.carrier == PL_INT_OVER_GENEVE)
		pl_dp_edit_put8(e, f->tunnel, (uint8_t)(data[f->tunnel] + words));
}

/* Updates the hop counter: INT 0.5 counts hops that pushed, later versions count the remaining
 * ones. */
static void count_hop(const struct pl_dp_int_found *f, struct pl_dp_edit *e)
{
	uint8_t old = e->pkt->data[f->md + 3];

	pl_dp_edit_put8(e, f->md + 3,
		f->in.version == PL_INT_V05 ? (uint8_t)(old + 1) : (uint8_t)(old - 1));
}

/* Builds the node's block; its checksum complement is set later. */
static bool make_block(const struct pl_dp_int_found *f, const struct pl_dp_node *node,
	const struct pl_dp_packet *pkt, const struct pl_int_layout *l, uint8_t *block)
{
	struct pl_build b = pl_build(block, 4 * (size_t)l->words);
	struct pl_int_hop hop;
	uint32_t ds = (uint32_t)(l->words - l->baseline_words), complement;

	pl_dp_node_hop(&hop, node, pkt);
	/* Bit 6 of INT 0.5 is queue congestion, which the node does not know. */
	if (f->in.version == PL_INT_V05)
		hop.have &= ~PL_INT_HAS(PL_INT_F_PORTS2);
	if (pl_int_put_block(&b, l, &hop) < 0 || b.len != 4 * (size_t)l->words)
		return false;
	complement = (l->bitmap & PL_INT_CHECKSUM) != 0 ? 4 : 0;
	memset(block + b.len - complement - 4 * ds, 0xff, 4 * ds);
	return true;
}

enum pl_dp_int_outcome pl_dp_int_push(
	struct pl_dp_int_found *f, const struct pl_dp_node *node, struct pl_dp_edit *e)
{
	/* The result is in the parser's cache: read it before another packet is parsed. */
	const struct pl_int_layout *l = f->in.layout;
	uint8_t block[4 * PL_INT_HOP_ML_MAX];
	unsigned int words = f->in.hop_words;
	bool complement;

	if (f->in.kind != PL_INT_MD || words == 0 || l == NULL)
		return PL_DP_INT_NO_BLOCK;
	if (f->in.hops_left == 0) {
		set_hop_limit(f, e);
		return PL_DP_INT_HOP_LIMIT;
	}
	if (!lengths_take(f, e, words)) {
		set_hop_limit(f, e);
		return PL_DP_INT_LENGTH;
	}
	if (pl_dp_int_room(node, e) < 4 * words) {
		set_mtu_limit(f, e);
		return PL_DP_INT_MTU;
	}
	if (!make_block(f, node, e->pkt, l, block))
		return PL_DP_INT_MALFORMED;
	complement = (l->bitmap & PL_INT_CHECKSUM) != 0 && f->in.version != PL_INT_V05;
	if (pl_dp_edit_insert(e, f->stack, block, 4 * words) < 0)
		return PL_DP_INT_ROOM;
	lengthen(f, e, words);
	count_hop(f, e);
	if (complement && e->summed)
		pl_dp_edit_put16(e, f->stack + 4 * words - 2, (uint16_t)~pl_dp_edit_gain(e, 0));
	f->end += 4 * words;
	f->keep += 4 * words;
	f->in.hops_left--;
	f->in.hops++;
	f->in.announced_hops++;
	f->in.stack = e->pkt->data + f->stack;
	return PL_DP_INT_DONE;
}

enum pl_dp_int_outcome pl_dp_int_transit(
	struct pl_dp_int_transit *t, const struct pl_dp_node *node, struct pl_dp_packet *pkt)
{
	struct pl_dp_int_found found;
	struct pl_dp_edit e;
	enum pl_dp_edit_fault fault = pl_dp_edit_open(&e, pkt);
	enum pl_dp_int_outcome r;

	if (fault != PL_DP_EDIT_OK)
		return pl_dp_int_of_fault(fault);
	r = pl_dp_int_find(&found, &t->domain, &e, &t->cache);
	if (r == PL_DP_INT_DONE) {
		r = pl_dp_int_push(&found, node, &e);
		pl_dp_edit_close(&e);
		pl_dp_edit_keep_places(&e);
	}
	return r;
}
