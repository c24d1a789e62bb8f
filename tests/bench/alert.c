/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long it takes from a packet on the wire until the alert that it causes is with a webhook:
 * processes of this program tap the receiver's end of the wire of benchmarks (packet:), ask two
 * standing queries of all packets, and send events (bench/alert_chain.h). A probe is two packets to
 * a new address, whose second one crosses the threshold of both queries. The clock begins with the
 * kernel's time stamp of a packet, and ends when the webhook has read the request.
 *
 *   first   EMIT FIRST: from the packet that crosses the threshold
 *   window  windows of 100 ms: from the record time at which the window may close, 200 ms
 *           (lateness) behind its end, where the next record closes it. The window and the lateness
 *           are not in the figure
 *   kafka   the same with a topic between tap and queries
 *
 * Meanwhile another socket sends packets to 1024 addresses at 50 or 80 % of what the queries took
 * from a flood, which is measured before; both loads alternate. The senders have the second
 * processor.
 */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/complain.h"
#include "netio/port.h"
#include "tests/bench/alert_chain.h"
#include "tests/bench/alert_receiver.h"
#include "tests/bench/bench.h"
#include "tests/bench/paced.h"
#include "tests/bench/wire.h"
#include "wire/layers.h"
#if PL_HAVE_KAFKA
#include "netio/rtnl_net.h"
#include "tests/bench/cluster.h"
#include "tests/bench/cpu.h"
#endif

enum { FRAME_BYTES = 96, LOAD_BATCHES = 4, LOADS = 2, QUERIES = 2, PROBES_MIN = 25 };

#define PROBES_MAX  65536u
#define PROBE_DST   0x0a400000u
#define LOAD_DST    0x0a010000u
#define FLOOD_NS    UINT64_C(1000000000)
#define START_NS    UINT64_C(15000000000) /* until the first record is through */
#define QUIET_NS    UINT64_C(400000000)   /* without a record: nothing is on its way */
#define SETTLE_NS   UINT64_C(20000000000)
#define PATIENCE_NS UINT64_C(3000000000) /* for the last alert */

static const unsigned int shares[LOADS] = { 50, 80 };

struct probes {
	char names[QUERIES][32];
	struct pl_bench_times times[QUERIES];
};

struct alert_bench {
	struct pl_wire wire;
	struct pl_alert_chain chain;
	struct pl_alert_receiver *receiver;
	struct pl_port *load_port, *probe_port;
	uint8_t load_frames[LOAD_BATCHES][PL_BATCH_MAX][FRAME_BYTES], probe_frames[2][FRAME_BYTES];
	struct pl_batch load[LOAD_BATCHES], probe;
	uint32_t n_probes;
	struct pl_bench_paced paced; /* the load */
	unsigned int next_load;
	pthread_mutex_t lock;
	/* Under the lock: */
	uint8_t load_of[PROBES_MAX];    /* under which load the probe was sent */
	bool seen[QUERIES][PROBES_MAX]; /* its alert is there */
	struct probes loads[LOADS];
	uint32_t sent[LOADS];
};

/* ---- frames ---- */

static void put16(uint8_t *p, uint32_t v)
{
	p[0] = (uint8_t)(v >> 8);
	p[1] = (uint8_t)v;
}

/* Addresses a frame of pl_wire_frame anew. */
static void set_to(uint8_t *frame, uint32_t dst, uint16_t dport)
{
	put16(frame + 30, dst >> 16);
	put16(frame + 32, dst);
	put16(frame + 36, dport);
	put16(frame + 24, 0);
	put16(frame + 24, pl_checksum_fold(pl_checksum_add(0, frame + 14, 20)));
}

static int make_frame(struct pl_packet *packet, uint8_t frame[FRAME_BYTES])
{
	static const uint8_t payload[FRAME_BYTES - 42];

	*packet = (struct pl_packet){
		.data = frame, .len = FRAME_BYTES, .wire_len = FRAME_BYTES, .link = PL_LINK_ETHERNET
	};
	return pl_wire_frame(frame, FRAME_BYTES, payload, sizeof(payload)) < 0 ? -EMSGSIZE : 0;
}

static int make_frames(struct alert_bench *b)
{
	int r = 0;

	for (unsigned int k = 0; k < LOAD_BATCHES; k++) {
		b->load[k].n = PL_BATCH_MAX;
		for (unsigned int i = 0; r == 0 && i < PL_BATCH_MAX; i++) {
			r = make_frame(&b->load[k].pkts[i], b->load_frames[k][i]);
			set_to(b->load_frames[k][i], LOAD_DST + k * PL_BATCH_MAX + i, 443);
		}
	}
	b->probe.n = 2;
	for (unsigned int i = 0; r == 0 && i < 2; i++)
		r = make_frame(&b->probe.pkts[i], b->probe_frames[i]);
	return r;
}

