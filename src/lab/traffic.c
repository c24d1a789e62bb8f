/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends and receives traffic between hosts of a lab. */
#include "lab/traffic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/num.h"

/* First port tried by a receiver; further traffic to the host at the same time takes the next
 * ones. */
#define PORT         5201
#define PORTS        1024
#define QUESTION     40
#define REQUEST      64
#define SIZE_MAX_    65000
#define SERVERS_MAX  (PL_LAB_SENDERS_MAX + 1)
#define ANSWER_NS    UINT64_C(2000000000)
#define LINGER_NS    UINT64_C(1000000000) /* without datagrams, once all is sent */
#define SOCKET_BYTES (16 << 20)
#define READY_MS     10000
/* TCP: a peer that does not connect or answer for this long is given up. */
#define SILENCE_NS   UINT64_C(10000000000)
/* Datagrams that are late by up to this much are sent late; older ones are skipped. */
#define LATE_NS      UINT64_C(100000000)

/* A sender or receiver, in memory shared with its process. */
struct end {
	const struct pl_lab_traffic *t;
	const struct pl_lab_found *f; /* NULL: enters `namespace` */
	int namespace;
	atomic_bool *stop;       /* true: all is sent */
	const atomic_bool *halt; /* true: senders are to end */
	atomic_bool ready, done;
	atomic_int error; /* negative errno */
	unsigned int node;
	uint16_t port; /* the receiver's, valid once it is ready */
	struct sockaddr_in to;
	uint64_t begin_ns;
	struct pl_lab_traffic_account account;
};

struct run {
	atomic_bool stop, halt;
	struct end ends[PL_LAB_SENDERS_MAX + 1]; /* the receiver is behind the senders */
};

static bool over_tcp(const struct end *e)
{
	return e->t->kind == PL_LAB_BULK || e->t->kind == PL_LAB_REQUEST;
}

static int fail(struct end *e)
{
	atomic_store(&e->error, -errno);
	atomic_store(&e->done, true);
	return 1;
}

static struct run *halted_by_signal;

static void halt(int signal)
{
	(void)signal;
	atomic_store(&halted_by_signal->halt, true);
}

static bool is_over(const struct end *e, uint64_t now_ns)
{
	return now_ns >= e->begin_ns + e->t->duration_ns || atomic_load(e->halt);
}

/* Limits the time that connect, send and recv block. */
static void limit_waits(int fd, uint64_t ns)
{
	const struct timeval tv = { .tv_sec = (time_t)(ns / 1000000000),
		.tv_usec = (suseconds_t)(ns % 1000000000 / 1000) };

	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &tv, sizeof(tv));
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &tv, sizeof(tv));
}

static void sleep_until(uint64_t ns)
{
	const struct timespec ts = pl_clock_timespec(ns);

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
		continue;
}

/* ---- receiving ---- */

static void count(struct end *e, ssize_t bytes)
{
	e->account.came++;
	e->account.came_bytes += (uint64_t)bytes;
}

/* Counts datagrams, and answers questions. */
static int receive_udp(struct end *e, int fd)
{
	static char data[SIZE_MAX_];
	uint64_t last = pl_clock_mono_ns();
	struct sockaddr_in from;
	int bytes = SOCKET_BYTES;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	atomic_store(&e->ready, true);
	while (!atomic_load(e->stop) || pl_clock_mono_ns() - last < LINGER_NS) {
		struct pollfd p = { .fd = fd, .events = POLLIN };
		socklen_t len = sizeof(from);
		ssize_t n;

		if (poll(&p, 1, 20) <= 0)
			continue;
		n = recvfrom(fd, data, sizeof(data), MSG_DONTWAIT, (struct sockaddr *)&from, &len);
		if (n < 0)
			continue;
		last = pl_clock_mono_ns();
		count(e, n);
		if (e->t->kind != PL_LAB_DNS)
			continue;
		if (sendto(fd, data, e->t->size, 0, (struct sockaddr *)&from, len) < 0) {
			e->account.failed++;
		} else {
			e->account.sent++;
			e->account.sent_bytes += e->t->size;
		}
	}
	return 0;
}

