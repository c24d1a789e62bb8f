/* SPDX-License-Identifier: BSD-2-Clause */
/* Reads stores of collectors over RoCE. */
#include "remote/reader.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/num.h"
#include "rdma/requester.h"
#include "rdma/responder.h" /* PL_RDMA_* */
#include "remote/caller.h"
#include "remote/exchange_client.h"

#define MS              UINT64_C(1000000)
#define TIMEOUT_DEFAULT (5000 * MS)
#define ANSWER_NS       (20 * MS) /* READs without an answer for this long are sent again */
/* between steps while something is under way that no descriptor tells of */
#define STEP_NS         (5 * MS)
#define BYE_NS          (1200 * MS) /* for collectors to get the DREQ, by RDMA-CM */
#define READS_MAX       128u        /* under way; fewer when the peer takes fewer */
#define FRAME_BYTES     (PL_ROCE_PATH_MTU + PL_ROCE_OVERHEAD)

/* Connection to the store of one collector. */
struct line {
	struct pl_reader *reader;
	const char *server;
	struct pl_addr addr;
	uint16_t port, mtu; /* mtu: the largest that the collector accepts by RDMA-CM; 0: not
			     * known */
	struct pl_roce_path path;
	struct pl_exchange_client *client; /* over TCP */
	struct pl_call *call;              /* by RDMA-CM */
	struct pl_exchange theirs;
	struct pl_requester_qp qp;
	uint32_t qpn; /* 0: none */
	bool up;
	uint32_t under_way; /* READs without completion */
	uint8_t result;     /* enum pl_rdma_result of the first READ that failed */
};

struct pl_reader {
	struct pl_reader_options o;
	struct pl_requester *requester;
	struct pl_caller *caller; /* by RDMA-CM; NULL: over TCP */
	struct line *lines;       /* one for each server, and one for asking again */
	struct pl_frames frames;
	struct pl_batch answers;
	uint8_t *memory; /* for frames */
};

/* ---- making ---- */

static int init_line(struct pl_reader *r, unsigned int i, struct pl_diag *diag)
{
	struct line *l = &r->lines[i];

	*l = (struct line){ .reader = r, .server = r->o.servers[i] };
	if (pl_parse_endpoint(l->server, &l->addr, &l->port) == 0 && l->port != 0 &&
		!pl_addr_is_unspecified(&l->addr))
		return 0;
	pl_diag_set(diag, "'%s' is not the address and port of a collector, such as 10.0.0.2:7471",
		l->server);
	return -EINVAL;
}

static int init(struct pl_reader *r, struct pl_diag *diag)
{
	const struct pl_requester_options requester = { .max_qps = r->o.n_servers + 1,
		.max_completions = (r->o.n_servers + 1) * READS_MAX };
	int e = 0;

	if (strlen(r->o.store) > PL_EXCHANGE_NAME_MAX || r->o.store[0] == '\0') {
		pl_diag_set(diag, "a store's name has 1 to %d bytes", PL_EXCHANGE_NAME_MAX);
		return -EINVAL;
	}
	r->lines = calloc(r->o.n_servers + 1, sizeof(*r->lines));
	r->memory = malloc((size_t)PL_BATCH_MAX * FRAME_BYTES);
	if (r->lines == NULL || r->memory == NULL)
		return -ENOMEM;
	pl_frames_init(&r->frames, r->memory, (size_t)PL_BATCH_MAX * FRAME_BYTES);
	for (unsigned int i = 0; e == 0 && i < r->o.n_servers; i++)
		e = init_line(r, i, diag);
	if (e == 0)
		e = pl_requester_new(&r->requester, &requester);
	if (e == 0 && r->o.by_cm)
		e = pl_caller_new(&r->caller, r->o.nic, r->o.n_servers + 1, diag);
	return e;
}

int pl_reader_new(
	struct pl_reader **ret, const struct pl_reader_options *options, struct pl_diag *diag)
{
	struct pl_reader *r = calloc(1, sizeof(*r));
	int e;

