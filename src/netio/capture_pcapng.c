/* SPDX-License-Identifier: BSD-2-Clause */
/* The blocks of pcapng captures: sections, interfaces with their clocks, packets. */
#include "netio/capture_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

/* Returns 0 for a time that 64 bits of nanoseconds since 1970 cannot hold. */
static uint64_t ticks_to_ns(const struct pl_capture_clock *clock, uint64_t ticks)
{
	unsigned __int128 ns = 0;
	__int128 sum;

	switch (clock->kind) {
	case PL_TICKS_TIMES:
		ns = (unsigned __int128)ticks * clock->factor;
		break;
	case PL_TICKS_DIVIDED:
		ns = ticks / clock->factor;
		break;
	case PL_TICKS_BINARY:
		ns = ((unsigned __int128)ticks * 1000000000u) >> clock->shift;
		break;
	case PL_TICKS_TOO_FINE: /* 2^64 ticks are less than a nanosecond */
		break;
	}
	if (ns > UINT64_MAX)
		return 0;
	sum = (__int128)ns + (__int128)clock->offset_s * 1000000000;
	return sum < 0 || sum > (__int128)UINT64_MAX ? 0 : (uint64_t)sum;
}

static struct pl_capture_clock clock_of_resolution(uint8_t resolution)
{
	struct pl_capture_clock clock = { .kind = PL_TICKS_TIMES, .factor = 1 };
	unsigned int exponent = resolution & 0x7f;

	if ((resolution & 0x80) != 0) {
		clock.kind = exponent < 94 ? PL_TICKS_BINARY : PL_TICKS_TOO_FINE;
		clock.shift = exponent;
		return clock;
	}
	if (exponent > 9)
		clock.kind = exponent < 29 ? PL_TICKS_DIVIDED : PL_TICKS_TOO_FINE;
	for (unsigned int i = exponent; i < 9; i++)
		clock.factor *= 10;
	for (unsigned int i = 9; i < exponent && i < 28; i++)
		clock.factor *= 10;
	return clock;
}

static int add_interface(struct pl_capture *capture, struct pl_cursor *body)
{
	struct pl_capture_interface interface = { .clock = clock_of_resolution(6) };
	bool little = capture->little;
	int64_t offset_s = 0;

	interface.linktype = get16(body, little);
	pl_cursor_skip(body, 2);
	interface.snaplen = get32(body, little);
	while (pl_cursor_left(body) > 0) {
		uint16_t code = get16(body, little), len = get16(body, little);
		struct pl_cursor value;

		if (code == OPTION_END)
			break;
		value = pl_cursor_split(body, len);
		pl_cursor_skip(body, -(unsigned int)len & 3);
		if (code == OPTION_TSRESOL)
			interface.clock = clock_of_resolution(pl_get_u8(&value));
		if (code == OPTION_TSOFFSET)
			offset_s = (int64_t)get64(&value, little);
		if (value.short_read)
			body->short_read = true;
	}
	if (body->short_read)
		return pl_capture_damage(
			capture, 4, "interface description shorter than its fixed fields");
	interface.clock.offset_s = offset_s;
	if (capture->ninterfaces == PL_CAPTURE_INTERFACES_MAX)
		return pl_capture_damage(
			capture, 0, "more than %d interfaces", PL_CAPTURE_INTERFACES_MAX);
	if (capture->ninterfaces == capture->interfaces_room) {
		unsigned int room =
			capture->interfaces_room == 0 ? 8 : 2 * capture->interfaces_room;
		void *grown = realloc(capture->interfaces, room * sizeof(interface));

		if (grown == NULL)
			return -ENOMEM;
		capture->interfaces = grown;
		capture->interfaces_room = room;
	}
	capture->interfaces[capture->ninterfaces++] = interface;
	return STEP_ON;
}

/* A new section forgets the interfaces of the one before, and may have the other byte order. */
static int start_section(struct pl_capture *capture, struct pl_cursor *body)
{
	bool little = capture->little;
	uint16_t major, minor;

	pl_cursor_skip(body, 4);
	major = get16(body, little);
	minor = get16(body, little);
	pl_cursor_skip(body, 8); /* the section's length, only a hint */
	if (body->short_read)
		return pl_capture_damage(capture, 4, "section header too short");
	if (major != 1)
		return pl_capture_damage(
			capture, 12, "pcapng version %u.%u is not supported", major, minor);
	capture->ninterfaces = 0;
	return STEP_ON;
}

static int packet_block(
	struct pl_capture *capture, uint32_t type, struct pl_cursor *body, struct pl_packet *p)
{
	const struct pl_capture_interface *interface;
	uint32_t number = 0, len, wire_len;
	bool little = capture->little;
	uint64_t ticks = 0;
	const uint8_t *data;

