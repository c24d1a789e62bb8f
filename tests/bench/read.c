/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What `pathline read` does without its printing: a capture file of reports to records. The ceiling
 * is libpcap alone walking the same file, which looks at no byte of a packet. The file is made by
 * the generator and lies in the page cache: what is compared is processor time, the kernel's
 * copying included, not disks.
 */
#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/complain.h"
#include "decode/decode.h"
#include "gen/gen.h"
#include "netio/port.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "tests/bench/walk_pcap.h"

struct read_bench {
	char path[256];
	uint64_t packets; /* in the file */
	bool decode;
	struct pl_batch batch;
};

static void discard(struct pl_record_batch *records, void *arg)
{
	(void)arg;
	pl_record_batch_clear(records);
}

static int walk_libpcap(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const struct read_bench *b = arg;

	return pl_bench_walk_pcap(b->path, PCAP_TSTAMP_PRECISION_NANO, b->packets, budget_ns, ret);
}

/* One pass, opening included. */
static int read_file(struct read_bench *b, struct pl_decode *decode,
	struct pl_record_batch *records, struct pl_bench_sample *ret)
{
	uint64_t start = pl_cpu_thread_ns(), packets = 0;
	struct pl_port *port;
	int n;

	n = pl_port_open(&port, b->path, PL_PORT_RECV, NULL, NULL);
	if (n < 0)
		return n;
	while ((n = pl_port_recv(port, &b->batch, -1, NULL)) > 0) {
		packets += (uint64_t)n;
		if (decode != NULL)
			pl_decode_batch(decode, &b->batch, records);
		pl_port_release(port, &b->batch);
	}
	pl_port_close(port);
	ret->items += packets;
	ret->ns += pl_cpu_thread_ns() - start;
	return n == -ENODATA && packets == b->packets ? 0 : -EIO;
}

static int read_to_records(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	static const struct pl_decode_options defaults;
	struct pl_record_batch records = { 0 };
	struct read_bench *b = arg;
	int r;

	r = pl_record_batch_init(&records, 1024, 8192);
	if (r < 0)
		return r;
	records.flush = discard;
	while (r == 0 && ret->ns < budget_ns) {
		/* A new decoder each time: to an old one the file's sequence numbers would be
		 * duplicates. */
		struct pl_decode *decode = NULL;

		if (b->decode)
			r = pl_decode_new(&decode, &defaults);
		if (r == 0)
			r = read_file(b, decode, &records, ret);
		if (r == 0 && decode != NULL) {
			/* A figure for reports that were refused would mean nothing. */
			const struct pl_decode_counters *c = pl_decode_counters(decode);

			if (pl_counter_read(&c->verdicts[PL_V_OK]) != b->packets)
				r = -EBADMSG;
		}
		pl_decode_free(decode);
	}
	pl_record_batch_done(&records);
	return r;
}

static int make_file(struct read_bench *b, uint64_t bytes)
{
	/* Three hops of seven values each in INT 2.1, in reports 2.0. */
	struct pl_gen_cfg cfg = { .seed = 1, .rate = 1e6, .flows = 1000 };
	struct pl_gen *gen = NULL;
	struct pl_port *port = NULL;
	uint64_t written = 0;
	int r, closed;

	r = pl_gen_new(&gen, &cfg, NULL);
	if (r == 0)
		r = pl_port_open(&port, b->path, PL_PORT_SEND, NULL, NULL);
	b->packets = 0;
	while (r >= 0 && written < bytes) {
		r = pl_gen_next(gen, UINT64_MAX, &b->batch);
		if (r <= 0)
			break;
		for (uint32_t i = 0; i < b->batch.n; i++)
			written += b->batch.pkts[i].len + 16;
		b->packets += b->batch.n;
		r = pl_port_send(port, &b->batch, NULL);
	}
	closed = pl_port_close(port);
	pl_gen_free(gen);
	return r < 0 ? r : closed;
}

static int run(struct pl_bench_ctx *ctx)
{
	static const struct {
		const char *name, *suffix;
		bool decode;
	} variants[] = {
		{ "read", ".pcap", true },
		{ "read/packets-only", ".pcap", false },
		{ "read/pcapng", ".pcapng", true },
	};
	static struct read_bench b;
	const char *folder = getenv("TMPDIR");
	uint64_t bytes = pl_bench_size_bytes(ctx, 256u << 20);
	int r = 0;

	for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]) && r == 0; i++) {
		struct pl_bench_case c = { .name = variants[i].name,
			.ceiling_name = "libpcap alone",
			.subject = read_to_records,
			.ceiling = walk_libpcap,
			.arg = &b };
		int fd;

		snprintf(b.path, sizeof(b.path), "%s/pathline-bench-XXXXXX%s",
			folder != NULL && *folder != '\0' ? folder : "/tmp", variants[i].suffix);
		b.decode = variants[i].decode;
		fd = mkstemps(b.path, (int)strlen(variants[i].suffix));
		if (fd < 0) {
			r = -errno;
			pl_complain("cannot make %s: %s", b.path, strerror(-r));
			return r;
		}
		close(fd);
		r = make_file(&b, bytes);
		if (r < 0)
			pl_complain("cannot write %s: %s", b.path, strerror(-r));
		else
			r = pl_bench_compare(ctx, &c);
		unlink(b.path);
	}
	return r;
}

const struct pl_bench pl_bench_read = {
	.name = "read",
	.summary = "a capture file to records, against libpcap alone walking the same file",
	.run = run,
};
