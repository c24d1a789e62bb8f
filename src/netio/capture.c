/* SPDX-License-Identifier: BSD-2-Clause */
#include "netio/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "wire/cursor.h"

#define BUF_BYTES PL_CAPTURE_BLOCK_MAX
#define READ_BYTES                                                                                 \
	(256u * 1024) /* at a time: what is read is still in the cache when it is decoded */

_Static_assert(BUF_BYTES >= PL_CAPTURE_PACKET_MAX + 24, "a packet with its header fits the buffer");

/* What parsing one thing came to, beside negative errno. */
enum { STEP_PACKET = 1, STEP_ON = 0, STEP_MORE = -EAGAIN };

enum {
	BLOCK_SECTION = 0x0a0d0d0a,
	BLOCK_INTERFACE = 1,
	BLOCK_PACKET = 2, /* obsolete */
	BLOCK_SIMPLE = 3,
	BLOCK_ENHANCED = 6,
};
enum { OPTION_END = 0, OPTION_TSRESOL = 9, OPTION_TSOFFSET = 14 };

/* at: counted from capture->pos. */
__attribute__((format(printf, 3, 4))) static int damage(
	struct pl_capture *capture, size_t at, const char *fmt, ...)
{
	va_list ap;
	int n;

	n = snprintf(capture->fault_text, sizeof(capture->fault_text),
		"byte %" PRIu64 "%s: ", capture->base + capture->pos + at,
		capture->source.gzip ? " of the decompressed data" : "");
	va_start(ap, fmt);
	vsnprintf(capture->fault_text + n, sizeof(capture->fault_text) - (size_t)n, fmt, ap);
	va_end(ap);
	capture->fault = -EBADMSG;
	return -EBADMSG;
}

static struct pl_cursor unread(const struct pl_capture *capture)
{
	return pl_cursor(capture->buf + capture->pos, capture->end - capture->pos);
}

static inline uint16_t get16(struct pl_cursor *cur, bool little)
{
	uint16_t v = pl_get_be16(cur);

	return little ? __builtin_bswap16(v) : v;
}

static inline uint32_t get32(struct pl_cursor *cur, bool little)
{
	uint32_t v = pl_get_be32(cur);

	return little ? __builtin_bswap32(v) : v;
}

static inline uint64_t get64(struct pl_cursor *cur, bool little)
{
	uint64_t v = pl_get_be64(cur);

	return little ? __builtin_bswap64(v) : v;
}

int pl_capture_init(struct pl_capture *capture, const struct pl_source *source)
{
	*capture = (struct pl_capture){ .source = *source };
	capture->buf = malloc(BUF_BYTES);
	return capture->buf == NULL ? -ENOMEM : 0;
}

void pl_capture_done(struct pl_capture *capture)
{
	pl_source_done(&capture->source);
	free(capture->buf);
	free(capture->interfaces);
	capture->buf = NULL;
	capture->interfaces = NULL;
}

/* Reads on behind what is unread, moving that to the front: nothing is lent now. 1 = there is more. */
static int refill(struct pl_capture *capture, int timeout_ms)
{
	size_t left = capture->end - capture->pos, want;
	ssize_t n;

	memmove(capture->buf, capture->buf + capture->pos, left);
	capture->base += capture->pos;
	capture->pos = 0;
	capture->end = left;
	want = BUF_BYTES - left < READ_BYTES ? BUF_BYTES - left : READ_BYTES;
	n = pl_source_read(&capture->source, capture->buf + left, want, timeout_ms);
	if (n > 0) {
		capture->end += (size_t)n;
		return 1;
	}
	if (n == 0) {
		capture->ended = true;
		return 1;
	}
	if (n == -EAGAIN || n == -EINTR)
		return 0;
	if (n == -EBADMSG)
		return damage(capture, left, "%s", capture->source.fault);
	capture->fault = (int)n;
	snprintf(capture->fault_text, sizeof(capture->fault_text), "byte %" PRIu64 ": %s",
		capture->base + left, strerror((int)-n));
	return (int)n;
}

