/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How long it takes from a report's arrival until its event can be read where an exporter put it: a
 * pipeline as the daemon has it, a UDP source on the loopback, a JSON lines file. A probe is the
 * first report of a flow, whose flow_start is the event. The clock starts before the probe is
 * handed to the kernel and stops when its line was read from the file, whose reader the kernel
 * wakes (inotify).
 *
 *   idle   probes alone
 *   load   the same while another socket sends reports of 1024 flows at 80 % of what the worker was
 *          seen to take, which is measured before: a flood, counted at the worker
 *
 * The worker has the first processor, whoever sends the load the second; all have the highest
 * ordinary priority. Idle and load alternate.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/log.h"
#include "gen/gen.h"
#include "netio/port.h"
#include "pipeline/pipeline.h"
#include "tests/bench/bench.h"
#include "tests/bench/cpu.h"
#include "tests/bench/paced.h"
#include "tests/bench/priority.h"

enum { LOAD_FLOWS = 1024, PROBES_MAX = 200000, DATAGRAM_BYTES = 512 };

#define FLOOD_NS   UINT64_C(700000000)
#define GIVE_UP_MS 2000
#define SHARE      0.8

/* Of the report's bytes: node, number, and source address of its flow. */
#define NODE_AT    4
#define SEQ_AT     8
#define SRC_AT     (16 + 14 + 12)

struct latency_bench {
	char dir[64], path[96];
	struct pl_pipeline *pipeline;
	struct pl_port *load_port, *probe_port;
	uint8_t report[DATAGRAM_BYTES];
	uint32_t report_bytes;
	uint8_t (*burst)[DATAGRAM_BYTES];
	struct pl_batch *load; /* PL_BATCH_MAX of them */
	struct pl_batch probe;
	uint8_t probe_bytes[DATAGRAM_BYTES];
	uint32_t seq, probes;
	int file, watch;
	char text[65536];
	size_t have;
	struct pl_bench_paced paced; /* the load */
	struct pl_bench_times idle, loaded;
};

static void put32(uint8_t *p, uint32_t v)
{
	v = __builtin_bswap32(v);
	memcpy(p, &v, 4);
}

/* ---- the load ---- */

static void send_burst(void *arg, uint32_t n)
{
	struct latency_bench *b = arg;

	for (uint32_t i = 0; i < n; i++) {
		put32(b->burst[i] + SEQ_AT, b->seq++);
		put32(b->burst[i] + SRC_AT, 0x0a000000 | (b->seq % LOAD_FLOWS));
	}
	b->load->n = n;
	/* What the kernel refuses is missing from the load: the rate is the one aimed at. */
	(void)pl_port_send(b->load_port, b->load, NULL);
}

/* Reports per second that the worker takes from a flood. */
static int flood(struct latency_bench *b, double *ret_rate)
{
	struct pl_pipeline_stats first, last;
	uint64_t start, now;
	int r = pl_bench_paced_begin(&b->paced, 0);

	if (r < 0)
		return r;
	usleep(100000);
	r = pl_pipeline_stats(b->pipeline, &first);
	start = pl_clock_mono_ns();
	usleep((useconds_t)(FLOOD_NS / 1000));
	if (r == 0)
		r = pl_pipeline_stats(b->pipeline, &last);
	now = pl_clock_mono_ns();
	pl_bench_paced_end(&b->paced);
	if (r == 0)
		*ret_rate = (double)(last.totals.packets - first.totals.packets) * 1e9 /
			    (double)(now - start);
	usleep(200000);
	return r;
}

/* ---- the probes ---- */

/* Reads on in the file, waiting for it to grow; true when a line with the needle was read. */
static bool seen(struct latency_bench *b, const char *needle, uint64_t limit_ns)
{
	for (;;) {
		struct pollfd p = { .fd = b->watch, .events = POLLIN };
		char events[4096], *end;
		ssize_t n = read(b->file, b->text + b->have, sizeof(b->text) - 1 - b->have);

		if (n > 0) {
			b->have += (size_t)n;
			b->text[b->have] = '\0';
			end = strrchr(b->text, '\n');
			if (end != NULL) {
				bool found;

				*end = '\0';
				found = strstr(b->text, needle) != NULL;
				b->have -= (size_t)(end + 1 - b->text);
				memmove(b->text, end + 1, b->have);
				if (found)
					return true;
			} else if (b->have == sizeof(b->text) - 1) {
				b->have = 0;
			}
			continue;
		}
		if (pl_clock_mono_ns() >= limit_ns)
			return false;
		if (poll(&p, 1, GIVE_UP_MS) > 0)
			(void)!read(b->watch, events, sizeof(events));
	}
}

