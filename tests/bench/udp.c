/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A UDP socket's datagrams to records. The ceiling is a recvmmsg loop on the same socket that only
 * counts, fed by the same sender.
 *
 * udp        the sender, on another processor, sends without pause for the whole run; the receiver
 *            waits when nothing is there. Measured is the receiving thread's processor time, the
 *            kernel's part included: what else runs on the machine then matters little.
 * udp/queue  the sender fills the socket's queue, then the queue is drained, in turn; only draining
 *            is timed. The least that a datagram can cost the kernel, so the hardest comparison.
 * udp/queue-datagrams  the same without decoding: what the port itself costs.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/complain.h"
#include "decode/decode.h"
#include "gen/gen.h"
#include "netio/port.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"

#define BATCHES        16 /* made beforehand; sending them again takes no time to make them */
#define DATAGRAM_BYTES 2048
#define QUEUED_MAX     (BATCHES * PL_BATCH_MAX)

struct udp_bench {
	struct pl_port *rx, *tx;
	struct pl_decode *decode;
	struct pl_record_batch records;
	struct pl_batch sent[BATCHES], batch;
	uint8_t (*bytes)[DATAGRAM_BYTES];
	uint32_t fill_batches;
	struct mmsghdr msgs[PL_BATCH_MAX];
	struct iovec iov[PL_BATCH_MAX];
	uint8_t (*room)[DATAGRAM_BYTES];
	bool datagrams_only;
	atomic_bool stop;
};

static void discard(struct pl_record_batch *records, void *arg)
{
	(void)arg;
	pl_record_batch_clear(records);
}

/* How many datagrams were there, at most a batch; the least a receiver can do. */
static int count_only(struct udp_bench *b)
{
	int n = recvmmsg(pl_port_fd(b->rx), b->msgs, PL_BATCH_MAX, MSG_DONTWAIT, NULL);

	return n < 0 ? (errno == EAGAIN ? 0 : -errno) : n;
}

static int to_records(struct udp_bench *b)
{
	int n = pl_port_recv(b->rx, &b->batch, 0, NULL);

	if (n <= 0)
		return n;
	if (!b->datagrams_only)
		pl_decode_batch(b->decode, &b->batch, &b->records);
	pl_port_release(b->rx, &b->batch);
	return n;
}

static int drain(struct udp_bench *b, int (*take)(struct udp_bench *), uint64_t budget_ns,
	struct pl_bench_sample *ret)
{
	uint64_t start;
	int n;

	while ((n = take(b)) > 0)
		;
	while (n == 0 && ret->ns < budget_ns) {
		for (uint32_t i = 0; i < b->fill_batches && n >= 0; i++)
			n = pl_port_send(b->tx, &b->sent[i], NULL);
		if (n < 0)
			return n;
		start = pl_cpu_thread_ns();
		while ((n = take(b)) > 0)
			ret->items += (uint64_t)n;
		ret->ns += pl_cpu_thread_ns() - start;
	}
	return n;
}

static int drain_ceiling(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return drain(arg, count_only, budget_ns, ret);
}

static int drain_subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return drain(arg, to_records, budget_ns, ret);
}

static void *send_on(void *arg)
{
	struct udp_bench *b = arg;

	(void)pl_cpu_pin(1);
	while (!atomic_load_explicit(&b->stop, memory_order_relaxed)) {
		for (uint32_t i = 0; i < BATCHES; i++)
			(void)pl_port_send(b->tx, &b->sent[i], NULL);
	}
	return NULL;
}

static int live(struct udp_bench *b, int (*take)(struct udp_bench *), uint64_t budget_ns,
	struct pl_bench_sample *ret)
{
	struct pollfd readable = { .fd = pl_port_fd(b->rx), .events = POLLIN };
	uint64_t start, until;
	pthread_t sender;
	cpu_set_t allowed;
	int n = 0;

	atomic_store(&b->stop, false);
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0)
		return -errno;
	n = -pthread_create(&sender, NULL, send_on, b);
	if (n < 0)
		return n;
	(void)pl_cpu_pin(0);
	start = pl_cpu_thread_ns();
	until = pl_clock_mono_ns() + budget_ns;
	while (n >= 0 && pl_clock_mono_ns() < until) {
		for (int i = 0; i < 16 && (n = take(b)) > 0; i++)
			ret->items += (uint64_t)n;
		if (n == 0)
			(void)poll(&readable, 1, 10);
	}
	ret->ns = pl_cpu_thread_ns() - start;
	atomic_store(&b->stop, true);
	pthread_join(sender, NULL);
	(void)sched_setaffinity(0, sizeof(allowed), &allowed);
	return n < 0 ? n : 0;
}

static int live_ceiling(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return live(arg, count_only, budget_ns, ret);
}

static int live_subject(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	return live(arg, to_records, budget_ns, ret);
}