/* ---- the load ---- */

static void send_burst(void *arg, uint32_t n)
{
	struct alert_bench *b = arg;
	struct pl_batch *load = &b->load[b->next_load];

	load->n = n;
	/* What the kernel refuses is missing from the load: the rate is the one aimed at. */
	(void)pl_port_send(b->load_port, load, NULL);
	b->next_load = (b->next_load + 1) % LOAD_BATCHES;
}

/* Waits until no record has come for a while. */
static int settle(const struct alert_bench *b)
{
	const uint64_t until = pl_clock_mono_ns() + SETTLE_NS;
	uint64_t had = UINT64_MAX, records = 0;

	while (records != had && pl_clock_mono_ns() < until) {
		int r;

		had = records;
		nanosleep(&(struct timespec){ .tv_nsec = (long)QUIET_NS }, NULL);
		r = pl_alert_chain_records(&b->chain, &records);
		if (r < 0)
			return r;
	}
	return records == had ? 0 : -ETIMEDOUT;
}

/* A gentle load, until its records come through. */
static int await_first(struct alert_bench *b)
{
	const uint64_t until = pl_clock_mono_ns() + START_NS;
	uint64_t records = 0;
	int r = pl_bench_paced_begin(&b->paced, 1000);

	if (r < 0)
		return r;
	while (r == 0 && records == 0 && pl_clock_mono_ns() < until) {
		nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
		r = pl_alert_chain_records(&b->chain, &records);
	}
	pl_bench_paced_end(&b->paced);
	return r < 0 ? r : records == 0 ? -ENODATA : 0;
}

/* Packets per second that the queries take from a flood. */
static int flood(struct alert_bench *b, double *ret_rate)
{
	uint64_t first = 0, last = 0, start, now;
	int r = pl_bench_paced_begin(&b->paced, 0);

	if (r < 0)
		return r;
	nanosleep(&(struct timespec){ .tv_nsec = (long)QUIET_NS }, NULL);
	r = pl_alert_chain_records(&b->chain, &first);
	start = pl_clock_mono_ns();
	nanosleep(&(struct timespec){ .tv_sec = FLOOD_NS / 1000000000 }, NULL);
	if (r == 0)
		r = pl_alert_chain_records(&b->chain, &last);
	now = pl_clock_mono_ns();
	pl_bench_paced_end(&b->paced);
	if (r == 0 && last == first)
		r = -ENODATA;
	if (r == 0)
		*ret_rate = (double)(last - first) * 1e9 / (double)(now - start);
	return r < 0 ? r : settle(b);
}

/* ---- alerts ---- */

/* From when on the query could tell. */
static uint64_t begin_of(unsigned int query, uint64_t packet_ns)
{
	if (query == 0)
		return packet_ns;
	return (packet_ns / PL_ALERT_WINDOW_NS + 1) * PL_ALERT_WINDOW_NS + PL_ALERT_LATENESS_NS;
}

static void take(void *arg, const char *query, uint32_t key, uint64_t value, uint64_t stamp_ns)
{
	const unsigned int q = strcmp(query, "first") == 0 ? 0 : 1;
	const uint64_t begin_ns = begin_of(q, value);
	const uint32_t i = key - PROBE_DST;
	struct alert_bench *b = arg;

	pthread_mutex_lock(&b->lock);
	if (i < b->n_probes && !b->seen[q][i] && stamp_ns > begin_ns) {
		struct pl_bench_times *t = &b->loads[b->load_of[i]].times[q];

		b->seen[q][i] = true;
		t->ns[t->n++] = stamp_ns - begin_ns;
	}
	pthread_mutex_unlock(&b->lock);
}

static bool all_there(struct alert_bench *b)
{
	bool all = true;

	pthread_mutex_lock(&b->lock);
	for (unsigned int i = 0; i < LOADS; i++) {
		for (unsigned int q = 0; q < QUERIES; q++)
			all = all && b->loads[i].times[q].n == b->sent[i];
	}
	pthread_mutex_unlock(&b->lock);
	return all;
}

static int send_probe(struct alert_bench *b, unsigned int load)
{
	const uint32_t i = b->n_probes;

	for (unsigned int k = 0; k < 2; k++)
		set_to(b->probe_frames[k], PROBE_DST + i, (uint16_t)(1000 + k));
	pthread_mutex_lock(&b->lock);
	b->load_of[i] = (uint8_t)load;
	b->sent[load]++;
	b->n_probes++;
	pthread_mutex_unlock(&b->lock);
	return pl_port_send(b->probe_port, &b->probe, NULL) == 2 ? 0 : -EIO;
}