/* Reads from a connection and answers a request. Returns false when it is to be closed. */
static bool serve(struct end *e, int fd)
{
	static char data[SIZE_MAX_];
	size_t want = e->t->kind == PL_LAB_REQUEST ? REQUEST : sizeof(data);
	ssize_t n = recv(fd, data, want, e->t->kind == PL_LAB_REQUEST ? MSG_WAITALL : 0);

	if (n <= 0)
		return n < 0 && errno == EINTR;
	count(e, n);
	if (e->t->kind != PL_LAB_REQUEST)
		return true;
	n = send(fd, data, e->t->size, MSG_NOSIGNAL);
	if (n != (ssize_t)e->t->size)
		return false;
	e->account.sent++;
	e->account.sent_bytes += (uint64_t)n;
	return true;
}

/* Serves connections until all is sent and all are closed, or silent for SILENCE_NS. */
static int receive_tcp(struct end *e, int fd)
{
	struct pollfd p[SERVERS_MAX] = { { .fd = fd, .events = POLLIN } };
	uint64_t last = pl_clock_mono_ns();
	unsigned int n = 1;

	/* Accepted sockets inherit it. */
	limit_waits(fd, SILENCE_NS);
	atomic_store(&e->ready, true);
	while (!atomic_load(e->stop) || (n > 1 && pl_clock_mono_ns() - last < SILENCE_NS)) {
		if (poll(p, n, 20) <= 0)
			continue;
		last = pl_clock_mono_ns();
		for (unsigned int i = n; i-- > 1;) {
			if (p[i].revents == 0 || serve(e, p[i].fd))
				continue;
			close(p[i].fd);
			p[i] = p[--n];
		}
		if ((p[0].revents & POLLIN) != 0 && n < SERVERS_MAX) {
			int c = accept4(fd, NULL, NULL, SOCK_CLOEXEC);

			if (c >= 0)
				p[n++] = (struct pollfd){ .fd = c, .events = POLLIN };
		}
	}
	return 0;
}

/* Returns a bound socket, or negative errno. No port is shared: each traffic has its own. */
static int open_port(const struct end *e, uint16_t port)
{
	const struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = htons(port) };
	int fd = socket(AF_INET, (over_tcp(e) ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0);
	int one = 1, r;

	if (fd < 0)
		return -errno;
	if (over_tcp(e))
		(void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(fd, (const struct sockaddr *)&any, sizeof(any)) == 0 &&
		(!over_tcp(e) || listen(fd, PL_LAB_SENDERS_MAX) == 0))
		return fd;
	r = -errno;
	close(fd);
	return r;
}

static int receive(void *arg)
{
	struct end *e = arg;
	int fd = -EADDRINUSE, r;

	for (unsigned int i = 0; i < PORTS && fd == -EADDRINUSE; i++) {
		e->port = (uint16_t)(PORT + i);
		fd = open_port(e, e->port);
	}
	if (fd < 0) {
		errno = -fd;
		return fail(e);
	}
	r = over_tcp(e) ? receive_tcp(e, fd) : receive_udp(e, fd);
	atomic_store(&e->done, true);
	return r;
}

/* ---- sending ---- */

static void send_one(struct end *e, int fd, const char *data, uint32_t size)
{
	if (send(fd, data, size, 0) == (ssize_t)size) {
		e->account.sent++;
		e->account.sent_bytes += size;
	} else {
		e->account.failed++;
	}
}

/* Reads the answers that have arrived; each carries its question's time. */
static void take_answers(struct end *e, int fd)
{
	static char data[SIZE_MAX_];
	uint64_t asked, took;
	ssize_t n;

	while ((n = recv(fd, data, sizeof(data), MSG_DONTWAIT)) >= (ssize_t)sizeof(asked)) {
		memcpy(&asked, data, sizeof(asked));
		took = pl_clock_mono_ns() - asked;
		if (took > ANSWER_NS)
			continue;
		count(e, n);
		e->account.time_sum_ns += took;
		if (took > e->account.time_max_ns)
			e->account.time_max_ns = took;
	}
}