	if (type == BLOCK_ENHANCED)
		number = get32(body, little);
	if (type == BLOCK_PACKET) {
		number = get16(body, little);
		pl_cursor_skip(body, 2); /* number of drops since the packet before */
	}
	if (number >= capture->ninterfaces)
		return pl_capture_damage(capture, 8,
			"packet of interface %" PRIu32 ", but %u are described", number,
			capture->ninterfaces);
	interface = &capture->interfaces[number];
	if (type == BLOCK_SIMPLE) {
		wire_len = get32(body, little);
		len = interface->snaplen != 0 && interface->snaplen < wire_len ? interface->snaplen
									       : wire_len;
	} else {
		ticks = (uint64_t)get32(body, little) << 32;
		ticks |= get32(body, little);
		len = get32(body, little);
		wire_len = get32(body, little);
	}
	if (body->short_read)
		return pl_capture_damage(capture, 4, "packet block too short for its own fields");
	if (len > PL_CAPTURE_PACKET_MAX)
		return pl_capture_damage(capture, 8, "packet of %" PRIu32 " bytes, more than %u",
			len, PL_CAPTURE_PACKET_MAX);
	data = pl_cursor_take(body, len);
	pl_cursor_skip(body, -len & 3);
	if (body->short_read)
		return pl_capture_damage(
			capture, 8, "packet of %" PRIu32 " bytes is longer than its block", len);
	set_packet(p, interface->linktype, data, len, whole_length(capture, len, wire_len),
		type == BLOCK_SIMPLE ? 0 : ticks_to_ns(&interface->clock, ticks));
	finish_packet(p, interface->linktype);
	return STEP_PACKET;
}

/* Skips a block of an unused type, in as many pieces as it arrives. */
static int skip_block(struct pl_capture *capture)
{
	struct pl_cursor cur = unread(capture);
	size_t n =
		pl_cursor_left(&cur) < capture->skip ? pl_cursor_left(&cur) : (size_t)capture->skip;
	uint32_t trailer;

	pl_cursor_skip(&cur, n);
	capture->skip -= n;
	capture->pos += n;
	if (capture->skip > 0)
		return STEP_MORE;
	trailer = get32(&cur, capture->little);
	if (cur.short_read)
		return STEP_MORE;
	if (trailer != capture->trailer)
		return pl_capture_damage(capture, 0,
			"block of %" PRIu32 " bytes ends with the length %" PRIu32,
			capture->trailer, trailer);
	capture->trailer = 0;
	capture->pos += 4;
	return STEP_ON;
}

/* Parses one block. A section header gives the byte order first, because its own length is in that
 * order. */
static int parse_block(struct pl_capture *capture, struct pl_packet *p)
{
	struct pl_cursor cur = unread(capture), body;
	uint32_t type, total, trailer;
	int r;

	if (capture->trailer != 0)
		return skip_block(capture);
	type = get32(&cur, capture->little);
	total = get32(&cur, capture->little);
	if (type == BLOCK_SECTION) {
		const uint8_t *order = pl_cursor_peek(&cur, 4);

		if (order == NULL)
			return STEP_MORE;
		if (pl_be32(order) != 0x1a2b3c4d && pl_be32(order) != 0x4d3c2b1a)
			return pl_capture_damage(
				capture, 8, "section header without byte-order magic");
		if ((pl_be32(order) == 0x4d3c2b1a) != capture->little)
			total = __builtin_bswap32(total);
		capture->little = pl_be32(order) == 0x4d3c2b1a;
	}
	if (cur.short_read)
		return STEP_MORE;
	if (total < 12 || total % 4 != 0)
		return pl_capture_damage(capture, 4, "block length %" PRIu32, total);
	if (type != BLOCK_SECTION && type != BLOCK_INTERFACE && type != BLOCK_PACKET &&
		type != BLOCK_SIMPLE && type != BLOCK_ENHANCED) {
		capture->skip = total - 12;
		capture->trailer = total;
		capture->pos += 8;
		return STEP_ON;
	}
	if (total > PL_CAPTURE_BLOCK_MAX)
		return pl_capture_damage(capture, 4, "block of %" PRIu32 " bytes, more than %u",
			total, PL_CAPTURE_BLOCK_MAX);
	body = pl_cursor_split(&cur, total - 12);
	trailer = get32(&cur, capture->little);
	if (cur.short_read)
		return STEP_MORE;
	if (trailer != total)
		return pl_capture_damage(capture, total - 4,
			"block of %" PRIu32 " bytes ends with the length %" PRIu32, total, trailer);
	if (type == BLOCK_SECTION)
		r = start_section(capture, &body);
	else if (type == BLOCK_INTERFACE)
		r = add_interface(capture, &body);
	else
		r = packet_block(capture, type, &body, p);
	if (r >= 0)
		capture->pos += total;
	return r;
}

int pl_capture_pcapng(struct pl_capture *capture, struct pl_batch *batch)
{
	int r = STEP_ON;

	while (batch->n < PL_BATCH_MAX && r >= 0) {
		r = parse_block(capture, &batch->pkts[batch->n]);
		if (r == STEP_PACKET)
			batch->n++;
	}
	return r;
}