static int send_probe(struct latency_bench *b, uint64_t *ret_ns)
{
	const uint32_t src = 0x0a400000 | (b->probes & 0x3fffff);
	uint64_t start;
	char needle[48];
	bool found;

	snprintf(needle, sizeof(needle), "\"src\":\"10.%u.%u.%u\"", src >> 16 & 0xff,
		src >> 8 & 0xff, src & 0xff);
	put32(b->probe_bytes + SRC_AT, src);
	put32(b->probe_bytes + SEQ_AT, b->probes++);
	start = pl_clock_mono_ns();
	if (pl_port_send(b->probe_port, &b->probe, NULL) != 1)
		return -EIO;
	found = seen(b, needle, start + GIVE_UP_MS * UINT64_C(1000000));
	*ret_ns = pl_clock_mono_ns() - start;
	return found;
}

/* Probes for the budget, at times that have nothing to do with anybody's clock. */
static int probe_for(struct latency_bench *b, uint64_t budget_ns, struct pl_bench_times *times)
{
	const uint64_t start = pl_clock_mono_ns();
	uint32_t pause = 12345;

	while (pl_clock_mono_ns() - start < budget_ns && times->n < PROBES_MAX) {
		int r = send_probe(b, &times->ns[times->n]);

		if (r < 0)
			return r;
		times->n += (uint32_t)r;
		times->lost += r == 0;
		pl_bench_doze(&pause);
	}
	return 0;
}

/* ---- around it ---- */

static int make_report(struct latency_bench *b)
{
	struct pl_gen_cfg cfg = { .topology = "chain:3",
		.flows = 1,
		.seed = 1,
		.bitmap = 0xfc00,
		.report = PL_GEN_REPORT_V10,
		.version = PL_GEN_INT_V10,
		.mode = PL_GEN_MD,
		.carrier = PL_GEN_UDP,
		.sink = PL_GEN_SINK_STACK,
		.proto = PL_GEN_PROTO_UDP,
		.queue = { PL_DIST_CONST, 5, 0 },
		.udp = true };
	struct pl_gen *gen;
	int r = pl_gen_new(&gen, &cfg, NULL);

	if (r < 0)
		return r;
	r = pl_gen_next(gen, UINT64_MAX, b->load);
	if (r > 0 && b->load->pkts[0].len <= DATAGRAM_BYTES) {
		b->report_bytes = b->load->pkts[0].len;
		memcpy(b->report, b->load->pkts[0].data, b->report_bytes);
	}
	pl_gen_free(gen);
	return r < 0 ? r : b->report_bytes == 0 ? -EMSGSIZE : 0;
}

static struct pl_packet packet(const struct latency_bench *b, const uint8_t *bytes)
{
	return (struct pl_packet){ .data = bytes,
		.len = b->report_bytes,
		.wire_len = b->report_bytes,
		.link = PL_LINK_UDP };
}

static void make_batches(struct latency_bench *b)
{
	for (uint32_t i = 0; i < PL_BATCH_MAX; i++) {
		memcpy(b->burst[i], b->report, b->report_bytes);
		b->load->pkts[i] = packet(b, b->burst[i]);
	}
	memcpy(b->probe_bytes, b->report, b->report_bytes);
	put32(b->probe_bytes + NODE_AT, 0x70726f62);
	b->probe.n = 1;
	b->probe.pkts[0] = packet(b, b->probe_bytes);
}

static int open_pipeline(struct latency_bench *b, struct pl_diag *diag)
{
	struct pl_config config;
	char *text;
	int r;

	if (asprintf(&text,
		    "sources:\n  - uri: udp://127.0.0.1:0?rcvbuf=16MiB\npin: true\n"
		    "outputs:\n  - name: file\n    path: %s\n    paths: false\n"
		    "detect:\n  where: user\n  flow_start: true\n  report_loss: false\n"
		    "  max_flows: 1048576\nweb:\n  listen: off\n",
		    b->path) < 0)
		return -ENOMEM;
	r = pl_config_parse(&config, "bench", text, strlen(text), diag);
	free(text);
	if (r == 0)
		r = pl_pipeline_new(&b->pipeline, &config, NULL, diag);
	return r < 0 ? r : pl_pipeline_start(b->pipeline, diag);
}

static int open_ports(struct latency_bench *b, struct pl_diag *diag)
{
	char uri[64];
	uint16_t port = 0;
	int r;

	(void)pl_pipeline_listener(b->pipeline, 0, &port);
	snprintf(uri, sizeof(uri), "udp://127.0.0.1:%u?gso=on", port);
	r = pl_port_open(&b->load_port, uri, PL_PORT_SEND, NULL, diag);
	snprintf(uri, sizeof(uri), "udp://127.0.0.1:%u", port);
	if (r == 0)
		r = pl_port_open(&b->probe_port, uri, PL_PORT_SEND, NULL, diag);
	if (r < 0)
		return r;
	b->file = open(b->path, O_RDONLY | O_CLOEXEC);
	b->watch = inotify_init1(IN_CLOEXEC);
	if (b->file < 0 || b->watch < 0 || inotify_add_watch(b->watch, b->path, IN_MODIFY) < 0)
		return -errno;
	return 0;
}

