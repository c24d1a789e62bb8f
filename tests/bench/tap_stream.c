/* SPDX-License-Identifier: BSD-2-Clause */
/* Measures a TCP stream with a tap in the kernel and without. */
#include "tests/bench/tap_stream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/complain.h"
#include "netio/xdp.h"
#include "tap/kernel.h"
#include "tests/bench/cpu.h"

#include "bpf/bench.skel.h" /* knows the types above only by name */

#define CHUNK      65536
#define WARM_UP_NS UINT64_C(50000000)
#define WAIT_MS    2000
#define EMPTY_NS   1000000 /* the tap's ring is looked at so often */

struct stream_case {
	const char *name;
	const char *tap;  /* URI */
	const char *bare; /* what is compared with */
	bool pass;        /* an XDP program stands in the place of the tap */
};

struct stream {
	const struct pl_wire *wire;
	const struct stream_case *c;
	struct pl_bpf_bench *skel;
	struct pl_tap_kernel *tap;
	int in, out; /* the connection's two ends */
	atomic_bool stop;
	uint64_t records;
};

/* ---- threads ---- */

static void *send_bytes(void *arg)
{
	static const uint8_t bytes[CHUNK];
	struct stream *s = arg;

	(void)pl_cpu_pin(1);
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed) &&
		send(s->out, bytes, sizeof(bytes), MSG_NOSIGNAL) > 0)
		;
	return NULL;
}

static void *empty_ring(void *arg)
{
	struct pl_pkt96 records[PL_TAP_KERNEL_BATCH];
	struct pl_diag diag = { .text = "" };
	struct stream *s = arg;

	(void)pl_cpu_pin(0);
	while (!atomic_load_explicit(&s->stop, memory_order_relaxed)) {
		int n;

		while ((n = pl_tap_kernel_recv(s->tap, records, &diag)) > 0)
			s->records += (uint64_t)n;
		nanosleep(&(struct timespec){ .tv_nsec = EMPTY_NS }, NULL);
	}
	return NULL;
}

/* ---- the connection ---- */

