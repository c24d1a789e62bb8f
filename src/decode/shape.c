/* SPDX-License-Identifier: BSD-2-Clause */
/* Learns the shape of a common report's headers: the bits by which fast.c decides, in its order,
 * and the places in the record of the other bytes. */
#include <errno.h>
#include <stdlib.h>

#include "decode/report.h"
#include "decode/shape.h"

/* Common reports of one length that must differ from the shape before it is given up for theirs. */
#define MISSES_MAX 16

void shapes_forget(struct header_shape *shapes)
{
	memset(shapes, 0, SHAPES * sizeof(*shapes));
	for (unsigned int i = 0; i < SHAPES; i++)
		shapes[i].len = SHAPE_NONE;
}

int shapes_new(struct header_shape **ret)
{
	*ret = aligned_alloc(64, SHAPES * sizeof(**ret));
	if (*ret == NULL)
		return -ENOMEM;
	shapes_forget(*ret);
	return 0;
}

bool shape_take_plain(const struct header_shape *s, const uint8_t *data, struct pl_path *path)
{
	const uint8_t *inner = data + s->at.inner, *l4 = data + s->at.l4;
	shape_block differ = { 0 };
	struct number number;

	for (unsigned int i = 0; i < SHAPE_BLOCKS; i++)
		differ |= shape_differs(s, i, data + 16 * i);
	if (s->is_long)
		differ |= shape_differs(s, SHAPE_BLOCKS, data + SHAPE_BYTES);
	if (__builtin_expect((differ[0] | differ[1]) != 0, 0))
		return false;
	number = number_of(data + s->at.report, s->version);
	*path = s->path;
	if (s->link == PL_LINK_ETHERNET) {
		path->exporter = pl_addr_v4(data + SHAPE_EXPORTER);
		path->exporter_port = pl_be16(data + SHAPE_EXPORTER_PORT);
	}
	path->node = number.node;
	path->seq = number.seq;
	path->src = pl_addr_v4(inner + 26);
	path->dst = pl_addr_v4(inner + 30);
	path->sport = pl_be16(l4);
	path->dport = pl_be16(l4 + 2);
	return true;
}

shape_take_fn *shape_take_best(void)
{
#if defined(__x86_64__)
	if (hops_decode_best() == hops_decode_avx512)
		return shape_take_avx512;
#endif
	return shape_take_plain;
}

/* The bits `mask` of the byte at `at` decide. */
static void keep(struct header_shape *s, unsigned int at, uint8_t mask)
{
	((uint8_t *)s->mask)[at] |= mask;
}

static void keep_all(struct header_shape *s, unsigned int at, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++)
		keep(s, at + i, 0xff);
}

/* Ethernet type, version and header length, total length, fragment, protocol. */
static void keep_ipv4(struct header_shape *s, unsigned int eth)
{
	keep_all(s, eth + 12, 3);
	keep_all(s, eth + 16, 2);
	keep(s, eth + 20, 0x3f);
	keep(s, eth + 21, 0xff);
	keep(s, eth + 23, 0xff);
}

/* Keeps the report's type, the type of the packet inside, "no metadata", and F; in v2.0 also its
 * length. */
static void keep_report(struct header_shape *s, unsigned int at, uint8_t version)
{
	if (version == PL_REPORT_V20) {
		keep(s, at, 0xf0);
		keep_all(s, at + 8, 2);
		keep(s, at + 11, 0x30);
	} else {
		keep_all(s, at, 2);
		keep(s, at + 2, 0x80);
		keep(s, at + 3, 0x40);
	}
}

/* Type, length, version and flags, words of a hop, bitmap; in v2.x the domain, too. */
static void keep_int(struct header_shape *s, unsigned int shim, enum pl_int_version version)
{
	keep(s, shim, 0xff);
	keep(s, shim + 6, 0x1f);
	keep_all(s, shim + 8, 2);
	if (version == PL_INT_V20) {
		keep(s, shim + 1, 0xff);
		keep(s, shim + 4, 0xfe);
		keep_all(s, shim + 10, 2);
	} else {
		keep(s, shim + 2, 0xff);
		keep(s, shim + 4, 0xf3);
		keep(s, shim + 5, 0x80);
	}
}

/* `bytes` bytes of the record from offset `to` are copied from the headers at `from`, in reverse
 * order when `swap`. */
static void put(
	struct header_shape *s, unsigned int to, unsigned int from, unsigned int bytes, bool swap)
{
	for (unsigned int i = 0; i < bytes; i++) {
		unsigned int at = swap ? from + bytes - 1 - i : from + i;

		s->permute[to + i] = (uint8_t)(at < 64 ? at : 64 + at - (SHAPE_BYTES - 64));
		s->bits[to + i] = 0xff;
		((uint8_t *)&s->path)[to + i] = 0;
	}
}

static void put_fields(struct header_shape *s)
{
	const unsigned int seq = offsetof(struct pl_path, seq);

	if (s->link == PL_LINK_ETHERNET) {
		put(s, offsetof(struct pl_path, exporter) + 12, SHAPE_EXPORTER, 4, false);
		put(s, offsetof(struct pl_path, exporter_port), SHAPE_EXPORTER_PORT, 2, true);
	}
	put(s, offsetof(struct pl_path, node), s->at.report + 4u, 4, true);
	if (s->version == PL_REPORT_V20) {
		put(s, seq, s->at.report + 1u, 3, true);
		s->bits[seq + 2] = 0x3f;
	} else {
		put(s, seq, s->at.report + 8u, 4, true);
	}
	put(s, offsetof(struct pl_path, src) + 12, s->at.inner + 26u, 4, false);
	put(s, offsetof(struct pl_path, dst) + 12, s->at.inner + 30u, 4, false);
	put(s, offsetof(struct pl_path, sport), s->at.l4, 2, true);
	put(s, offsetof(struct pl_path, dport), s->at.l4 + 2u, 2, true);
}

void shape_learn(struct job *j, const struct pl_path *path, const struct usual_places *at,
	const struct hop_plan *plan, uint8_t hops)
{
	const struct pl_packet *pkt = j->pkt;
	struct pl_decode *d = j->d;
	struct header_shape *s = shape_place(d, pkt->len);
	const unsigned int end = at->stack <= SHAPE_BYTES ? SHAPE_BYTES : SHAPE_LONG;

	if (s->len != SHAPE_NONE && ++s->misses < MISSES_MAX)
		return;
	/* The packet must have all bytes that are compared, and they must cover all headers. */
	if (pkt->len < end || at->stack > end)
		return;
	memset(s, 0, sizeof(*s));
	s->len = pkt->len;
	s->link = pkt->link;
	s->is_long = end == SHAPE_LONG;
	s->at = *at;
	s->version = path->report_version;
	s->hops = hops;
	s->profile = j->profile;
	s->plan = plan;
	s->plan_slot = (uint32_t)(plan - d->plans);
	s->plan_key = d->plan_keys[s->plan_slot];
	s->path = *path;
	put_fields(s);
	if (pkt->link == PL_LINK_ETHERNET) {
		keep_ipv4(s, 0);
		keep(s, 15, 0xfc);
		keep_all(s, 36, 4);
	}
	keep_report(s, at->report, path->report_version);
	keep_ipv4(s, at->inner);
	if (path->proto == PL_IP_TCP)
		keep(s, at->l4 + 12u, 0xf0);
	else
		keep_all(s, at->l4 + 4u, 2);
	keep_int(s, at->shim, plan->layout.version);
	for (unsigned int i = 0; i < end / 16; i++)
		s->value[i] = shape_bytes(pkt->data + 16 * i) & s->mask[i];
}