	*ret = NULL;
	if (r == NULL)
		return -ENOMEM;
	r->o = *options;
	r->o.timeout_ns = r->o.timeout_ns != 0 ? r->o.timeout_ns : TIMEOUT_DEFAULT;
	e = init(r, diag);
	if (e < 0)
		pl_reader_free(r);
	else
		*ret = r;
	return e;
}

/* ---- the wire ---- */

static void take_completions(struct pl_reader *r)
{
	struct pl_rdma_completed done[64];
	uint32_t n;

	while ((n = pl_requester_completions(r->requester, done, 64)) > 0) {
		for (uint32_t i = 0; i < n; i++) {
			struct line *l = &r->lines[done[i].id];

			assert(done[i].id <= r->o.n_servers && l->under_way > 0);
			l->under_way--;
			if (l->result == PL_RDMA_RESULT_OK)
				l->result = done[i].result;
		}
	}
}

static void send_frames(struct pl_reader *r, uint64_t now_ns)
{
	bool all;

	do {
		all = pl_requester_send(r->requester, now_ns, &r->frames);
		if (r->caller != NULL)
			all &= pl_caller_send(r->caller, now_ns, &r->frames);
		/* Lost frames are sent again; while the interface is down, frames wait. */
		if (r->frames.batch.n > 0 && pl_nic_send(r->o.nic, &r->frames, NULL) == -ENETDOWN)
			return;
	} while (!all);
}

static void pump(struct pl_reader *r)
{
	const uint64_t now_ns = pl_clock_mono_ns();

	for (int i = 0; i < 64; i++) {
		if (pl_nic_recv(r->o.nic, &r->answers, 0, NULL) <= 0)
			break;
		pl_requester_batch(r->requester, &r->answers, NULL, now_ns);
		if (r->caller != NULL)
			pl_caller_batch(r->caller, &r->answers, now_ns);
		pl_nic_release(r->o.nic, &r->answers);
	}
	send_frames(r, now_ns);
	take_completions(r);
}

/* Sleeps until there may be something to do, at most until until_ns. */
static void rest(const struct pl_reader *r, const struct line *l, uint64_t until_ns)
{
	struct pollfd fds[] = { { .fd = pl_nic_fd(r->o.nic), .events = POLLIN },
		{ .fd = l != NULL && l->client != NULL ? pl_exchange_client_fd(l->client) : -1,
			.events = POLLIN } };
	const uint64_t now_ns = pl_clock_mono_ns();
	uint64_t at = pl_requester_next_ns(r->requester), cm;
	struct timespec ts = { 0 };

	cm = r->caller != NULL ? pl_caller_next_ns(r->caller) : UINT64_MAX;
	at = cm < at ? cm : at;
	at = until_ns < at ? until_ns : at;
	if (at > now_ns)
		ts = (struct timespec){ (time_t)((at - now_ns) / 1000000000),
			(long)((at - now_ns) % 1000000000) };
	(void)ppoll(fds, 2, &ts, NULL);
}

/* ---- connecting ---- */

static void end_line(struct line *l)
{
	struct pl_reader *r = l->reader;

	pl_exchange_client_close(l->client);
	pl_call_close(l->call, pl_clock_mono_ns());
	l->client = NULL;
	l->call = NULL;
	/* READs under way end with the queue pair: nothing is written to their destinations any
	 * more. */
	take_completions(r);
	if (l->qpn != 0)
		(void)pl_requester_qp_remove(r->requester, l->qpn);
	l->qpn = l->under_way = 0;
	l->result = PL_RDMA_RESULT_OK;
	l->up = false;
}

static int find_path(struct line *l, uint64_t end_ns, struct pl_diag *diag)
{
	struct pl_reader *r = l->reader;
	int e;

	while ((e = pl_nic_path(r->o.nic, &l->addr, NULL, &l->path, diag)) == -EAGAIN) {
		if (pl_clock_mono_ns() >= end_ns)
			return -EHOSTUNREACH;
		pump(r);
		rest(r, NULL, pl_clock_mono_ns() + STEP_NS);
	}
	l->path.tos = r->o.tos;
	return e;
}

