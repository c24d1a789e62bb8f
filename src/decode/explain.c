/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Explains why datagrams do not decode. A separate decoder finds the place of a fault: the shortest
 * beginning of the packet with the same verdict ends with the deciding word, and the last byte of
 * it whose change changes the verdict is the place. So decoders need not keep track of positions,
 * and the place is right for every protocol. Only few packets are examined in this way.
 */
#include "decode/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"

#define SEEN_MAX      64 /* (verdict, exporter) pairs explained */
#define INTERVAL_NS   UINT64_C(10000000000)
#define DUMP_MAX      96   /* most bytes shown */
#define PROBE_MAX     1024 /* most bytes of a packet that are tried */
#define SCRATCH_PATHS 64

struct pl_explain {
	pl_explain_tell *tell;
	void *arg;
	struct pl_decode *probe;
	struct pl_record_batch scratch;
	struct pl_batch one;
	uint8_t copy[PROBE_MAX];
	struct {
		struct pl_addr addr;
		uint8_t verdict;
	} seen[SEEN_MAX];
	unsigned int n_seen;
	uint64_t since[PL_V_MAX]; /* faults since the last counts that were not explained */
	uint64_t told_ns;         /* time of the last counts, or of the last call without any */
	bool due;
};

static void drop_records(struct pl_record_batch *batch, void *arg)
{
	(void)arg;
	pl_record_batch_clear(batch);
}

int pl_explain_new(struct pl_explain **ret, const struct pl_decode_options *decode,
	pl_explain_tell *tell, void *arg)
{
	struct pl_decode_options options = *decode;
	struct pl_explain *ex = calloc(1, sizeof(*ex));

	if (ex == NULL)
		return -ENOMEM;
	ex->tell = tell;
	ex->arg = arg;
	/* The tables of the probe are not used. */
	options.max_exporters = 1;
	options.max_paths = 1;
	if (pl_record_batch_init(&ex->scratch, SCRATCH_PATHS, PL_BATCH_HOPS_MIN) < 0 ||
		pl_decode_new(&ex->probe, &options) < 0) {
		pl_explain_free(ex);
		return -ENOMEM;
	}
	ex->scratch.flush = drop_records;
	*ret = ex;
	return 0;
}

void pl_explain_free(struct pl_explain *ex)
{
	if (ex == NULL)
		return;
	pl_decode_free(ex->probe);
	pl_record_batch_done(&ex->scratch);
	free(ex);
}

static enum pl_verdict verdict_of(
	struct pl_explain *ex, const struct pl_packet *packet, const uint8_t *data, uint32_t len)
{
	struct pl_packet *one = &ex->one.pkts[0];

	ex->one.n = 1;
	*one = *packet;
	one->data = data;
	one->len = len;
	one->wire_len = len;
	pl_decode_batch(ex->probe, &ex->one, &ex->scratch);
	pl_record_batch_clear(&ex->scratch);
	return (enum pl_verdict)pl_decode_outcomes(ex->probe)[0].verdict;
}

/* True when the verdict says that bytes are missing: the fault then shows at the end. */
static bool is_short(enum pl_verdict v)
{
	return v == PL_V_SHORT || v == PL_V_REPORT_SHORT || v == PL_V_IOAM_SHORT ||
	       v == PL_V_INT_TRUNCATED;
}

/* True when the verdict on the first len bytes, which are in ex->copy, depends on the byte at
 * `at`. */
static bool matters(struct pl_explain *ex, const struct pl_packet *packet, enum pl_verdict verdict,
	uint32_t len, uint32_t at)
{
	uint8_t was = ex->copy[at];
	bool changed = false;

	for (unsigned int flip = 1; flip <= UINT8_MAX && !changed; flip++) {
		ex->copy[at] = (uint8_t)(was ^ flip);
		changed = verdict_of(ex, packet, ex->copy, len) != verdict;
	}
	ex->copy[at] = was;
	return changed;
}

/* The byte at fault; -1 when it is not known. */
static int64_t fault_byte(
	struct pl_explain *ex, const struct pl_packet *packet, enum pl_verdict verdict)
{
	uint32_t whole = packet->len < PROBE_MAX ? packet->len : PROBE_MAX, len = 1;

	if (is_short(verdict))
		return (int64_t)packet->len - 1;
	while (len <= whole && verdict_of(ex, packet, packet->data, len) != verdict)
		len++;
	if (len > whole)
		return -1;
	memcpy(ex->copy, packet->data, whole);
	/* The beginning of a packet too long to be tried whole may fail in another way. */
	if (verdict_of(ex, packet, ex->copy, whole) != verdict)
		whole = len;
	for (uint32_t at = len; at > 0; at--) {
		if (matters(ex, packet, verdict, whole, at - 1))
			return at - 1;
	}
	return -1;
}

