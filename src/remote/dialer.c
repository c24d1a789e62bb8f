/* SPDX-License-Identifier: BSD-2-Clause */
/* Connects an uplink to its collectors, again when a connection ends. */
#include "remote/dialer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/num.h"
#include "memory/append.h"
#include "rdma/responder.h" /* PL_RDMA_* */
#include "remote/caller.h"
#include "remote/exchange_client.h"

#define MS       UINT64_C(1000000)
/* time between steps while work is under way for which there is no descriptor */
#define STEP_NS  (10 * MS)
#define WATCH_NS (1000 * MS) /* between steps while the collector is up */

enum stage {
	WAITING, /* for the next try */
	ROUTE,   /* for the peer's MAC address */
	LISTS,   /* exchanges for the reliable queue pairs of append stores */
	HEADS,   /* READs under way */
	STORES,  /* exchanges for all stores */
	UP,
};

/* Connection to one store of a collector, over TCP or by RDMA-CM. */
struct line {
	struct pl_exchange_client *client; /* over TCP */
	struct pl_call *call;              /* by RDMA-CM */
	bool agreed;                       /* the answer was taken */
};

struct remote {
	enum stage stage;
	uint64_t at_ns;    /* WAITING: time of the next try; else end of this try */
	uint64_t pause_ns; /* before the next try, if this one fails */
	struct pl_addr addr;
	uint16_t port, mtu; /* mtu: the largest that the collector accepts by RDMA-CM; 0: unknown */
	uint16_t offered;   /* the path MTU of its queue pairs */
	struct pl_roce_path path;
	struct line *lines;    /* one for each store */
	uint64_t **heads;      /* of each append store, one for each list */
	uint64_t reads_posted; /* READs posted, over the lists of all append stores in a row */
	struct pl_diag why;
	struct pl_dialer_counters count;
};

struct pl_dialer {
	struct pl_dialer_options o;
	int poll_fd;
	struct pl_caller *caller; /* by RDMA-CM; NULL: over TCP */
	/* packets of the uplink to queue pair 1 that the caller has seen */
	uint64_t management;
	struct remote *remotes;
	struct pl_store_params *params;
	bool *known; /* params[i] is known */
};

/* ---- making ---- */

static int init_remote(struct pl_dialer *d, unsigned int i, struct pl_diag *diag)
{
	struct remote *m = &d->remotes[i];

	if (pl_parse_endpoint(d->o.servers[i], &m->addr, &m->port) < 0 || m->port == 0 ||
		pl_addr_is_unspecified(&m->addr)) {
		pl_diag_set(diag,
			"'%s' is not the address and port of a collector, such as 10.0.0.2:7471",
			d->o.servers[i]);
		return -EINVAL;
	}
	m->pause_ns = d->o.retry_min_ns;
	m->lines = calloc(d->o.n_stores, sizeof(*m->lines));
	m->heads = calloc(d->o.n_stores, sizeof(uint64_t *));
	return m->lines == NULL || m->heads == NULL ? -ENOMEM : 0;
}

static int init(struct pl_dialer *d, struct pl_diag *diag)
{
	int r = 0;

	d->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	d->remotes = calloc(d->o.collectors, sizeof(*d->remotes));
	d->params = calloc(d->o.n_stores, sizeof(*d->params));
	d->known = calloc(d->o.n_stores, sizeof(*d->known));
	if (d->poll_fd < 0 || d->remotes == NULL || d->params == NULL || d->known == NULL)
		return -ENOMEM;
	for (unsigned int s = 0; s < d->o.n_stores; s++) {
		if (strlen(d->o.stores[s]) > PL_EXCHANGE_NAME_MAX || d->o.stores[s][0] == '\0') {
			pl_diag_set(diag, "a store's name has 1 to %d bytes", PL_EXCHANGE_NAME_MAX);
			return -EINVAL;
		}
	}
	if (d->o.by_cm && !d->o.reliable) {
		pl_diag_set(diag, "connect=cm makes reliable connections only: use service=rc");
		return -EINVAL;
	}
	for (unsigned int i = 0; r == 0 && i < d->o.collectors; i++)
		r = init_remote(d, i, diag);
	if (r == 0 && d->o.by_cm)
		r = pl_caller_new(&d->caller, d->o.nic, d->o.collectors * d->o.n_stores, diag);
	return r;
}