/* Makes a queue pair of ours, and the message about it for the collector. */
static int offer(struct line *l, struct pl_exchange *ret)
{
	struct pl_reader *r = l->reader;
	const uint16_t most = pl_nic_mtu(r->o.nic);
	uint32_t psn;
	int e;

	if (getrandom(&psn, sizeof(psn), 0) != sizeof(psn))
		return -EIO;
	l->qp = (struct pl_requester_qp){
		.service = PL_ROCE_RC,
		.mtu = l->mtu != 0 && l->mtu < most ? l->mtu : most,
		.pkey = PL_ROCE_PKEY,
		.path = l->path,
		.messages = READS_MAX,
		.window = READS_MAX,
		.atomics = READS_MAX,
		.timeout_ns = ANSWER_NS,
		.retries = (uint8_t)(r->o.timeout_ns / ANSWER_NS < 255 ? r->o.timeout_ns / ANSWER_NS
								       : 255),
		.rnr_retries = PL_RDMA_FOR_EVER,
	};
	e = pl_requester_qp_add(r->requester, &l->qp, &l->qpn);
	if (e < 0)
		return e == -EEXIST ? -EIO : e;
	*ret = (struct pl_exchange){
		.service = PL_ROCE_RC,
		.gid = l->path.src,
		.pkey = PL_ROCE_PKEY,
		.qpn = l->qpn,
		.psn = psn & PL_ROCE_PSN_MASK,
		.mtu = l->qp.mtu,
		.depth = READS_MAX,
		.access = PL_RDMA_READ,
	};
	memcpy(ret->mac, l->path.smac, 6);
	memcpy(ret->name, r->o.store, strlen(r->o.store));
	return 0;
}

/* Steps the exchange: returns 1, 0 or negative errno. */
static int step_line(struct line *l, struct pl_exchange *ret, struct pl_diag *diag)
{
	if (l->call != NULL)
		return pl_call_step(l->call, ret, &l->mtu, diag);
	return pl_exchange_client_step(l->client, pl_clock_mono_ns(), ret, diag);
}

/* Explains a refusal, and what to do about it. */
static int refused(const struct line *l, int e, struct pl_diag *diag)
{
	const struct pl_reader *r = l->reader;

	if (e == -EACCES && r->caller == NULL && l->theirs.refusal == PL_EXCHANGE_NO_STORE) {
		pl_diag_set(diag, "%s has no store of the name '%s'", l->server, r->o.store);
		return -ENOENT;
	}
	/* The server closes the connection of a host that may not connect, without a reason. */
	if (e == -ECONNRESET && r->caller == NULL) {
		pl_diag_set(diag,
			"%s ended the connection without an answer: this host may not be among those that its collector allows (collect --allow)",
			l->server);
		return -EACCES;
	}
	if (e == -EACCES && r->caller == NULL &&
		(l->theirs.refusal == PL_EXCHANGE_NO_ROOM ||
			l->theirs.refusal == PL_EXCHANGE_NO_NIC ||
			l->theirs.refusal == PL_EXCHANGE_FAILED))
		return -EBUSY;
	return e;
}

static int agree(struct line *l, uint64_t end_ns, struct pl_diag *diag)
{
	struct pl_reader *r = l->reader;
	const uint64_t now_ns = pl_clock_mono_ns();
	struct pl_exchange ours;
	int e = offer(l, &ours);

	if (e < 0) {
		pl_diag_set(diag, "%s: %s", l->server, strerror(-e));
		return e;
	}
	e = r->caller != NULL ? pl_call_open(&l->call, r->caller, l->server, &l->path, l->port,
					&ours, now_ns, diag)
			      : pl_exchange_client_open(&l->client, l->server, &ours, now_ns,
					end_ns - now_ns, diag);
	l->theirs.refusal = 0;
	while (e == 0 && (e = step_line(l, &l->theirs, diag)) == 0) {
		if (pl_clock_mono_ns() >= end_ns) {
			pl_diag_set(diag, "%s: no answer in time", l->server);
			return -ETIMEDOUT;
		}
		rest(r, l, pl_clock_mono_ns() + STEP_NS);
		pump(r);
	}
	return e == 1 ? 0 : refused(l, e, diag);
}

