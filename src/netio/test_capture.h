/* SPDX-License-Identifier: BSD-2-Clause */
/* Builds captures byte by byte and reads them back; for capture_test.c. */
#pragma once

#include "base/test.h"
#include "netio/capture.h"
#include "wire/build.h"

struct file {
	struct pl_build b;
	bool little;
	uint8_t bytes[8192];
};

struct outcome {
	unsigned int packets;
	int end;
	uint64_t digest, first_ts, last_ts, wire_bytes, length_lies;
	uint32_t first_len;
	uint8_t first_link;
	char text[256];
};

static void begin(struct file *f, bool little)
{
	f->b = pl_build(f->bytes, sizeof(f->bytes));
	f->little = little;
}

static void put16(struct file *f, uint16_t v)
{
	pl_put_be16(&f->b, f->little ? __builtin_bswap16(v) : v);
}

static void put32(struct file *f, uint32_t v)
{
	pl_put_be32(&f->b, f->little ? __builtin_bswap32(v) : v);
}

static void put64(struct file *f, uint64_t v)
{
	pl_put_be64(&f->b, f->little ? __builtin_bswap64(v) : v);
}

static void put_fill(struct file *f, uint32_t len, uint8_t seed)
{
	for (uint32_t i = 0; i < len; i++)
		pl_put_u8(&f->b, (uint8_t)(seed + i));
}

static void pcap_header(struct file *f, uint32_t magic, uint32_t linktype)
{
	put32(f, magic);
	put16(f, 2);
	put16(f, 4);
	put64(f, 0);
	put32(f, 65535);
	put32(f, linktype);
}

static void pcap_packet(
	struct file *f, uint32_t seconds, uint32_t ticks, uint32_t len, uint32_t wire_len)
{
	put32(f, seconds);
	put32(f, ticks);
	put32(f, len);
	put32(f, wire_len);
	put_fill(f, len, (uint8_t)ticks);
}

static void ng_section(struct file *f)
{
	put32(f, 0x0a0d0d0a);
	put32(f, 28);
	put32(f, 0x1a2b3c4d);
	put16(f, 1);
	put16(f, 0);
	put64(f, UINT64_MAX);
	put32(f, 28);
}

/* Writes an interface description. resolution < 0: without that option; offset 0: likewise. */
static void ng_interface(
	struct file *f, uint16_t linktype, uint32_t snaplen, int resolution, int64_t offset)
{
	uint32_t total = 20 + (resolution >= 0 ? 8 : 0) + (offset != 0 ? 12 : 0) + 4;

	put32(f, 1);
	put32(f, total);
	put16(f, linktype);
	put16(f, 0);
	put32(f, snaplen);
	if (resolution >= 0) {
		put16(f, 9);
		put16(f, 1);
		pl_put_u8(&f->b, (uint8_t)resolution);
		pl_put_zero(&f->b, 3);
	}
	if (offset != 0) {
		put16(f, 14);
		put16(f, 8);
		put64(f, (uint64_t)offset);
	}
	put32(f, 0);
	put32(f, total);
}

static void ng_packet(
	struct file *f, uint32_t interface, uint64_t ticks, uint32_t len, uint32_t wire_len)
{
	uint32_t total = 32 + len + (-len & 3);

	put32(f, 6);
	put32(f, total);
	put32(f, interface);
	put32(f, (uint32_t)(ticks >> 32));
	put32(f, (uint32_t)ticks);
	put32(f, len);
	put32(f, wire_len);
	put_fill(f, len, (uint8_t)ticks);
	pl_put_zero(&f->b, -len & 3);
	put32(f, total);
}

static void ng_unknown(struct file *f, uint32_t type, uint32_t len)
{
	put32(f, type);
	put32(f, len + 12);
	pl_put_zero(&f->b, len);
	put32(f, len + 12);
}

static struct outcome walk(const uint8_t *data, size_t len, size_t chunk)
{
	static struct pl_batch batch;
	struct outcome o = { .digest = 14695981039346656037u };
	struct pl_capture capture;
	struct pl_source source;
	int n;

	if (!ok(pl_source_init_memory(&source, data, len, chunk) == 0 &&
			    pl_capture_init(&capture, &source) == 0,
		    "set up"))
		return o;
	while ((n = pl_capture_recv(&capture, &batch, 0)) > 0) {
		for (int i = 0; i < n; i++) {
			const struct pl_packet *p = &batch.pkts[i];

			for (uint32_t k = 0; k < p->len; k++)
				o.digest = (o.digest ^ p->data[k]) * 1099511628211u;
			o.digest = (o.digest ^ p->ts_ns ^ p->wire_len ^ p->link) * 1099511628211u;
			if (o.packets++ == 0) {
				o.first_ts = p->ts_ns;
				o.first_len = p->len;
				o.first_link = p->link;
			}
			o.last_ts = p->ts_ns;
			o.wire_bytes += p->wire_len;
		}
	}
	o.end = n;
	o.length_lies = capture.length_lies;
	memcpy(o.text, capture.fault_text, sizeof(o.text));
	ok(pl_capture_recv(&capture, &batch, 0) == n, "the end stays the end");
	pl_capture_done(&capture);
	return o;
}