/* Probes for the budget, at times that have nothing to do with anybody's clock; then the load goes
 * on until the last windows are closed. */
static int probe_for(struct alert_bench *b, uint64_t budget_ns, unsigned int load)
{
	const uint64_t start = pl_clock_mono_ns();
	uint32_t pause = 12345, n = 0;
	uint64_t until;
	int r = 0;

	while (r == 0 && b->n_probes < PROBES_MAX &&
		(n < PROBES_MIN || pl_clock_mono_ns() - start < budget_ns)) {
		r = send_probe(b, load);
		n++;
		pl_bench_doze(&pause);
	}
	until = pl_clock_mono_ns() + PATIENCE_NS;
	while (r == 0 && !all_there(b) && pl_clock_mono_ns() < until)
		nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
	return r;
}

static int alternate(struct pl_bench_ctx *ctx, struct alert_bench *b, double most)
{
	int r = 0;

	for (unsigned int i = 0; r == 0 && i < pl_bench_pairs(ctx) * LOADS; i++) {
		const unsigned int load = i % LOADS;

		r = pl_bench_paced_begin(&b->paced, most * shares[load] / 100);
		if (r == 0) {
			nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
			r = probe_for(b, pl_bench_run_ns(ctx), load);
			pl_bench_paced_end(&b->paced);
		}
		if (r == 0)
			r = settle(b);
	}
	return r;
}

/* An alert may still come meanwhile. */
static int print(struct pl_bench_ctx *ctx, struct alert_bench *b, double most)
{
	int r = 0;

	pthread_mutex_lock(&b->lock);
	for (unsigned int i = 0; i < LOADS; i++) {
		for (unsigned int q = 0; r == 0 && q < QUERIES; q++) {
			struct pl_bench_times *t = &b->loads[i].times[q];

			t->lost = b->sent[i] - t->n;
			t->load_rate = most * shares[i] / 100;
			t->load_of = "packets";
			r = pl_bench_times(ctx, t);
		}
	}
	pthread_mutex_unlock(&b->lock);
	return r;
}

/* ---- around it ---- */

static int prepare(struct alert_bench *b, const char *prefix)
{
	static const char *const queries[QUERIES] = { "first", "window" };

	for (unsigned int i = 0; i < LOADS; i++) {
		struct probes *p = &b->loads[i];

		for (unsigned int q = 0; q < QUERIES; q++) {
			snprintf(p->names[q], sizeof(p->names[q]), "alert/%s%s-%u%%", prefix,
				queries[q], shares[i]);
			p->times[q].name = p->names[q];
			p->times[q].ns = calloc(PROBES_MAX, sizeof(uint64_t));
			if (p->times[q].ns == NULL)
				return -ENOMEM;
		}
	}
	return make_frames(b);
}