/* Reports as the generator makes them, copied, since a batch of its lives until the next. */
static int make_reports(struct udp_bench *b)
{
	struct pl_gen_cfg cfg = { .seed = 1, .rate = 1e6, .flows = 1000, .udp = true };
	struct pl_gen *gen;
	int r;

	r = pl_gen_new(&gen, &cfg, NULL);
	for (uint32_t k = 0; r >= 0 && k < BATCHES; k++) {
		r = pl_gen_next(gen, UINT64_MAX, &b->sent[k]);
		for (uint32_t i = 0; r > 0 && i < b->sent[k].n; i++) {
			struct pl_packet *p = &b->sent[k].pkts[i];
			uint8_t *to = b->bytes[k * PL_BATCH_MAX + i];

			if (p->len > DATAGRAM_BYTES)
				r = -EMSGSIZE;
			else
				p->data = memcpy(to, p->data, p->len);
		}
	}
	if (r >= 0)
		pl_gen_free(gen);
	return r < 0 ? r : 0;
}

static int prepare(struct udp_bench *b)
{
	struct pl_decode_options options = { .any_port = true };
	struct pl_port_stats stats;
	char uri[64];
	int r;

	b->bytes = calloc(QUEUED_MAX, DATAGRAM_BYTES);
	b->room = calloc(PL_BATCH_MAX, DATAGRAM_BYTES);
	if (b->bytes == NULL || b->room == NULL)
		return -ENOMEM;
	for (uint32_t i = 0; i < PL_BATCH_MAX; i++) {
		b->iov[i] = (struct iovec){ b->room[i], DATAGRAM_BYTES };
		b->msgs[i].msg_hdr = (struct msghdr){ .msg_iov = &b->iov[i], .msg_iovlen = 1 };
	}
	r = pl_record_batch_init(&b->records, 1024, 8192);
	if (r < 0)
		return r;
	b->records.flush = discard;
	r = pl_decode_new(&b->decode, &options);
	if (r == 0)
		r = make_reports(b);
	if (r == 0)
		r = pl_port_open(
			&b->rx, "udp://127.0.0.1:0?rcvbuf=64MiB", PL_PORT_RECV, NULL, NULL);
	if (r < 0)
		return r;
	snprintf(uri, sizeof(uri), "udp://127.0.0.1:%u?gso=on", pl_port_local_port(b->rx));
	/* As much as surely fits the queue: the kernel counts its own headers too. */
	pl_port_stats(b->rx, &stats);
	b->fill_batches = (uint32_t)(stats.rcvbuf_bytes / DATAGRAM_BYTES / PL_BATCH_MAX);
	if (b->fill_batches > BATCHES)
		b->fill_batches = BATCHES;
	if (b->fill_batches == 0)
		b->fill_batches = 1;
	return pl_port_open(&b->tx, uri, PL_PORT_SEND, NULL, NULL);
}

static void cleanup(struct udp_bench *b)
{
	pl_port_close(b->rx);
	pl_port_close(b->tx);
	pl_decode_free(b->decode);
	pl_record_batch_done(&b->records);
	free(b->bytes);
	free(b->room);
	free(b);
}

static int run(struct pl_bench_ctx *ctx)
{
	struct pl_bench_case drained = { .name = "udp/queue",
		.ceiling_name = "recvmmsg that only counts",
		.subject = drain_subject,
		.ceiling = drain_ceiling };
	struct pl_bench_case lively = { .name = "udp",
		.ceiling_name = "recvmmsg that only counts",
		.subject = live_subject,
		.ceiling = live_ceiling };
	struct udp_bench *b = calloc(1, sizeof(*b));
	const struct pl_decode_counters *c;
	int r = b == NULL ? -ENOMEM : prepare(b);

	if (r < 0) {
		pl_complain("benchmark udp: %s", strerror(-r));
		if (b != NULL)
			cleanup(b);
		return r;
	}
	drained.arg = lively.arg = b;
	r = pl_cpu_count() > 1 ? pl_bench_compare(ctx, &lively) : 0;
	if (r == 0)
		r = pl_bench_compare(ctx, &drained);
	if (r == 0) {
		drained.name = "udp/queue-datagrams";
		b->datagrams_only = true;
		r = pl_bench_compare(ctx, &drained);
		b->datagrams_only = false;
	}
	c = pl_decode_counters(b->decode);
	if (r == 0 && pl_counter_read(&c->verdicts[PL_V_OK]) != pl_counter_read(&c->packets)) {
		pl_complain(
			"benchmark udp: the decoder refused reports, so its figures mean nothing");
		r = -EBADMSG;
	}
	cleanup(b);
	return r;
}

const struct pl_bench pl_bench_udp = {
	.name = "udp",
	.summary = "datagrams of a UDP socket to records, against a recvmmsg loop that only counts",
	.run = run,
};