/* Takes the collector's half of the queue pair. */
static int take_answer(struct line *l, struct pl_diag *diag)
{
	struct pl_reader *r = l->reader;
	const struct pl_exchange *t = &l->theirs;
	int e;

	if (!t->has_store || t->service != PL_ROCE_RC) {
		pl_diag_set(diag, "%s does not describe its store '%s': it is no pathline collect",
			l->server, r->o.store);
		return -EPROTO;
	}
	if ((t->access & PL_RDMA_READ) == 0 || t->depth == 0) {
		pl_diag_set(diag,
			"%s does not let its stores be read: start the collector with --read (in a configuration rdma.read)",
			l->server);
		return -EACCES;
	}
	l->qp.peer_qpn = t->qpn;
	l->qp.psn = t->psn;
	l->qp.pkey = t->pkey;
	if (!pl_addr_is_unspecified(&t->gid))
		l->qp.path.dst = t->gid;
	l->qp.mtu = t->mtu < l->qp.mtu ? t->mtu : l->qp.mtu;
	l->qp.atomics = t->depth < READS_MAX ? t->depth : READS_MAX;
	l->qp.qpn = l->qpn;
	(void)pl_requester_qp_remove(r->requester, l->qpn);
	l->qpn = 0;
	e = pl_requester_qp_add(r->requester, &l->qp, &l->qpn);
	if (e < 0)
		pl_diag_set(diag, "%s: %s", l->server, strerror(-e));
	return e;
}

static int connect_line(struct line *l, struct pl_diag *diag)
{
	const uint64_t end_ns = pl_clock_mono_ns() + l->reader->o.timeout_ns;
	int e = pl_nic_fits(l->reader->o.nic, diag);

	if (e < 0)
		return e;
	e = find_path(l, end_ns, diag);

	l->mtu = 0;
	if (e == 0)
		e = agree(l, end_ns, diag);
	if (e == -EMSGSIZE && l->mtu >= 256) {
		end_line(l);
		e = agree(l, end_ns, diag);
	}
	if (e == 0)
		e = take_answer(l, diag);
	if (e < 0)
		end_line(l);
	l->up = e == 0;
	return e;
}

int pl_reader_connect(struct pl_reader *r, unsigned int i, struct pl_diag *diag)
{
	return r->lines[i].up ? 0 : connect_line(&r->lines[i], diag);
}

const struct pl_exchange *pl_reader_store(const struct pl_reader *r, unsigned int i)
{
	return &r->lines[i].theirs;
}

int pl_reader_unchanged(struct pl_reader *r, unsigned int i, struct pl_diag *diag)
{
	const struct pl_exchange *then = &r->lines[i].theirs;
	struct line *again = &r->lines[r->o.n_servers];
	struct pl_exchange now;
	int e;

	*again = (struct line){ .reader = r,
		.server = r->lines[i].server,
		.addr = r->lines[i].addr,
		.port = r->lines[i].port };
	e = connect_line(again, diag);
	if (e < 0)
		return e;
	now = again->theirs;
	end_line(again);
	if (now.region_id != then->region_id) {
		pl_diag_set(diag, "%s has put another region in place of store '%s' meanwhile",
			again->server, r->o.store);
		return 0;
	}
	if (now.epoch != then->epoch) {
		pl_diag_set(diag,
			"%s has begun epoch %" PRIu64 " of store '%s', which was in epoch %" PRIu64
			" before",
			again->server, now.epoch, r->o.store, then->epoch);
		return 0;
	}
	return 1;
}

/* ---- reading ---- */

/* Position of the next READ. */
struct progress {
	const struct pl_store_read *reads;
	size_t n, i;
	uint64_t at; /* within reads[i] */
};