int pl_dialer_new(
	struct pl_dialer **ret, const struct pl_dialer_options *options, struct pl_diag *diag)
{
	struct pl_dialer *d = calloc(1, sizeof(*d));
	int r;

	*ret = NULL;
	if (d == NULL)
		return -ENOMEM;
	d->o = *options;
	d->o.retry_min_ns = d->o.retry_min_ns != 0 ? d->o.retry_min_ns : 100 * MS;
	d->o.retry_max_ns = d->o.retry_max_ns != 0 ? d->o.retry_max_ns : 5000 * MS;
	d->o.timeout_ns = d->o.timeout_ns != 0 ? d->o.timeout_ns : 5000 * MS;
	r = init(d, diag);
	if (r < 0)
		pl_dialer_free(d);
	else
		*ret = d;
	return r;
}

static void hang_up(struct pl_dialer *d, struct remote *m, uint64_t now_ns)
{
	for (unsigned int s = 0; m->lines != NULL && s < d->o.n_stores; s++) {
		pl_exchange_client_close(m->lines[s].client);
		pl_call_close(m->lines[s].call, now_ns);
		m->lines[s] = (struct line){ .client = NULL };
	}
}

void pl_dialer_free(struct pl_dialer *d)
{
	if (d == NULL)
		return;
	for (unsigned int i = 0; d->remotes != NULL && i < d->o.collectors; i++) {
		struct remote *m = &d->remotes[i];

		hang_up(d, m, 0);
		for (unsigned int s = 0; m->heads != NULL && s < d->o.n_stores; s++)
			free(m->heads[s]);
		free(m->lines);
		free(m->heads);
	}
	pl_caller_free(d->caller);
	if (d->poll_fd >= 0)
		close(d->poll_fd);
	free(d->remotes);
	free(d->params);
	free(d->known);
	free(d);
}

/* ---- stages ---- */

/* Ends a failed try, or a collector that was up. */
static void drop(struct pl_dialer *d, unsigned int i, uint64_t now_ns)
{
	struct remote *m = &d->remotes[i];

	if (m->stage == UP) {
		m->count.losses++;
		m->mtu = 0;
	} else {
		m->count.failures++;
	}
	hang_up(d, m, now_ns);
	pl_uplink_down(d->o.uplink, i);
	m->stage = WAITING;
	m->at_ns = now_ns + m->pause_ns;
	m->pause_ns *= 2;
	if (m->pause_ns > d->o.retry_max_ns)
		m->pause_ns = d->o.retry_max_ns;
}

static uint8_t service_of(const struct pl_dialer *d, unsigned int store, enum stage stage)
{
	if (stage == LISTS || d->o.reliable)
		return PL_ROCE_RC;
	return pl_uplink_service(&d->params[store]);
}

/* ---- over TCP, or by RDMA-CM ---- */

static int open_line(struct pl_dialer *d, struct remote *m, struct line *l, const char *server,
	const struct pl_exchange *ours, uint64_t now_ns)
{
	struct epoll_event e = { .events = EPOLLIN };
	int r;

	l->agreed = false;
	if (d->caller != NULL)
		return pl_call_open(
			&l->call, d->caller, server, &m->path, m->port, ours, now_ns, &m->why);
	r = pl_exchange_client_open(&l->client, server, ours, now_ns, d->o.timeout_ns, &m->why);
	if (r == 0)
		(void)epoll_ctl(d->poll_fd, EPOLL_CTL_ADD, pl_exchange_client_fd(l->client), &e);
	return r;
}

static int step_line(
	struct remote *m, struct line *l, struct pl_exchange *ret_theirs, uint64_t now_ns)
{
	if (l->call != NULL)
		return pl_call_step(l->call, ret_theirs, &m->mtu, &m->why);
	return pl_exchange_client_step(l->client, now_ns, ret_theirs, &m->why);
}