static int listen_at(struct sockaddr_in *address)
{
	socklen_t bytes = sizeof(*address);
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET };
	address->sin_addr.s_addr = inet_addr(PL_WIRE_RECEIVER_ADDRESS);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)address, sizeof(*address)) < 0 || listen(fd, 1) < 0 ||
		getsockname(fd, (struct sockaddr *)address, &bytes) < 0) {
		const int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static int connect_ends(struct stream *s)
{
	struct sockaddr_in address;
	const int fd = listen_at(&address);
	int r = fd < 0 ? fd : pl_wire_enter(s->wire, PL_WIRE_SENDER);

	if (r == 0) {
		s->out = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (s->out < 0 ||
			connect(s->out, (const struct sockaddr *)&address, sizeof(address)) < 0)
			r = -errno;
	}
	(void)pl_wire_enter(s->wire, PL_WIRE_RECEIVER);
	if (r == 0) {
		s->in = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
		r = s->in < 0 ? -errno : 0;
	}
	if (fd >= 0)
		close(fd);
	return r;
}

static int64_t receive(const struct stream *s, uint8_t bytes[CHUNK])
{
	struct pollfd p = { .fd = s->in, .events = POLLIN };

	if (poll(&p, 1, WAIT_MS) == 0)
		return -ETIMEDOUT;
	return recv(s->in, bytes, CHUNK, 0);
}

/* Bytes behind a warm-up. */
static int count_bytes(const struct stream *s, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const uint64_t start = pl_clock_mono_ns();
	uint64_t now = start, from = 0;
	uint8_t *bytes = malloc(CHUNK);
	int r = bytes == NULL ? -ENOMEM : 0;

	while (r == 0 && (from == 0 || now - from < budget_ns)) {
		const int64_t n = receive(s, bytes);

		now = pl_clock_mono_ns();
		if (n <= 0)
			r = n < 0 ? -EIO : -EPIPE;
		else if (from != 0)
			ret->items += (uint64_t)n;
		else if (now - start >= WARM_UP_NS)
			from = now;
	}
	ret->ns = now - from;
	free(bytes);
	return r;
}

static int stream(struct stream *s, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	pthread_t sender, reader;
	bool sends = false, reads = false;
	cpu_set_t allowed;
	int r;

	sched_getaffinity(0, sizeof(allowed), &allowed);
	s->in = s->out = -1;
	s->records = 0;
	atomic_store(&s->stop, false);
	r = connect_ends(s);
	if (r == 0)
		sends = pthread_create(&sender, NULL, send_bytes, s) == 0;
	if (sends && s->tap != NULL)
		reads = pthread_create(&reader, NULL, empty_ring, s) == 0;
	(void)pl_cpu_pin(0);
	if (r == 0)
		r = sends && (reads || s->tap == NULL) ? count_bytes(s, budget_ns, ret) : -EAGAIN;
	atomic_store(&s->stop, true);
	if (s->in >= 0)
		(void)shutdown(s->in, SHUT_RDWR);
	if (s->out >= 0)
		(void)shutdown(s->out, SHUT_RDWR);
	if (sends)
		pthread_join(sender, NULL);
	if (reads)
		pthread_join(reader, NULL);
	if (s->in >= 0)
		close(s->in);
	if (s->out >= 0)
		close(s->out);
	(void)sched_setaffinity(0, sizeof(allowed), &allowed);
	return r;
}

int pl_tap_stream_bytes(const struct pl_wire *wire, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct stream s = { .wire = wire };

	return stream(&s, budget_ns, ret);
}

/* ---- cases ---- */

static int tapped(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	const struct pl_tap_rules rules = { 0 };
	struct stream *s = arg;
	struct pl_diag diag = { .text = "" };
	int r = pl_tap_kernel_open(
		&s->tap, s->c->tap, &(struct pl_tap_kernel_options){ .rules = &rules }, &diag);

	if (r < 0)
		pl_complain("benchmark %s: %s", s->c->name, diag.text);
	else
		r = stream(s, budget_ns, ret);
	pl_tap_kernel_close(s->tap);
	s->tap = NULL;
	if (r == 0 && s->records == 0) {
		pl_complain("benchmark %s: the tap made no record", s->c->name);
		r = -ENODATA;
	}
	return r;
}

static int untapped(void *arg, uint64_t budget_ns, struct pl_bench_sample *ret)
{
	struct stream *s = arg;
	struct pl_diag diag = { .text = "" };
	struct pl_xdp *xdp = NULL;
	int r = 0;

	if (s->c->pass)
		r = pl_xdp_attach(&xdp, PL_WIRE_RECEIVER_NAME,
			bpf_program__fd(s->skel->progs.pl_bench_pass_only), PL_XDP_NATIVE, NULL,
			&diag);
	if (r < 0)
		pl_complain("benchmark %s: %s", s->c->name, diag.text);
	else
		r = stream(s, budget_ns, ret);
	pl_xdp_detach(xdp);
	return r;
}

static const struct stream_case cases[] = {
	{ "tap/stream-tc", "tc:" PL_WIRE_RECEIVER_NAME "?dir=both", "the stream without a tap",
		false },
	{ "tap/stream-xdp", "xdp:" PL_WIRE_RECEIVER_NAME "?mode=native",
		"the stream with a program that lets it pass", true },
};

int pl_tap_stream_addresses(const struct pl_wire *wire)
{
	int r = pl_wire_enter(wire, PL_WIRE_SENDER);

	if (r == 0)
		r = pl_wire_address(PL_WIRE_SENDER_NAME, PL_WIRE_SENDER_ADDRESS);
	if (r == 0)
		r = pl_wire_enter(wire, PL_WIRE_RECEIVER);
	if (r == 0)
		r = pl_wire_address(PL_WIRE_RECEIVER_NAME, PL_WIRE_RECEIVER_ADDRESS);
	if (r < 0)
		pl_complain("addresses of the wire of benchmarks: %s", strerror(-r));
	return r;
}

int pl_tap_stream_run(struct pl_bench_ctx *ctx, const struct pl_wire *wire)
{
	struct stream s = { .wire = wire };
	int r = pl_tap_stream_addresses(wire);

	if (r < 0)
		return r;
	s.skel = pl_bpf_bench__open_and_load();
	if (s.skel == NULL) {
		pl_complain("benchmark tap: the programs to compare with do not load");
		return -EPERM;
	}
	for (size_t i = 0; r == 0 && i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct pl_bench_case c = { .name = cases[i].name,
			.ceiling_name = cases[i].bare,
			.subject = tapped,
			.ceiling = untapped,
			.arg = &s };

		s.c = &cases[i];
		r = pl_bench_compare(ctx, &c);
	}
	pl_bpf_bench__destroy(s.skel);
	return r;
}