static void set_packet(struct pl_packet *p, uint16_t linktype, const uint8_t *data, uint32_t len,
	uint32_t wire_len, uint64_t ts_ns)
{
	p->data = data;
	p->len = len;
	p->wire_len = wire_len;
	p->ts_ns = ts_ns;
	switch (linktype) {
	case 1:
		p->link = PL_LINK_ETHERNET;
		break;
	case 12: /* DLT_RAW of most systems, of OpenBSD the next; some writers put them into files */
	case 14:
	case 101:
	case 228:
	case 229:
		p->link = PL_LINK_RAW_IP;
		break;
	case 113:
		p->link = PL_LINK_SLL;
		break;
	case 276:
		p->link = PL_LINK_SLL2;
		break;
	default:
		p->link = PL_LINK_UNKNOWN;
		break;
	}
}

/*
 * LINKTYPE_NULL and LINKTYPE_LOOP put an address family before the IP header: one of the capturing machine,
 * in its byte order or in network order. With one of IP's it is raw IP behind four bytes.
 */
static void strip_family(struct pl_packet *p)
{
	struct pl_cursor cur = pl_cursor(p->data, p->len);
	uint32_t family = pl_get_be32(&cur);

	if (family >> 24 != 0)
		family = __builtin_bswap32(family);
	switch (family) {
	case 2:  /* AF_INET everywhere */
	case 10: /* AF_INET6: Linux, Solaris or Windows, the BSDs, FreeBSD, macOS */
	case 23:
	case 24:
	case 28:
	case 30:
		p->link = PL_LINK_RAW_IP;
		p->data = cur.pos;
		p->len -= 4;
		p->wire_len -= 4;
		break;
	default:
		break;
	}
}

static void finish_packet(struct pl_packet *p, uint16_t linktype)
{
	if (__builtin_expect(linktype == 0 || linktype == 108, 0))
		strip_family(p);
}

/* ---- pcap ---- */

/* The 24 bytes of the header are there. */
static int start_pcap(struct pl_capture *capture, uint32_t magic, bool little)
{
	struct pl_cursor cur = unread(capture);
	struct pl_capture_interface *interface;
	uint16_t major, minor;
	uint32_t snaplen;

	pl_cursor_skip(&cur, 4);
	major = get16(&cur, little);
	minor = get16(&cur, little);
	pl_cursor_skip(&cur, 8);
	snaplen = get32(&cur, little);
	interface = calloc(1, sizeof(*interface));
	if (interface == NULL)
		return -ENOMEM;
	capture->interfaces = interface;
	capture->ninterfaces = 1;
	/* The upper bits tell the length of a frame check sequence, which the decoder leaves alone. */
	interface->linktype = (uint16_t)get32(&cur, little);
	if (major != 2)
		return damage(capture, 4, "pcap version %u.%u is not read", major, minor);
	interface->snaplen = snaplen;
	interface->clock.factor = magic == 0xa1b23c4d ? 1 : 1000;
	capture->record_bytes = magic == 0xa1b2cd34 ? 24 : 16;
	capture->little = little;
	capture->format = PL_CAPTURE_PCAP;
	capture->pos += 24;
	return STEP_ON;
}

static inline __attribute__((always_inline)) int parse_pcap(
	struct pl_capture *capture, struct pl_batch *batch, bool little)
{
	const struct pl_capture_interface *interface = &capture->interfaces[0];
	const uint64_t ns_per_tick = interface->clock.factor;
	const size_t record_bytes = capture->record_bytes;
	const uint16_t linktype = interface->linktype;

	while (batch->n < PL_BATCH_MAX) {
		struct pl_packet *p = &batch->pkts[batch->n];
		struct pl_cursor cur = unread(capture);
		uint32_t seconds, ticks, len, wire_len;
		const uint8_t *data;

		if (pl_cursor_left(&cur) < record_bytes)
			return STEP_MORE;
		seconds = get32(&cur, little);
		ticks = get32(&cur, little);
		len = get32(&cur, little);
		wire_len = get32(&cur, little);
		pl_cursor_skip(&cur, record_bytes - 16);
		if (len > PL_CAPTURE_PACKET_MAX)
			return damage(capture, 8, "packet of %" PRIu32 " bytes, more than %u", len,
				PL_CAPTURE_PACKET_MAX);
		if (len > wire_len)
			return damage(capture, 8,
				"packet with %" PRIu32 " bytes captured of %" PRIu32, len,
				wire_len);
		data = pl_cursor_take(&cur, len);
		if (data == NULL)
			return STEP_MORE;
		set_packet(p, linktype, data, len, wire_len,
			seconds * UINT64_C(1000000000) + ticks * ns_per_tick);
		finish_packet(p, linktype);
		batch->n++;
		capture->pos += record_bytes + len;
	}
	return STEP_PACKET;
}

