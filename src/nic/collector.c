/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "nic/collector_state.h"

#define PEERS_DEFAULT 64
#define PEERS_MAX     4096
#define CONTROL_NS    1000000u /* under load the control side is looked after so often */
#define WAIT_MAX_MS   500      /* and without any */

/* ---- opening ---- */

static bool name_good(const char *name)
{
	size_t n = strlen(name), step;
	uint32_t cp;

	if (n == 0 || n > PL_EXCHANGE_NAME_MAX)
		return false;
	for (; n > 0; name += step, n -= step) {
		if (!pl_utf8_next(name, n, &step, &cp) || cp < 0x20 || cp == 0x7f)
			return false;
	}
	return true;
}

static int open_store(struct pl_collector *c, uint32_t i, struct pl_diag *diag)
{
	const struct pl_collector_store *wanted = &c->options.stores[i];
	const struct pl_region_options options = { .sync_ns = c->options.sync_ns };
	struct collector_store *s = &c->stores[i];
	struct pl_rdma_region region;
	int r;

	if (!name_good(wanted->name)) {
		pl_diag_set(diag, "'%s' cannot be the name of a store: 1 to %d bytes of text",
			wanted->name, PL_EXCHANGE_NAME_MAX);
		return -EINVAL;
	}
	for (uint32_t j = 0; j < i; j++) {
		if (strcmp(c->stores[j].name, wanted->name) == 0) {
			pl_diag_set(diag, "two stores of the name '%s'", wanted->name);
			return -EINVAL;
		}
	}
	memcpy(s->name, wanted->name, strlen(wanted->name) + 1);
	r = pl_region_open(&s->region, wanted->path, PL_REGION_WRITE, &options, diag);
	if (r < 0)
		return r;
	pl_region_get_info(s->region, &s->info);
	s->domain = i + 1;
	s->va = s->info.data_offset + (s->info.epoch % s->info.halves) * s->info.half_stride;
	region = (struct pl_rdma_region){ .base = pl_region_store(s->region, s->info.epoch),
		.bytes = s->info.store_bytes,
		.va = s->va,
		.domain = s->domain,
		.access =
			PL_RDMA_WRITE | PL_RDMA_ATOMIC | (c->options.may_read ? PL_RDMA_READ : 0) };
	r = pl_responder_region_add(c->responder, &region, &s->key);
	if (r < 0)
		pl_diag_set(diag, "%s: %s", wanted->path, strerror(-r));
	return r;
}

static int open_stores(struct pl_collector *c, struct pl_diag *diag)
{
	const uint32_t n = c->options.n_stores;
	int r = 0;

	if (n == 0 || n > PL_COLLECTOR_STORES_MAX) {
		pl_diag_set(diag, "1 to %d regions", PL_COLLECTOR_STORES_MAX);
		return -EINVAL;
	}
	c->stores = calloc(n, sizeof(*c->stores));
	if (c->stores == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		r = open_store(c, i, diag);
		c->n_stores++; /* what is half open is closed too */
	}
	return r;
}

static int open_responder(struct pl_collector *c, struct pl_diag *diag)
{
	const uint32_t n = c->options.max_peers == 0 ? PEERS_DEFAULT : c->options.max_peers;
	const struct pl_responder_options options = { .max_qps = n,
		.max_regions = PL_COLLECTOR_STORES_MAX,
		.max_completions = 2 * n * COLLECTOR_RECEIVES };
	int r = n > PEERS_MAX ? -EINVAL : 0;

	if (r == 0) {
		c->peers = calloc(n, sizeof(*c->peers));
		r = c->peers == NULL ? -ENOMEM : pl_responder_new(&c->responder, &options);
	}
	if (r < 0)
		pl_diag_set(diag, "%u peers: %s", n, strerror(-r));
	c->n_peers = n;
	return r;
}

static int open_servers(struct pl_collector *c, struct pl_diag *diag)
{
	const struct pl_exchange_server_options server = { .listen = c->options.listen,
		.max_peers = c->n_peers,
		.allowed = collector_allowed,
		.ask = collector_ask,
		.ended = collector_ended,
		.arg = c };
	struct pl_connector_options cm = { .max_connections = c->n_peers };
	int r = 0;

	if (c->options.listen != NULL)
		r = pl_exchange_server_open(&c->server, &server, diag);
	if (r < 0 || c->options.cm_port == 0)
		return r;
	r = pl_nic_address(c->nic, &c->cm_address, diag);
	if (r < 0)
		return r;
	cm.own = c->cm_address;
	memcpy(cm.smac, pl_nic_mac(c->nic), sizeof(cm.smac));
	r = pl_connector_new(&c->connector, &cm);
	if (r == 0)
		r = pl_connector_listen(c->connector, c->options.cm_port);
	if (r < 0)
		pl_diag_set(diag, "the connection manager: %s", strerror(-r));
	return r;
}