/* Posts as many READs as there is room for. Returns 0, or negative errno. */
static int post(struct line *l, struct progress *p)
{
	struct pl_reader *r = l->reader;

	while (p->i < p->n) {
		const struct pl_store_read *run = &p->reads[p->i];
		const uint64_t left = run->bytes - p->at;
		const struct pl_rdma_work work = { .kind = PL_RDMA_WORK_READ,
			.id = (uint64_t)(l - r->lines),
			.va = l->theirs.va + run->offset + p->at,
			.rkey = l->theirs.key,
			.bytes = left < l->qp.mtu ? (uint32_t)left : l->qp.mtu,
			.into = (uint8_t *)run->into + p->at };
		int e = pl_requester_post(r->requester, l->qpn, &work);

		if (e < 0)
			return e == -EAGAIN || e == -ENOTCONN ? 0 : e;
		l->under_way++;
		p->at += work.bytes;
		if (p->at == run->bytes) {
			p->i++;
			p->at = 0;
		}
	}
	return 0;
}

/* Explains why READs failed. */
static int failed(const struct line *l, struct pl_diag *diag)
{
	switch (l->result) {
	case PL_RDMA_RESULT_RETRIES:
		pl_diag_set(diag,
			"%s does not answer READs: it was stopped, or the network to its interface is cut",
			l->server);
		return -ETIMEDOUT;
	case PL_RDMA_RESULT_ACCESS:
		pl_diag_set(diag,
			"%s refused a READ (remote access error): its store was closed, or reading is not allowed any more",
			l->server);
		return -EACCES;
	default:
		pl_diag_set(diag, "%s refused a READ (NAK, result %u)", l->server, l->result);
		return -EIO;
	}
}

/* Returns 0 while the collector holds the connection, else -ECONNRESET with diag. */
static int alive(struct line *l, struct pl_diag *diag)
{
	struct pl_exchange theirs;
	int e = step_line(l, &theirs, NULL);

	if (e >= 0)
		return 0;
	pl_diag_set(diag,
		"%s ended the connection while it was read: the collector was stopped or started anew",
		l->server);
	return -ECONNRESET;
}

static int check_runs(
	const struct line *l, const struct pl_store_read *reads, size_t n, struct pl_diag *diag)
{
	const uint64_t bytes = l->theirs.bytes;

	for (size_t i = 0; i < n; i++) {
		if (reads[i].bytes == 0 || reads[i].bytes > bytes ||
			reads[i].offset > bytes - reads[i].bytes) {
			pl_diag_set(diag, "%s: a READ beyond the end of the store", l->server);
			return -ERANGE;
		}
	}
	return 0;
}

static int read_runs(void *arg, const struct pl_store_read *reads, size_t n, struct pl_diag *diag)
{
	struct line *l = arg;
	struct progress p = { .reads = reads, .n = n };
	int e = l->up ? check_runs(l, reads, n, diag) : -ENOTCONN;

	if (e == -ENOTCONN)
		pl_diag_set(diag, "%s is not connected", l->server);
	if (e < 0)
		return e;
	e = post(l, &p);
	while (e == 0 && (p.i < n || l->under_way > 0)) {
		pump(l->reader);
		if (l->result != PL_RDMA_RESULT_OK)
			e = failed(l, diag);
		else if (p.i == n && l->under_way == 0)
			break;
		else
			e = alive(l, diag);
		if (e == 0)
			e = post(l, &p);
		if (e == 0) {
			send_frames(l->reader, pl_clock_mono_ns());
			rest(l->reader, l, pl_clock_mono_ns() + 100 * MS);
		}
	}
	if (e < 0)
		end_line(l);
	return e;
}

void pl_reader_source(struct pl_reader *r, unsigned int i, struct pl_store_source *ret)
{
	*ret = (struct pl_store_source){ read_runs, &r->lines[i] };
}

/* ---- the end ---- */

void pl_reader_free(struct pl_reader *r)
{
	const uint64_t end_ns = pl_clock_mono_ns() + BYE_NS;

	if (r == NULL)
		return;
	for (unsigned int i = 0; r->requester != NULL && i < r->o.n_servers; i++)
		end_line(&r->lines[i]);
	while (r->caller != NULL && pl_caller_next_ns(r->caller) != UINT64_MAX &&
		pl_clock_mono_ns() < end_ns) {
		pump(r);
		rest(r, NULL, pl_clock_mono_ns() + STEP_NS);
	}
	pl_caller_free(r->caller);
	pl_requester_free(r->requester);
	free(r->lines);
	free(r->memory);
	free(r);
}
