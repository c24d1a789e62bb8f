/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The capture reader, pcap, pcapng and gzip. Whatever the bytes: packets lie within bounds, reading
 * ends, the end is one of the two there are, and how the bytes were cut on their way in changes
 * nothing.
 */
#include <errno.h>

#include "fuzz.h"
#include "netio/capture.h"

struct outcome {
	uint64_t packets, digest;
	int end;
	char text[256];
};

static struct outcome walk(const uint8_t *data, size_t size, size_t chunk)
{
	static struct pl_batch batch;
	struct outcome o = { .digest = 14695981039346656037u };
	struct pl_capture capture;
	struct pl_source source;
	int n;

	must(pl_source_init_memory(&source, data, size, chunk) == 0);
	must(pl_capture_init(&capture, &source) == 0);
	while ((n = pl_capture_recv(&capture, &batch, 0)) > 0) {
		must(n <= PL_BATCH_MAX);
		for (int i = 0; i < n; i++) {
			const struct pl_packet *p = &batch.pkts[i];

			must(p->len <= PL_CAPTURE_PACKET_MAX && p->len <= p->wire_len);
			must(p->link < PL_LINK_MAX && p->link != PL_LINK_UDP);
			for (uint32_t k = 0; k < p->len; k++)
				o.digest = (o.digest ^ p->data[k]) * 1099511628211u;
			o.digest = (o.digest ^ p->ts_ns ^ p->wire_len ^ p->link) * 1099511628211u;
			o.packets++;
		}
	}
	must(n == -ENODATA || n == -EBADMSG);
	must(n == -ENODATA || capture.fault_text[0] != '\0');
	o.end = n;
	memcpy(o.text, capture.fault_text, sizeof(o.text));
	pl_capture_done(&capture);
	return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct outcome whole = walk(data, size, 0);
	struct outcome pieces = walk(data, size, 1 + size % 61);

	must(whole.packets == pieces.packets && whole.digest == pieces.digest);
	must(whole.end == pieces.end && strcmp(whole.text, pieces.text) == 0);
	return 0;
}
