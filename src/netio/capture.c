/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads capture files: the buffer, the pcap format, and the detection of the format. */
#include "netio/capture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "netio/capture_state.h"

#define BUF_BYTES PL_CAPTURE_BLOCK_MAX
#define READ_BYTES                                                                                 \
	(256u * 1024) /* bytes read at a time, so that they are still in the cache when they are
		       * decoded */

_Static_assert(BUF_BYTES >= PL_CAPTURE_PACKET_MAX + 24, "a packet with its header fits the buffer");

__attribute__((format(printf, 3, 4))) int pl_capture_damage(
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

/* Moves the unread bytes to the front of the buffer and reads more behind them; no packet may be
 * lent. Returns 1 (more bytes, or the end: capture->ended), 0 on a time-out, or negative errno. */
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
		return pl_capture_damage(capture, left, "%s", capture->source.fault);
	capture->fault = (int)n;
	snprintf(capture->fault_text, sizeof(capture->fault_text), "byte %" PRIu64 ": %s",
		capture->base + left, strerror((int)-n));
	return (int)n;
}

/* ---- pcap ---- */

/* Parses the file header, whose 24 bytes are in the buffer. */
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
	/* The upper bits tell the length of a frame check sequence, which the decoder leaves
	 * alone. */
	interface->linktype = (uint16_t)get32(&cur, little);
	if (major != 2)
		return pl_capture_damage(
			capture, 4, "pcap version %u.%u is not supported", major, minor);
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
			return pl_capture_damage(capture, 8,
				"packet of %" PRIu32 " bytes, more than %u", len,
				PL_CAPTURE_PACKET_MAX);
		data = pl_cursor_take(&cur, len);
		if (data == NULL)
			return STEP_MORE;
		wire_len = whole_length(capture, len, wire_len);
		set_packet(p, linktype, data, len, wire_len,
			seconds * UINT64_C(1000000000) + ticks * ns_per_tick);
		finish_packet(p, linktype);
		batch->n++;
		capture->pos += record_bytes + len;
	}
	return STEP_PACKET;
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
			return pl_capture_damage(capture, 0,
				"compressed with %s, which is not supported: use %s -dc FILE | pathline ... -",
				packers[i].name, packers[i].command);
	}
	for (size_t i = 0; i < n && i < 8; i++)
		snprintf(bytes + 3 * i, 4, " %02x", pl_get_u8(&cur));
	return pl_capture_damage(capture, 0, "not a pcap or pcapng file: it begins with%s", bytes);
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
	/* Magic numbers of microsecond files, of nanosecond files, and of Kuznetzov's format with
	 * longer packet headers. */
	little = (magic & 0xff) == 0xa1;
	if (little)
		magic = __builtin_bswap32(magic);
	if (magic != 0xa1b2c3d4 && magic != 0xa1b23c4d && magic != 0xa1b2cd34) {
		/* The error shows eight bytes: waits for them when they come in pieces. */
		return pl_cursor_left(&cur) < 4 && !capture->ended ? STEP_MORE
								   : not_a_capture(capture);
	}
	if (pl_cursor_left(&cur) < 20)
		return STEP_MORE;
	return start_pcap(capture, magic, little);
}

/* The file has ended and the parser needs more bytes. */
static int at_end(struct pl_capture *capture)
{
	size_t left = capture->end - capture->pos;

	if (capture->format == PL_CAPTURE_FRESH && capture->base + left == 0)
		return pl_capture_damage(capture, 0, "the file is empty");
	if (capture->format == PL_CAPTURE_FRESH) {
		return left < 4 ? not_a_capture(capture)
				: pl_capture_damage(
					  capture, left, "the file ends within its header");
	}
	if (left > 0 || capture->trailer != 0)
		return pl_capture_damage(capture, left,
			"the file ends within a packet or block that began at byte %" PRIu64,
			capture->base + capture->pos);
	capture->fault = -ENODATA;
	return -ENODATA;
}

/* Parses the buffered bytes, or reads more when they hold no whole packet. Returns 1 to go on, 0 on
 * a time-out, or negative errno. */
static int advance(struct pl_capture *capture, struct pl_batch *batch, int timeout_ms)
{
	int r;

	if (capture->format == PL_CAPTURE_FRESH)
		r = parse_magic(capture);
	else if (capture->format == PL_CAPTURE_PCAPNG)
		r = pl_capture_pcapng(capture, batch);
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