/* Offers a queue pair for a store. Returns 0, or negative errno with m->why. */
static int ask(struct pl_dialer *d, unsigned int i, unsigned int store, uint64_t now_ns)
{
	struct remote *m = &d->remotes[i];
	const uint16_t most = pl_nic_mtu(d->o.nic);
	struct pl_exchange ours;
	int r = pl_nic_fits(d->o.nic, &m->why);

	if (r < 0)
		return r;
	m->offered = m->mtu != 0 && m->mtu < most ? m->mtu : most;
	r = pl_uplink_offer(
		d->o.uplink, i, store, service_of(d, store, m->stage), &m->path, m->offered, &ours);
	if (r < 0) {
		pl_diag_set(&m->why, "%s", strerror(-r));
		return r;
	}
	memcpy(ours.name, d->o.stores[store], strlen(d->o.stores[store]));
	ours.access = PL_RDMA_WRITE | PL_RDMA_ATOMIC | (m->stage == LISTS ? PL_RDMA_READ : 0);
	return open_line(d, m, &m->lines[store], d->o.servers[i], &ours, now_ns);
}

/* Returns true when the store has the parameters that other collectors have; the first answer sets
 * them. */
static bool same_store(struct pl_dialer *d, unsigned int store, const struct pl_exchange *theirs,
	struct pl_diag *why)
{
	if (!theirs->has_store) {
		pl_diag_set(why, "the collector does not describe store '%s'", d->o.stores[store]);
		return false;
	}
	if (!d->known[store]) {
		d->params[store] = theirs->store;
		d->known[store] = true;
	}
	if (/* NOLINTNEXTLINE(bugprone-suspicious-memory-comparison): unused bytes are zero */
		memcmp(&d->params[store], &theirs->store, sizeof(theirs->store)) == 0)
		return true;
	pl_diag_set(why,
		"store '%s' differs from that of the first collector (parameters and seed must be equal)",
		d->o.stores[store]);
	return false;
}

static int take_answer(
	struct pl_dialer *d, unsigned int i, unsigned int store, const struct pl_exchange *theirs)
{
	struct remote *m = &d->remotes[i];
	uint64_t bytes;

	if (!same_store(d, store, theirs, &m->why))
		return -EPROTO;
	(void)pl_store_bytes(&d->params[store], &bytes, NULL);
	if (m->stage == LISTS && d->params[store].primitive == PL_APPEND &&
		(theirs->access & PL_RDMA_READ) == 0) {
		pl_diag_set(&m->why,
			"the heads of the lists in store '%s' cannot be read: start the collector with --read",
			d->o.stores[store]);
		return -EPROTO;
	}
	m->lines[store].agreed = true;
	return pl_uplink_answer(d->o.uplink, i, store, theirs, bytes,
		d->params[store].primitive == PL_COUNTERS, &m->why);
}

/* Advances all connections. Returns 1 when every requested store has its answer, 0 before. */
static int step_lines(struct pl_dialer *d, unsigned int i, uint64_t now_ns)
{
	struct remote *m = &d->remotes[i];
	int all = 1;

	for (unsigned int s = 0; s < d->o.n_stores; s++) {
		struct line *l = &m->lines[s];
		struct pl_exchange theirs;
		int r;

		if (l->client == NULL && l->call == NULL)
			continue;
		r = step_line(m, l, &theirs, now_ns);
		if (r == 1 && !l->agreed) {
			r = take_answer(d, i, s, &theirs);
			r = r == 0 ? 1 : r;
		}
		if (r < 0)
			return r;
		if (r == 0)
			all = 0;
	}
	return all;
}

/* Returns true for an append store, or one whose parameters are unknown, which is requested as
 * well. */
static bool has_lists(const struct pl_dialer *d, unsigned int store)
{
	return !d->known[store] || d->params[store].primitive == PL_APPEND;
}