static void dump_line(struct pl_buf *out, const struct pl_packet *p, uint32_t at)
{
	pl_buf_printf(out, "    %04x ", at);
	for (uint32_t i = at; i < at + 16; i++) {
		pl_buf_str(out, i == at + 8 ? "  " : " ");
		if (i < p->len)
			pl_buf_printf(out, "%02x", p->data[i]);
		else
			pl_buf_str(out, "  ");
	}
	pl_buf_str(out, "  ");
	for (uint32_t i = at; i < at + 16 && i < p->len; i++)
		pl_buf_chr(out, p->data[i] >= ' ' && p->data[i] < 0x7f ? (char)p->data[i] : '.');
	pl_buf_chr(out, '\n');
}

/* A mark under the byte, when it stands on the line that begins at `at`. */
static void dump_mark(struct pl_buf *out, uint32_t at, uint32_t byte)
{
	uint32_t column = byte - at;

	if (byte < at || column >= 16)
		return;
	pl_buf_printf(out, "%*s^^\n", (int)(10 + 3 * column + (column >= 8)), "");
}

void pl_explain_packet(struct pl_explain *ex, const struct pl_packet *packet,
	enum pl_verdict verdict, struct pl_buf *out)
{
	int64_t fault = fault_byte(ex, packet, verdict);
	uint32_t from = fault >= DUMP_MAX ? ((uint32_t)fault - DUMP_MAX / 2) / 16 * 16 : 0;
	char addr[PL_ADDR_TEXT_MAX];

	pl_format_addr(addr, &packet->src);
	pl_buf_printf(out, "%s port %u sent %u bytes that do not decode: %s: %s\n", addr,
		packet->sport, packet->wire_len, pl_verdict_name(verdict),
		pl_verdict_help(verdict));
	for (uint32_t at = from; at < packet->len && at < from + DUMP_MAX; at += 16) {
		dump_line(out, packet, at);
		if (fault >= 0)
			dump_mark(out, at, (uint32_t)fault);
	}
	if (packet->len > from + DUMP_MAX)
		pl_buf_printf(out, "    … %u bytes more\n", packet->len - from - DUMP_MAX);
	if (packet->len == 0)
		pl_buf_str(out, "    an empty datagram\n");
	else if (is_short(verdict))
		pl_buf_printf(out, "    it ends with byte %" PRId64 ", where more should follow\n",
			fault);
	else if (fault >= 0)
		pl_buf_printf(out, "    the fault shows at byte %" PRId64 "\n", fault);
	if (packet->len >= 4 && memcmp(packet->data, "TPK1", 4) == 0)
		pl_buf_str(out, "    it begins like records of packets (tmpkt/1), which "
				"'pathline listen --packets' and 'pathline tap' read\n");
}

/* True when this is the first fault of its kind; notes it. */
static bool first_of_kind(struct pl_explain *ex, const struct pl_addr *addr, uint8_t verdict)
{
	for (unsigned int i = 0; i < ex->n_seen; i++) {
		if (ex->seen[i].verdict == verdict && pl_addr_equal(&ex->seen[i].addr, addr))
			return false;
	}
	if (ex->n_seen == SEEN_MAX)
		return false;
	ex->seen[ex->n_seen].addr = *addr;
	ex->seen[ex->n_seen++].verdict = verdict;
	return true;
}

void pl_explain_batch(
	struct pl_explain *ex, const struct pl_batch *batch, const struct pl_outcome *outcomes)
{
	struct pl_buf text;

	pl_buf_init(&text);
	for (uint32_t i = 0; i < batch->n; i++) {
		uint8_t verdict = outcomes[i].verdict;

		if (verdict == PL_V_OK)
			continue;
		if (!first_of_kind(ex, &batch->pkts[i].src, verdict)) {
			ex->since[verdict]++;
			ex->due = true;
			continue;
		}
		pl_buf_reset(&text);
		pl_explain_packet(ex, &batch->pkts[i], (enum pl_verdict)verdict, &text);
		if (text.failed || text.len == 0)
			continue;
		text.data[text.len - 1] = '\0'; /* the end of the last line */
		ex->tell(ex->arg, text.data);
	}
	pl_buf_done(&text);
}

void pl_explain_tick(struct pl_explain *ex, uint64_t now_ns)
{
	struct pl_buf text;
	const char *sep = "";

	if (!ex->due)
		ex->told_ns = now_ns;
	if (!ex->due || now_ns - ex->told_ns < INTERVAL_NS)
		return;
	ex->told_ns = now_ns;
	ex->due = false;
	pl_buf_init(&text);
	pl_buf_str(&text, "more that did not decode: ");
	for (int v = 0; v < PL_V_MAX; v++) {
		if (ex->since[v] == 0)
			continue;
		pl_buf_printf(&text, "%s%s %" PRIu64, sep, pl_verdict_name((enum pl_verdict)v),
			ex->since[v]);
		ex->since[v] = 0;
		sep = ", ";
	}
	if (!text.failed && text.len > 0)
		ex->tell(ex->arg, text.data);
	pl_buf_done(&text);
}