static int open_ports(struct alert_bench *b, struct pl_diag *diag)
{
	static const char uri[] = "packet:" PL_WIRE_SENDER_NAME;
	int r = pl_wire_enter(&b->wire, PL_WIRE_SENDER);

	if (r == 0)
		r = pl_port_open(&b->load_port, uri, PL_PORT_SEND, NULL, diag);
	if (r == 0)
		r = pl_port_open(&b->probe_port, uri, PL_PORT_SEND, NULL, diag);
	(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	return r;
}

static int measure(struct pl_bench_ctx *ctx, struct alert_bench *b, struct pl_diag *diag)
{
	double most = 0;
	int r = await_first(b);

	if (r == 0)
		r = flood(b, &most);
	if (r == 0)
		r = alternate(ctx, b, most);
	if (r == -ENODATA)
		pl_diag_set(diag, "no packet of the load comes to the queries");
	return r == 0 ? print(ctx, b, most) : r;
}

static struct alert_bench *new_bench(void)
{
	struct alert_bench *b = calloc(1, sizeof(*b));

	if (b == NULL)
		return NULL;
	b->paced.send = send_burst;
	b->paced.arg = b;
	pthread_mutex_init(&b->lock, NULL);
	return b;
}

static void free_bench(struct alert_bench *b)
{
	for (unsigned int i = 0; i < LOADS; i++) {
		for (unsigned int q = 0; q < QUERIES; q++)
			free(b->loads[i].times[q].ns);
	}
	pthread_mutex_destroy(&b->lock);
	free(b);
}

/* In the receiver's namespace. topic: NULL without Kafka. */
static int run_chain(
	struct pl_bench_ctx *ctx, struct alert_bench *b, const char *topic, struct pl_diag *diag)
{
	uint16_t webhook = 0;
	int r = pl_rtnl_up("lo", true);

	if (r == 0)
		r = pl_alert_receiver_open(&b->receiver, &webhook, take, b);
	if (r == 0)
		r = pl_alert_chain_open(&b->chain, PL_WIRE_RECEIVER_NAME, topic, webhook, diag);
	if (r == 0)
		r = open_ports(b, diag);
	if (r == 0)
		r = measure(ctx, b, diag);
	pl_port_close(b->load_port);
	pl_port_close(b->probe_port);
	pl_alert_chain_close(&b->chain);
	pl_alert_receiver_close(b->receiver);
	return r;
}

static bool any_wanted(const struct pl_bench_ctx *ctx, const struct alert_bench *b)
{
	bool wanted = false;

	for (unsigned int i = 0; i < LOADS; i++) {
		for (unsigned int q = 0; q < QUERIES; q++)
			wanted = wanted || pl_bench_wanted(ctx, b->loads[i].names[q]);
	}
	return wanted;
}

/* Of too few times something was said already. */
static int said(int r, const struct pl_diag *diag)
{
	if (r < 0 && (r != -ENODATA || diag->text[0] != '\0'))
		pl_complain(
			"benchmark alert: %s", diag->text[0] != '\0' ? diag->text : strerror(-r));
	return r;
}

static int run_direct(struct pl_bench_ctx *ctx)
{
	struct alert_bench *b = new_bench();
	struct pl_diag diag = { .text = "" };
	int r = b == NULL ? -ENOMEM : prepare(b, "");

	if (r == 0 && any_wanted(ctx, b)) {
		r = pl_wire_open(&b->wire, 1, &diag);
		if (r == 0) {
			(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
			r = run_chain(ctx, b, NULL, &diag);
			(void)pl_wire_enter(&b->wire, PL_WIRE_HOME);
			pl_wire_close(&b->wire);
		}
	}
	if (b != NULL)
		free_bench(b);
	return said(r, &diag);
}

#if PL_HAVE_KAFKA
#define PARTITIONS 2

/* Given brokers are where the program was started, and so must be what talks to them. */
static int run_with_brokers(struct pl_bench_ctx *ctx, struct alert_bench *b, struct pl_diag *diag)
{
	struct pl_cluster cluster;
	char topic[512];
	int r = pl_bench_broker(ctx) != NULL ? pl_wire_open_at_home(&b->wire, diag)
					     : pl_wire_open(&b->wire, 1, diag);

	if (r < 0)
		return r;
	(void)pl_wire_enter(&b->wire, PL_WIRE_RECEIVER);
	r = pl_rtnl_up("lo", true);
	/* The C library finds no 127.0.0.1 where there is an address of IPv6 and none of IPv4. */
	if (r == 0 && pl_bench_broker(ctx) != NULL)
		r = pl_wire_address(PL_WIRE_RECEIVER_NAME, PL_WIRE_RECEIVER_ADDRESS);
	if (r == 0)
		r = pl_cluster_open(&cluster, ctx, "alert", PARTITIONS);
	if (r == 0) {
		snprintf(topic, sizeof(topic), "kafka://%s/%s", cluster.brokers, cluster.topic);
		r = run_chain(ctx, b, topic, diag);
		pl_cluster_close(&cluster);
	}
	(void)pl_wire_enter(&b->wire, PL_WIRE_HOME);
	pl_wire_close(&b->wire);
	return r;
}

static int run_kafka(struct pl_bench_ctx *ctx)
{
	struct alert_bench *b = new_bench();
	struct pl_diag diag = { .text = "" };
	int r = b == NULL ? -ENOMEM : prepare(b, "kafka-");

	if (r == 0 && any_wanted(ctx, b))
		r = run_with_brokers(ctx, b, &diag);
	if (b != NULL)
		free_bench(b);
	return said(r, &diag);
}
#endif

static int run(struct pl_bench_ctx *ctx)
{
	int r = 0;

	if (pl_cpu_count() < 2) {
		pl_complain("benchmark alert: needs two processors");
		return 0;
	}
	r = run_direct(ctx);
#if PL_HAVE_KAFKA
	if (r == 0)
		r = run_kafka(ctx);
#endif
	return r;
}

const struct pl_bench pl_bench_alert = {
	.name = "alert",
	.summary =
		"from a packet on the wire to its alert at a webhook, at half and 80 % load, also through Kafka",
	.run = run,
};