/* Returns when the datagram is due: `at`, or the end of the pause that it falls into. */
static uint64_t when_on(const struct end *e, uint64_t at)
{
	const uint64_t period = e->t->on_ns + e->t->off_ns;
	uint64_t in;

	if (e->t->kind != PL_LAB_ONOFF && e->t->kind != PL_LAB_INCAST)
		return at;
	in = (at - e->begin_ns) % period;
	return in < e->t->on_ns ? at : at - in + period;
}

static int send_udp(struct end *e, int fd)
{
	static char data[SIZE_MAX_];
	const bool dns = e->t->kind == PL_LAB_DNS;
	const uint64_t step = e->t->size * UINT64_C(8000000000) / e->t->rate_bps;
	uint64_t at = e->begin_ns, now;

	while (!is_over(e, at = when_on(e, at))) {
		sleep_until(at);
		now = pl_clock_mono_ns();
		memcpy(data, &now, sizeof(now));
		send_one(e, fd, data, dns ? QUESTION : e->t->size);
		if (dns)
			take_answers(e, fd);
		at += step;
		if (now > at + LATE_NS)
			at = now;
	}
	for (now = pl_clock_mono_ns(), at = now;
		dns && at < now + ANSWER_NS && e->account.came < e->account.sent;
		at = pl_clock_mono_ns()) {
		take_answers(e, fd);
		sleep_until(at + 1000000);
	}
	return 0;
}

static int send_bulk(struct end *e, int fd)
{
	static char data[SIZE_MAX_];

	/* A short limit, to end on time even when the peer reads no more. */
	limit_waits(fd, 100000000);
	while (!is_over(e, pl_clock_mono_ns())) {
		ssize_t n = send(fd, data, sizeof(data), MSG_NOSIGNAL);

		if (n < 0 && errno == EAGAIN)
			continue;
		if (n < 0)
			return fail(e);
		e->account.sent++;
		e->account.sent_bytes += (uint64_t)n;
	}
	return 0;
}

static int send_requests(struct end *e, int fd)
{
	static char data[SIZE_MAX_];
	uint64_t asked;

	while (!is_over(e, asked = pl_clock_mono_ns())) {
		uint64_t took;
		ssize_t n;

		if (send(fd, data, REQUEST, MSG_NOSIGNAL) != REQUEST)
			return fail(e);
		e->account.sent++;
		e->account.sent_bytes += REQUEST;
		n = recv(fd, data, e->t->size, MSG_WAITALL);
		if (n != (ssize_t)e->t->size) {
			errno = n == 0 ? ECONNRESET : n > 0 || errno == EAGAIN ? ETIMEDOUT : errno;
			return fail(e);
		}
		count(e, e->t->size);
		took = pl_clock_mono_ns() - asked;
		e->account.time_sum_ns += took;
		if (took > e->account.time_max_ns)
			e->account.time_max_ns = took;
	}
	return 0;
}

static int send_all(void *arg)
{
	struct end *e = arg;
	int fd = socket(AF_INET, (over_tcp(e) ? SOCK_STREAM : SOCK_DGRAM) | SOCK_CLOEXEC, 0), r;

	(void)prctl(PR_SET_TIMERSLACK, 1);
	if (fd >= 0 && over_tcp(e))
		limit_waits(fd, SILENCE_NS);
	if (fd < 0 || connect(fd, (struct sockaddr *)&e->to, sizeof(e->to)) < 0) {
		if (errno == EINPROGRESS)
			errno = ETIMEDOUT;
		return fail(e);
	}
	sleep_until(e->begin_ns);
	r = e->t->kind == PL_LAB_BULK      ? send_bulk(e, fd)
	    : e->t->kind == PL_LAB_REQUEST ? send_requests(e, fd)
					   : send_udp(e, fd);
	close(fd);
	atomic_store(&e->done, true);
	return r;
}