/* ---- pcapng ---- */

/* 0 when the time cannot be told: beyond what 64 bits of nanoseconds since 1970 hold. */
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
		return damage(capture, 4, "interface description too short for what it holds");
	interface.clock.offset_s = offset_s;
	if (capture->ninterfaces == PL_CAPTURE_INTERFACES_MAX)
		return damage(capture, 0, "more than %d interfaces", PL_CAPTURE_INTERFACES_MAX);
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
	pl_cursor_skip(body, 8); /* the section's length: a hint only */
	if (body->short_read)
		return damage(capture, 4, "section header too short");
	if (major != 1)
		return damage(capture, 12, "pcapng version %u.%u is not read", major, minor);
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
		pl_cursor_skip(body, 2); /* drops between this packet and the one before */
	}
	if (number >= capture->ninterfaces)
		return damage(capture, 8, "packet of interface %" PRIu32 ", but %u are described",
			number, capture->ninterfaces);
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
		return damage(capture, 4, "packet block too short for its own fields");
	if (len > PL_CAPTURE_PACKET_MAX)
		return damage(capture, 8, "packet of %" PRIu32 " bytes, more than %u", len,
			PL_CAPTURE_PACKET_MAX);
	if (len > wire_len)
		return damage(capture, 8, "packet with %" PRIu32 " bytes captured of %" PRIu32, len,
			wire_len);
	data = pl_cursor_take(body, len);
	pl_cursor_skip(body, -len & 3);
	if (body->short_read)
		return damage(
			capture, 8, "packet of %" PRIu32 " bytes is longer than its block", len);
	set_packet(p, interface->linktype, data, len, wire_len,
		type == BLOCK_SIMPLE ? 0 : ticks_to_ns(&interface->clock, ticks));
	finish_packet(p, interface->linktype);
	return STEP_PACKET;
}

/* Consumes a block that nobody looks into, in as many pieces as it comes. */
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
		return damage(capture, 0,
			"block of %" PRIu32 " bytes ends with the length %" PRIu32,
			capture->trailer, trailer);
	capture->trailer = 0;
	capture->pos += 4;
	return STEP_ON;
}