static int ask_all(struct pl_dialer *d, unsigned int i, enum stage stage, uint64_t now_ns)
{
	struct remote *m = &d->remotes[i];
	int r = 0;

	m->stage = stage;
	for (unsigned int s = 0; r == 0 && s < d->o.n_stores; s++) {
		if (stage == STORES || has_lists(d, s))
			r = ask(d, i, s, now_ns);
	}
	return r;
}

static uint32_t lists_of(const struct pl_dialer *d, unsigned int store)
{
	return d->params[store].primitive == PL_APPEND ? d->params[store].append.lists : 0;
}

/* Posts as many READs as there is room for. Returns 1 when all are answered. */
static int read_heads(struct pl_dialer *d, unsigned int i)
{
	struct remote *m = &d->remotes[i];
	uint64_t skip = m->reads_posted;

	for (unsigned int s = 0; s < d->o.n_stores; s++) {
		const uint32_t lists = lists_of(d, s);
		struct pl_append a;

		if (skip >= lists) {
			skip -= lists;
			continue;
		}
		(void)pl_append_init(&a, &d->params[s], NULL);
		if (m->heads[s] == NULL)
			m->heads[s] = calloc(lists, sizeof(*m->heads[s]));
		if (m->heads[s] == NULL)
			return -ENOMEM;
		for (uint32_t list = (uint32_t)skip; list < lists; list++) {
			int r = pl_uplink_read(d->o.uplink, i, s,
				pl_append_head_place(&a, list).offset, &m->heads[s][list]);

			if (r < 0)
				return r == -EAGAIN ? 0 : r;
			m->reads_posted++;
		}
		skip = 0;
	}
	/* READs that failed are not under way any more, and their heads are not known. */
	if (pl_uplink_broken(d->o.uplink, i)) {
		pl_diag_set(
			&m->why, "%s: the heads of its lists could not be read", d->o.servers[i]);
		return -EIO;
	}
	return pl_uplink_reads(d->o.uplink, i) == 0;
}

/* Goes one stage on when the present one is done. Returns 1 when there may be more to do; 0 to
 * wait; negative errno with m->why when this try failed. */
static int step_stage(struct pl_dialer *d, unsigned int i, uint64_t now_ns)
{
	struct remote *m = &d->remotes[i];
	int r;

	switch (m->stage) {
	case WAITING:
		if (now_ns < m->at_ns)
			return 0;
		m->count.tries++;
		m->stage = ROUTE;
		m->at_ns = now_ns + d->o.timeout_ns;
		return 1;
	case ROUTE:
		r = pl_nic_path(d->o.nic, &m->addr, NULL, &m->path, &m->why);
		if (r < 0)
			return r == -EAGAIN ? 0 : r;
		m->path.tos = d->o.tos;
		r = ask_all(d, i, LISTS, now_ns);
		return r < 0 ? r : 1;
	case LISTS:
		r = step_lines(d, i, now_ns);
		if (r == 1) {
			m->stage = HEADS;
			m->reads_posted = 0;
		}
		return r;
	case HEADS:
		r = read_heads(d, i);
		if (r <= 0)
			return r;
		hang_up(d, m, now_ns);
		pl_uplink_down(d->o.uplink, i);
		r = ask_all(d, i, STORES, now_ns);
		return r < 0 ? r : 1;
	case STORES:
		r = step_lines(d, i, now_ns);
		if (r <= 0)
			return r;
		if (!pl_uplink_up(d->o.uplink, i))
			return -EIO;
		m->stage = UP;
		m->pause_ns = d->o.retry_min_ns;
		return 0;
	default:
		r = step_lines(d, i, now_ns);
		return r < 0 ? r : 0;
	}
}