/* ---- both ---- */

/* Starts a process that runs what() in the node; it is killed when this one ends. */
static pid_t start(struct end *e, int (*what)(void *arg))
{
	struct pl_diag diag = { .text = "" };
	pid_t pid = fork();
	int r;

	if (pid != 0)
		return pid;
	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (e->f != NULL) {
		r = pl_lab_call(e->f, e->node, what, e, &diag);
	} else {
		/* The parent ends it by `halt`, and not by this signal. */
		(void)signal(SIGTERM, SIG_IGN);
		r = setns(e->namespace, CLONE_NEWNET) < 0 ? -errno : what(e);
	}
	if (r < 0)
		atomic_store(&e->error, r);
	atomic_store(&e->done, true);
	_exit(0);
}

static int first_error(const struct run *r, unsigned int n)
{
	for (unsigned int i = 0; i < n; i++) {
		int error = atomic_load(&r->ends[i].error);

		if (error < 0)
			return error;
	}
	return 0;
}

static int wait_ready(struct end *e)
{
	for (unsigned int i = 0; i < READY_MS / 5; i++) {
		if (atomic_load(&e->ready) || atomic_load(&e->done))
			return atomic_load(&e->error);
		(void)poll(NULL, 0, 5);
	}
	return -ETIMEDOUT;
}