static int prepare(struct latency_bench *b, struct pl_diag *diag)
{
	int r;

	b->file = b->watch = -1;
	b->paced.send = send_burst;
	b->paced.arg = b;
	snprintf(b->dir, sizeof(b->dir), "/tmp/pathline-bench-XXXXXX");
	b->burst = calloc(PL_BATCH_MAX, sizeof(b->burst[0]));
	b->load = calloc(1, sizeof(*b->load));
	b->idle = (struct pl_bench_times){ .name = "latency/idle",
		.ns = calloc(PROBES_MAX, sizeof(uint64_t)) };
	b->loaded = (struct pl_bench_times){ .name = "latency/load-80%",
		.ns = calloc(PROBES_MAX, sizeof(uint64_t)) };
	if (b->burst == NULL || b->load == NULL || b->idle.ns == NULL || b->loaded.ns == NULL)
		return -ENOMEM;
	if (mkdtemp(b->dir) == NULL) {
		b->dir[0] = '\0';
		return -errno;
	}
	snprintf(b->path, sizeof(b->path), "%s/events.jsonl", b->dir);
	r = make_report(b);
	if (r < 0)
		return r;
	make_batches(b);
	r = open_pipeline(b, diag);
	return r < 0 ? r : open_ports(b, diag);
}

static void cleanup(struct latency_bench *b)
{
	pl_port_close(b->load_port);
	pl_port_close(b->probe_port);
	if (b->pipeline != NULL)
		(void)pl_pipeline_stop(b->pipeline, UINT64_C(1000000000));
	pl_pipeline_free(b->pipeline);
	if (b->file >= 0)
		close(b->file);
	if (b->watch >= 0)
		close(b->watch);
	if (b->dir[0] != '\0') {
		(void)unlink(b->path);
		(void)rmdir(b->dir);
	}
	free(b->burst);
	free(b->load);
	free(b->idle.ns);
	free(b->loaded.ns);
	free(b);
}

/* Idle and load in turn. */
static int alternate(struct pl_bench_ctx *ctx, struct latency_bench *b, double rate)
{
	int r = 0;

	for (unsigned int i = 0; i < pl_bench_pairs(ctx) && r == 0; i++) {
		r = probe_for(b, pl_bench_run_ns(ctx), &b->idle);
		if (r == 0)
			r = pl_bench_paced_begin(&b->paced, rate);
		if (r == 0) {
			usleep(20000);
			r = probe_for(b, pl_bench_run_ns(ctx), &b->loaded);
			pl_bench_paced_end(&b->paced);
		}
	}
	return r;
}

static int measure(struct pl_bench_ctx *ctx, struct latency_bench *b)
{
	double most = 0;
	int r = flood(b, &most);

	if (r == 0)
		r = alternate(ctx, b, SHARE * most);
	b->loaded.load_rate = SHARE * most;
	b->loaded.load_of = "reports";
	if (r == 0)
		r = pl_bench_times(ctx, &b->idle);
	if (r == 0)
		r = pl_bench_times(ctx, &b->loaded);
	return r;
}

static void not_said(void *arg, enum pl_log_level level, const char *subject, const char *text)
{
	(void)arg;
	(void)level;
	(void)subject;
	(void)text;
}

static int run(struct pl_bench_ctx *ctx)
{
	struct pl_diag diag = { .text = "" };
	struct latency_bench *b = calloc(1, sizeof(*b));
	struct pl_bench_priority before;
	int r = b == NULL ? -ENOMEM : 0;

	if (r == 0 && pl_cpu_count() < 2) {
		pl_complain("benchmark latency: needs two processors");
		free(b);
		return 0;
	}
	/* The pipeline's own notices are no results. */
	pl_log_set_sink(not_said, NULL);
	pl_bench_raise(&before);
	if (r == 0)
		r = prepare(b, &diag);
	if (r == 0)
		r = measure(ctx, b);
	if (b != NULL)
		cleanup(b);
	pl_bench_restore(&before);
	pl_log_set_sink(NULL, NULL);
	if (r < 0)
		pl_complain(
			"benchmark latency: %s", diag.text[0] != '\0' ? diag.text : strerror(-r));
	return r;
}

const struct pl_bench pl_bench_latency = {
	.name = "latency",
	.summary = "from a report's arrival to its event in a JSON lines file, idle and under load",
	.run = run,
};