static void step(struct pl_dialer *d, unsigned int i, uint64_t now_ns)
{
	struct remote *m = &d->remotes[i];
	const struct pl_diag before = m->why;
	int r;

	do {
		m->why.text[0] = '\0';
		r = step_stage(d, i, now_ns);
	} while (r == 1);
	if (r == 0 && m->stage > ROUTE && pl_uplink_broken(d->o.uplink, i)) {
		pl_diag_set(
			&m->why, "%s: writes were refused or not acknowledged", d->o.servers[i]);
		r = -EIO;
	}
	if (r == 0 && m->stage > ROUTE && m->offered > pl_nic_mtu(d->o.nic)) {
		pl_diag_set(&m->why, "the MTU of %s became too small for the path MTU of %u",
			pl_nic_name(d->o.nic), m->offered);
		r = -EMSGSIZE;
	} else if (r == 0 && m->stage > ROUTE) {
		r = pl_nic_fits(d->o.nic, &m->why);
	}
	if (r == 0 && m->stage != WAITING && m->stage != UP && now_ns >= m->at_ns) {
		pl_diag_set(&m->why, "%s: connecting took too long", d->o.servers[i]);
		r = -ETIMEDOUT;
	}
	/* Until the collector is up, the reason is that of the last failed try. */
	if (r == 0 && m->stage != UP)
		m->why = before;
	else if (r < 0 && m->why.text[0] == '\0')
		pl_diag_set(&m->why, "%s: %s", d->o.servers[i], strerror(-r));
	if (r < 0)
		drop(d, i, now_ns);
}

static uint64_t wants_ns(const struct remote *m, uint64_t now_ns)
{
	if (m->stage == WAITING)
		return m->at_ns;
	return now_ns + (m->stage == UP ? WATCH_NS : STEP_NS);
}

uint64_t pl_dialer_step(struct pl_dialer *d, uint64_t now_ns)
{
	uint64_t next = UINT64_MAX;

	if (d->caller != NULL)
		next = pl_caller_next_ns(d->caller);
	for (unsigned int i = 0; i < d->o.collectors; i++) {
		uint64_t at;

		step(d, i, now_ns);
		at = wants_ns(&d->remotes[i], now_ns);
		if (at < next)
			next = at;
	}
	return next;
}

/* ---- RDMA-CM's packets ---- */

void pl_dialer_batch(struct pl_dialer *d, const struct pl_batch *in, uint64_t now_ns)
{
	const uint64_t management = pl_counter_read(&pl_uplink_packets(d->o.uplink)->management);

	if (d->caller == NULL || management == d->management)
		return; /* no packet for RDMA-CM among them */
	d->management = management;
	pl_caller_batch(d->caller, in, now_ns);
}

bool pl_dialer_send(struct pl_dialer *d, uint64_t now_ns, struct pl_frames *out)
{
	return d->caller == NULL || pl_caller_send(d->caller, now_ns, out);
}

void pl_dialer_hang_up(struct pl_dialer *d, uint64_t now_ns)
{
	for (unsigned int i = 0; i < d->o.collectors; i++) {
		struct remote *m = &d->remotes[i];

		hang_up(d, m, now_ns);
		pl_uplink_down(d->o.uplink, i);
		m->stage = WAITING;
		m->at_ns = now_ns;
	}
}

bool pl_dialer_idle(const struct pl_dialer *d)
{
	return d->caller == NULL || pl_caller_next_ns(d->caller) == UINT64_MAX;
}

/* ---- what is there ---- */

int pl_dialer_fd(const struct pl_dialer *d)
{
	return d->poll_fd;
}

const struct pl_store_params *pl_dialer_store(const struct pl_dialer *d, unsigned int store)
{
	return d->known[store] ? &d->params[store] : NULL;
}

uint64_t pl_dialer_head(
	const struct pl_dialer *d, unsigned int collector, unsigned int store, uint32_t list)
{
	const uint64_t *heads = d->remotes[collector].heads[store];

	return heads != NULL && list < lists_of(d, store) ? heads[list] : 0;
}

const char *pl_dialer_why(const struct pl_dialer *d, unsigned int collector)
{
	return d->remotes[collector].why.text;
}

const struct pl_dialer_counters *pl_dialer_counters(
	const struct pl_dialer *d, unsigned int collector)
{
	return &d->remotes[collector].count;
}