static int run_all(struct run *r, const struct pl_lab_traffic *t)
{
	struct end *receiver = &r->ends[t->n_from];
	pid_t pids[PL_LAB_SENDERS_MAX + 1] = { 0 };
	int error;

	pids[t->n_from] = start(receiver, receive);
	error = pids[t->n_from] < 0 ? -errno : wait_ready(receiver);
	for (unsigned int i = 0; i < t->n_from && error == 0; i++) {
		/* All senders begin at the same moment, once they are started. */
		r->ends[i].to.sin_port = htons(receiver->port);
		r->ends[i].begin_ns = r->ends[0].begin_ns != 0 ? r->ends[0].begin_ns
							       : pl_clock_mono_ns() + 200000000;
		pids[i] = start(&r->ends[i], send_all);
		if (pids[i] < 0)
			error = -errno;
	}
	for (unsigned int i = 0; i < t->n_from; i++) {
		while (pids[i] > 0 && waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	atomic_store(&r->stop, true);
	while (pids[t->n_from] > 0 && waitpid(pids[t->n_from], NULL, 0) < 0 && errno == EINTR)
		continue;
	return error == 0 ? first_error(r, t->n_from + 1) : error;
}

static int run(const struct pl_lab_topology *topology, const struct pl_lab_found *f,
	const int *namespaces, const struct pl_lab_traffic *t,
	struct pl_lab_traffic_account ret[PL_LAB_SENDERS_MAX + 1], struct pl_diag *diag)
{
	struct run *r =
		mmap(NULL, sizeof(*r), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	uint16_t port;
	int error;

	if (r == MAP_FAILED)
		return -ENOMEM;
	for (unsigned int i = 0; i <= t->n_from; i++) {
		struct end *e = &r->ends[i];

		e->t = t;
		e->f = f;
		e->stop = &r->stop;
		e->halt = &r->halt;
		e->node = i < t->n_from ? t->from[i] : t->to;
		e->namespace = f == NULL ? namespaces[e->node] : -1;
		e->to = (struct sockaddr_in){ .sin_family = AF_INET };
		memcpy(&e->to.sin_addr, topology->nodes[t->to].v4.b + 12, 4);
	}
	if (f == NULL) {
		halted_by_signal = r;
		(void)signal(SIGTERM, halt);
	}
	r->ends[t->n_from].port = PORT;
	error = run_all(r, t);
	if (f == NULL)
		(void)signal(SIGTERM, SIG_DFL);
	port = r->ends[t->n_from].port;
	for (unsigned int i = 0; i <= t->n_from; i++)
		ret[i] = r->ends[i].account;
	(void)munmap(r, sizeof(*r));
	if (error < 0)
		pl_diag_set(diag, "traffic to '%s', port %d: %s", topology->nodes[t->to].name, port,
			strerrordesc_np(-error));
	return error;
}

int pl_lab_traffic_run(const struct pl_lab_found *f, const struct pl_lab_traffic *t,
	struct pl_lab_traffic_account ret[PL_LAB_SENDERS_MAX + 1], struct pl_diag *diag)
{
	return f->tier == PL_LAB_SIMULATED ? pl_lab_traffic_simulated(f, t, ret, diag)
					   : run(&f->topology, f, NULL, t, ret, diag);
}

int pl_lab_traffic_run_within(const struct pl_lab_topology *topology, const int *namespaces,
	const struct pl_lab_traffic *t, struct pl_lab_traffic_account ret[PL_LAB_SENDERS_MAX + 1],
	struct pl_diag *diag)
{
	return run(topology, NULL, namespaces, t, ret, diag);
}

/* ---- what came of it ---- */

static void account_json(
	struct pl_json *j, const char *name, const struct pl_lab_traffic_account *a)
{
	pl_json_object(j);
	pl_json_text(j, "node", name);
	pl_json_number(j, "sent", a->sent);
	pl_json_number(j, "sent_bytes", a->sent_bytes);
	pl_json_number(j, "failed", a->failed);
	pl_json_number(j, "came", a->came);
	pl_json_number(j, "came_bytes", a->came_bytes);
	if (a->time_max_ns != 0) {
		pl_json_number(j, "mean_ns", a->time_sum_ns / a->came);
		pl_json_number(j, "max_ns", a->time_max_ns);
	}
	pl_json_object_end(j);
}

static void show_json(const struct pl_lab_topology *topology, const struct pl_lab_traffic *t,
	const struct pl_lab_traffic_account *a, struct pl_buf *out)
{
	struct pl_json j;

	pl_json_init(&j, out);
	pl_json_object(&j);
	pl_json_text(&j, "kind", pl_lab_traffic_kinds[t->kind]);
	pl_json_key(&j, "senders");
	pl_json_array(&j);
	for (unsigned int i = 0; i < t->n_from; i++)
		account_json(&j, topology->nodes[t->from[i]].name, &a[i]);
	pl_json_array_end(&j);
	pl_json_key(&j, "receiver");
	account_json(&j, topology->nodes[t->to].name, &a[t->n_from]);
	pl_json_object_end(&j);
	pl_buf_chr(out, '\n');
}

void pl_lab_traffic_show(const struct pl_lab_topology *topology, const struct pl_lab_traffic *t,
	const struct pl_lab_traffic_account *a, bool json, struct pl_buf *out)
{
	if (json) {
		show_json(topology, t, a, out);
		return;
	}
	pl_buf_printf(out, "%-12s %10s %14s %8s %10s %14s %10s %10s\n", "NODE", "SENT", "BYTES",
		"FAILED", "CAME", "BYTES", "MEAN", "MAX");
	for (unsigned int i = 0; i <= t->n_from; i++) {
		char mean[32] = "-", max[32] = "-";

		if (a[i].time_max_ns != 0) {
			pl_format_duration(mean, sizeof(mean), a[i].time_sum_ns / a[i].came);
			pl_format_duration(max, sizeof(max), a[i].time_max_ns);
		}
		pl_buf_printf(out, "%-12s %10llu %14llu %8llu %10llu %14llu %10s %10s\n",
			topology->nodes[i < t->n_from ? t->from[i] : t->to].name,
			(unsigned long long)a[i].sent, (unsigned long long)a[i].sent_bytes,
			(unsigned long long)a[i].failed, (unsigned long long)a[i].came,
			(unsigned long long)a[i].came_bytes, mean, max);
	}
}