/* One block. For a section header the byte order comes first: its length is in the new one. */
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
			return damage(capture, 8, "section header without byte-order magic");
		if ((pl_be32(order) == 0x4d3c2b1a) != capture->little)
			total = __builtin_bswap32(total);
		capture->little = pl_be32(order) == 0x4d3c2b1a;
	}
	if (cur.short_read)
		return STEP_MORE;
	if (total < 12 || total % 4 != 0)
		return damage(capture, 4, "block length %" PRIu32, total);
	if (type != BLOCK_SECTION && type != BLOCK_INTERFACE && type != BLOCK_PACKET &&
		type != BLOCK_SIMPLE && type != BLOCK_ENHANCED) {
		capture->skip = total - 12;
		capture->trailer = total;
		capture->pos += 8;
		return STEP_ON;
	}
	if (total > PL_CAPTURE_BLOCK_MAX)
		return damage(capture, 4, "block of %" PRIu32 " bytes, more than %u", total,
			PL_CAPTURE_BLOCK_MAX);
	body = pl_cursor_split(&cur, total - 12);
	trailer = get32(&cur, capture->little);
	if (cur.short_read)
		return STEP_MORE;
	if (trailer != total)
		return damage(capture, total - 4,
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

static int parse_pcapng(struct pl_capture *capture, struct pl_batch *batch)
{
	int r = STEP_ON;

	while (batch->n < PL_BATCH_MAX && r >= 0) {
		r = parse_block(capture, &batch->pkts[batch->n]);
		if (r == STEP_PACKET)
			batch->n++;
	}
	return r;
}

/* ---- both ---- */

static int not_a_capture(struct pl_capture *capture)
{
	static const struct {
		const char *name, *command;
		uint8_t len, magic[6];
	} packers[] = {
		{ "zstd", "zstd", 4, { 0x28, 0xb5, 0x2f, 0xfd } },
		{ "xz", "xz", 6, { 0xfd, '7', 'z', 'X', 'Z', 0 } },
		{ "bzip2", "bzip2", 3, { 'B', 'Z', 'h' } },
		{ "lz4", "lz4", 4, { 0x04, 0x22, 0x4d, 0x18 } },
	};
	struct pl_cursor cur = unread(capture);
	char bytes[3 * 8 + 1] = "";
	size_t n = pl_cursor_left(&cur);

	for (size_t i = 0; i < sizeof(packers) / sizeof(packers[0]); i++) {
		const uint8_t *p = pl_cursor_peek(&cur, packers[i].len);

		if (p != NULL && memcmp(p, packers[i].magic, packers[i].len) == 0)
			return damage(capture, 0,
				"packed with %s, which is not read: %s -dc FILE | ... -",
				packers[i].name, packers[i].command);
	}
	for (size_t i = 0; i < n && i < 8; i++)
		snprintf(bytes + 3 * i, 4, " %02x", pl_get_u8(&cur));
	return damage(capture, 0, "not a pcap or pcapng file: it begins with%s", bytes);
}

static int parse_magic(struct pl_capture *capture)
{
	struct pl_cursor cur = unread(capture);
	uint32_t magic = pl_get_be32(&cur);
	bool little;

	if (cur.short_read)
		return STEP_MORE;
	if (magic == BLOCK_SECTION) {
		capture->format = PL_CAPTURE_PCAPNG;
		return STEP_ON;
	}
	/* Seconds and microseconds, seconds and nanoseconds, and Kuznetzov's with longer packet headers. */
	little = (magic & 0xff) == 0xa1;
	if (little)
		magic = __builtin_bswap32(magic);
	if (magic != 0xa1b2c3d4 && magic != 0xa1b23c4d && magic != 0xa1b2cd34) {
		/* Eight bytes are to be shown, also when they come in pieces. */
		return pl_cursor_left(&cur) < 4 && !capture->ended ? STEP_MORE
								   : not_a_capture(capture);
	}
	if (pl_cursor_left(&cur) < 20)
		return STEP_MORE;
	return start_pcap(capture, magic, little);
}

/* The file has ended and the parser wants more. */
static int at_end(struct pl_capture *capture)
{
	size_t left = capture->end - capture->pos;

	if (capture->format == PL_CAPTURE_FRESH && capture->base + left == 0)
		return damage(capture, 0, "the file is empty");
	if (capture->format == PL_CAPTURE_FRESH) {
		return left < 4 ? not_a_capture(capture)
				: damage(capture, left, "the file ends within its header");
	}
	if (left > 0 || capture->trailer != 0)
		return damage(capture, left,
			"the file ends within a packet or block that began at byte %" PRIu64,
			capture->base + capture->pos);
	capture->fault = -ENODATA;
	return -ENODATA;
}

/* One round: parse what is there, else read on. 1 = go on, 0 = time-out. */
static int advance(struct pl_capture *capture, struct pl_batch *batch, int timeout_ms)
{
	int r;

	if (capture->format == PL_CAPTURE_FRESH)
		r = parse_magic(capture);
	else if (capture->format == PL_CAPTURE_PCAPNG)
		r = parse_pcapng(capture, batch);
	else if (capture->little)
		r = parse_pcap(capture, batch, true);
	else
		r = parse_pcap(capture, batch, false);
	if (r >= 0 || (r == STEP_MORE && batch->n > 0))
		return 1;
	if (r == STEP_MORE)
		return capture->ended ? at_end(capture) : refill(capture, timeout_ms);
	if (capture->fault == 0) {
		capture->fault = r;
		snprintf(capture->fault_text, sizeof(capture->fault_text), "%s", strerror(-r));
	}
	return r;
}

int pl_capture_start(struct pl_capture *capture, int timeout_ms)
{
	struct pl_batch none;
	int r = 1;

	none.n = 0;
	while (capture->format == PL_CAPTURE_FRESH && r > 0)
		r = capture->fault != 0 ? capture->fault : advance(capture, &none, timeout_ms);
	return r;
}

int pl_capture_recv(struct pl_capture *capture, struct pl_batch *ret_batch, int timeout_ms)
{
	int r = 1;

	ret_batch->n = 0;
	while (ret_batch->n == 0 && r > 0)
		r = capture->fault != 0 ? capture->fault : advance(capture, ret_batch, timeout_ms);
	return ret_batch->n > 0 ? (int)ret_batch->n : r;
}