static int watch(struct pl_collector *c, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	return epoll_ctl(c->poll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int pl_collector_open(
	struct pl_collector **ret, const struct pl_collector_options *options, struct pl_diag *diag)
{
	struct pl_collector *c = calloc(1, sizeof(*c));
	int r;

	if (c == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	c->options = *options;
	pl_frames_init(&c->out, c->out_memory, sizeof(c->out_memory));
	c->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	r = c->poll_fd < 0 ? -errno : 0;
	if (r == 0)
		r = open_responder(c, diag);
	if (r == 0)
		r = open_stores(c, diag);
	if (r == 0)
		r = pl_nic_open(&c->nic, options->uri, NULL, diag);
	if (r == 0)
		r = open_servers(c, diag);
	if (r == 0)
		r = watch(c, pl_nic_fd(c->nic));
	if (r == 0 && c->server != NULL)
		r = watch(c, pl_exchange_server_fd(c->server));
	if (r < 0) {
		(void)pl_collector_close(c);
		return r;
	}
	*ret = c;
	return 0;
}

int pl_collector_close(struct pl_collector *c)
{
	int r = 0;

	if (c == NULL)
		return 0;
	pl_exchange_server_close(c->server);
	pl_connector_free(c->connector);
	pl_nic_close(c->nic);
	pl_responder_free(c->responder);
	for (uint32_t i = 0; i < c->n_stores; i++) {
		int error = pl_region_close(c->stores[i].region);

		r = r == 0 ? error : r;
	}
	if (c->poll_fd >= 0)
		close(c->poll_fd);
	free(c->stores);
	free(c->peers);
	free(c);
	return r;
}

/* ---- one turn ---- */

/* Management packets are the connection manager's. */
static void manage(struct pl_collector *c)
{
	for (uint32_t i = 0; i < c->in.n; i++) {
		const struct pl_packet *p = &c->in.pkts[i];
		struct pl_roce packet;

		if (c->causes[i] == PL_RDMA_C_MANAGEMENT &&
			pl_roce_parse(&packet, pl_cursor(p->data, p->len), (enum pl_link)p->link) ==
				PL_ROCE_F_OK)
			pl_connector_receive(c->connector, &packet, c->now_ns);
	}
}

/* What is refused by the interface is lost as on any wire: peers repeat what they miss. */
static void answer(struct pl_collector *c)
{
	bool all;

	do {
		all = pl_responder_answers(c->responder, &c->out);
		(void)pl_nic_send(c->nic, &c->out, NULL);
	} while (!all);
	if (c->connector == NULL)
		return;
	do {
		all = pl_connector_send(c->connector, c->now_ns, &c->out);
		(void)pl_nic_send(c->nic, &c->out, NULL);
	} while (!all);
}

static void control(struct pl_collector *c)
{
	c->control_ns = c->now_ns;
	if (c->server != NULL)
		pl_exchange_server_step(c->server, c->now_ns);
	if (c->connector != NULL) {
		collector_cm_events(c);
		answer(c);
	}
}

int pl_collector_wait_ms(const struct pl_collector *c, int max_ms)
{
	const uint64_t next =
		c->connector != NULL ? pl_connector_next_ns(c->connector) : UINT64_MAX;
	int ms = max_ms < 0 || max_ms > WAIT_MAX_MS ? WAIT_MAX_MS : max_ms;

	if (next <= c->now_ns)
		return 0;
	if (next != UINT64_MAX && (next - c->now_ns) / 1000000u < (uint64_t)ms)
		ms = (int)((next - c->now_ns) / 1000000u) + 1;
	return ms;
}

int pl_collector_step(struct pl_collector *c, struct pl_diag *diag)
{
	int n = pl_nic_recv(c->nic, &c->in, 0, diag);

	c->now_ns = pl_clock_mono_ns();
	if (n > 0) {
		pl_responder_now(c->responder, c->now_ns);
		pl_responder_batch(c->responder, &c->in, c->causes);
		if (c->connector != NULL)
			manage(c);
		pl_nic_release(c->nic, &c->in);
		answer(c);
		collector_completions(c);
	}
	if (n <= 0 || c->now_ns - c->control_ns >= CONTROL_NS)
		control(c);
	return n;
}

int pl_collector_fd(const struct pl_collector *c)
{
	return c->poll_fd;
}

const char *pl_collector_address(const struct pl_collector *c)
{
	return c->server != NULL ? pl_exchange_server_address(c->server) : NULL;
}

const struct pl_addr *pl_collector_cm_address(const struct pl_collector *c)
{
	return &c->cm_address;
}

const struct pl_nic *pl_collector_nic(const struct pl_collector *c)
{
	return c->nic;
}

const struct pl_region *pl_collector_region(const struct pl_collector *c, uint32_t store)
{
	return c->stores[store].region;
}
