/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens the stores of a collector, runs its NIC, and serves its peers. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/num.h"
#include "base/utf8.h"
#include "memory/sketch.h"
#include "remote/collector_state.h"

#define PEERS_DEFAULT 64
#define PEERS_MAX     4096
#define SPARE         16 /* further connections, so that a peer without room gets a refusal */
#define UNSETTLED                                                                                  \
	4 /* unconfirmed requests of RDMA-CM: at least this many, else a quarter of the peers */
#define CONTROL_NS  1000000u    /* time between two checks of connections, under load */
#define ALARM_NS    1000000000u /* least time between two lines about guessing */
#define LIVELY_NS   200000000u
#define WAIT_MAX_MS 500         /* longest wait without load */
#define AGAIN_NS    1000000000u /* time between two checks for a removed device */

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

/* Registers a store's memory with a NIC that has one key for all peers. */
static int register_store(struct pl_collector *c, struct collector_store *s, struct pl_diag *diag)
{
	const struct pl_rdma_region region = { .base = pl_region_store(s->region, s->info.epoch),
		.bytes = s->info.store_bytes,
		.va = s->va,
		.domain = s->domain,
		.access = PL_RDMA_WRITE | PL_RDMA_ATOMIC |
			  (c->options.may_read || c->options.n_readers > 0 ? PL_RDMA_READ : 0) };

	return c->ops->region_add(c->nic, &region, &s->key, diag);
}

static int open_store(struct pl_collector *c, uint32_t i, struct pl_diag *diag)
{
	const struct pl_collector_store *wanted = &c->options.stores[i];
	const struct pl_region_options options = { .sync_ns = c->options.sync_ns };
	struct collector_store *s = &c->stores[i];
	int r;

	if (!name_good(wanted->name)) {
		pl_diag_set(diag,
			"'%s' cannot be the name of a store: a name has 1 to %d bytes of text",
			wanted->name, PL_EXCHANGE_NAME_MAX);
		return -EINVAL;
	}
	for (uint32_t j = 0; j < i; j++) {
		if (strcmp(c->stores[j].name, wanted->name) == 0) {
			pl_diag_set(diag, "two stores have the name '%s'", wanted->name);
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
	if (c->ops->memory_check != NULL)
		r = c->ops->memory_check(pl_region_fd(s->region), wanted->path, diag);
	return r < 0 || c->ops->region_remove != NULL ? r : register_store(c, s, diag);
}

static int open_stores(struct pl_collector *c, struct pl_diag *diag)
{
	const uint32_t n = c->options.n_stores;
	int r = 0;

	if (n == 0 || n > PL_COLLECTOR_STORES_MAX) {
		pl_diag_set(diag, "the collector needs 1 to %d regions", PL_COLLECTOR_STORES_MAX);
		return -EINVAL;
	}
	c->stores = calloc(n, sizeof(*c->stores));
	if (c->stores == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (uint32_t i = 0; r == 0 && i < n; i++) {
		r = open_store(c, i, diag);
		c->n_stores++; /* a store that is half open is closed too */
	}
	return r;
}

static bool is_rdma_nic(const char *uri)
{
	return strncmp(uri, PL_COLLECTOR_VERBS, strlen(PL_COLLECTOR_VERBS)) == 0;
}

/* Operations of the NIC for a URI. NULL: not built in. */
static const struct collector_nic_ops *nic_for(const char *uri)
{
	if (!is_rdma_nic(uri))
		return &collector_soft;
#if PL_HAVE_VERBS
	return &collector_verbs;
#else
	return NULL;
#endif
}

/* RoCE authenticates nobody: every allowed host that reaches the interface can write. So the
 * addresses must be configured. */
static int check_allowed(struct pl_collector *c, struct pl_diag *diag)
{
	if (c->options.n_allow > 0)
		return 0;
	if (c->ops->is_loopback != NULL && c->ops->is_loopback(c->nic)) {
		c->options.allow = collector_loopback;
		c->options.n_allow = COLLECTOR_LOOPBACK;
		return 0;
	}
	if (c->options.n_readers > 0)
		return 0;
	pl_diag_set(diag,
		"%s: no peer is allowed to write: give --allow with the addresses of translators, switches and NICs, such as --allow 10.0.0.0/24 (--allow 0.0.0.0/0 --allow ::/0 allows every host)",
		c->ops->name(c->nic));
	return -EINVAL;
}

static int open_nic(struct pl_collector *c, struct pl_diag *diag)
{
	const uint32_t peers = c->options.max_peers == 0 ? PEERS_DEFAULT : c->options.max_peers;
	const uint32_t n = peers + (peers / 4 < UNSETTLED ? UNSETTLED : peers / 4);
	int r;

	c->ops = nic_for(c->options.uri);
	if (c->ops == NULL) {
		pl_diag_set(diag, "%s: this pathline was built without libibverbs and librdmacm",
			c->options.uri);
		return -ENOTSUP;
	}
	c->peers = peers <= PEERS_MAX ? calloc(n, sizeof(*c->peers)) : NULL;
	if (c->peers == NULL) {
		r = peers > PEERS_MAX ? -EINVAL : -ENOMEM;
		pl_diag_set(diag, "%u peers: %s", peers, strerror(-r));
		return r;
	}
	c->n_peers = n;
	c->max_peers = peers;
	c->max_each = c->options.max_each == 0 ? peers - peers / 4 : c->options.max_each;
	c->max_unsettled = n - peers;
	r = c->ops->open(&c->nic, &c->options, n, diag);
	return r < 0 ? r : check_allowed(c, diag);
}

static int open_servers(struct pl_collector *c, struct pl_diag *diag)
{
	const struct pl_exchange_server_options server = { .listen = c->options.listen,
		.max_peers = c->max_peers + SPARE,
		.max_each = c->max_each + SPARE / 2,
		.allowed = collector_may_connect,
		.ask = collector_ask,
		.ended = collector_ended,
		.arg = c };
	int r = 0;

	if (c->options.listen != NULL)
		r = pl_exchange_server_open(&c->server, &server, diag);
	if (r < 0 || c->options.cm_port == 0)
		return r;
	r = c->ops->connections->listen(c->nic, c->options.cm_port, c->options.silent_ns,
		&c->cm_addresses, &c->n_cm_addresses, diag);
	c->have_cm = r == 0;
	return r;
}

static int watch(struct pl_collector *c, int fd)
{
	struct epoll_event e = { .events = EPOLLIN };

	return epoll_ctl(c->poll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

int pl_collector_new(
	struct pl_collector **ret, const struct pl_collector_options *options, struct pl_diag *diag)
{
	struct pl_collector *c = calloc(1, sizeof(*c));
	int r;

	if (c == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	c->options = *options;
	c->poll_fd = epoll_create1(EPOLL_CLOEXEC);
	r = c->poll_fd < 0 ? -errno : 0;
	if (r == 0 && !is_rdma_nic(c->options.uri))
		r = open_nic(c, diag);
	if (r < 0) {
		(void)pl_collector_close(c);
		return r;
	}
	*ret = c;
	return 0;
}

int pl_collector_open(struct pl_collector *c, struct pl_diag *diag)
{
	int r = is_rdma_nic(c->options.uri) ? open_nic(c, diag) : 0;

	if (r == 0)
		r = open_stores(c, diag);
	if (r == 0)
		r = open_servers(c, diag);
	if (r == 0 && c->options.peer_switch != NULL)
		r = collector_switch_open(c, diag);
	if (r == 0)
		r = watch(c, c->ops->fd(c->nic));
	if (r == 0 && c->server != NULL)
		r = watch(c, pl_exchange_server_fd(c->server));
	return r;
}

int pl_collector_close(struct pl_collector *c)
{
	int r = 0;

	if (c == NULL)
		return 0;
	pl_exchange_server_close(c->server);
	if (c->nic != NULL) {
		collector_say_goodbye(c);
		c->ops->close(c->nic);
	}
	for (uint32_t i = 0; i < c->n_stores; i++) {
		int error = pl_region_close(c->stores[i].region);

		r = r == 0 ? error : r;
	}
	if (c->poll_fd >= 0)
		close(c->poll_fd);
	free(c->stores);
	free(c->peers);
	free(c->cm_addresses);
	free(c);
	return r;
}

/* ---- epochs ---- */

int pl_collector_can_turn(const struct pl_collector *c, uint32_t store, struct pl_diag *diag)
{
	const struct collector_store *s = &c->stores[store];
	const uint32_t primitive = s->info.params.primitive;

	if (c->ops->region_move == NULL)
		pl_diag_set(diag, "%s: regions behind an RDMA NIC have no epochs",
			c->ops->name(c->nic));
	else if (primitive == PL_APPEND)
		pl_diag_set(diag, "%s: lists have no epochs", s->name);
	else if (s->info.halves != 2)
		pl_diag_set(diag,
			"%s: epochs need a region with two halves (region create --halves 2)",
			s->name);
	else
		return 0;
	return -ENOTSUP;
}

int pl_collector_prepare_epoch(struct pl_collector *c, uint32_t store, struct pl_diag *diag)
{
	int r = pl_collector_can_turn(c, store, diag);

	return r < 0 ? r : pl_region_prepare_epoch(c->stores[store].region, diag);
}

/* Returns -EAGAIN with diag while columns of a sketch are missing: its epoch ends with all columns
 * complete. */
static int check_sketch(const struct collector_store *s, struct pl_diag *diag)
{
	struct pl_sketch k;

	if (s->info.params.primitive != PL_SKETCH)
		return 0;
	(void)pl_sketch_init(&k, &s->info.params, pl_region_store(s->region, s->info.epoch));
	if (pl_sketch_completed(&k) == k.columns)
		return 0;
	pl_diag_set(diag, "%s: the sketch is not complete", s->name);
	return -EAGAIN;
}

int pl_collector_next_epoch(struct pl_collector *c, uint32_t store, struct pl_diag *diag)
{
	struct collector_store *s = &c->stores[store];
	int r = pl_collector_can_turn(c, store, diag);

	if (r == 0)
		r = check_sketch(s, diag);
	if (r == 0)
		r = pl_region_next_epoch(s->region, diag);
	if (r < 0)
		return r;
	s->info.epoch = pl_region_epoch(s->region);
	/* Cannot fail: both halves have the same length and alignment. */
	for (uint32_t i = 0; r == 0 && i < c->n_peers; i++) {
		if (c->peers[i].used && c->peers[i].store == store)
			r = c->ops->region_move(
				c->nic, c->peers[i].key, pl_region_store(s->region, s->info.epoch));
	}
	return r;
}

/* ---- a device that is gone ---- */

/* Gives up everything on the device. Returns -ENETDOWN with diag. */
static int lose_device(struct pl_collector *c, struct pl_diag *diag)
{
	const uint32_t n = collector_lose_peers(c);

	c->ops->leave(c->nic);
	c->away = true;
	c->again_ns = c->now_ns + AGAIN_NS;
	c->why.text[0] = '\0';
	pl_diag_set(diag,
		"%s failed or was removed, with the queue pairs of %u peers; looking for it every second",
		c->ops->name(c->nic), n);
	return -ENETDOWN;
}

/* Returns 0; -EAGAIN with diag when the device is back; or -ENETDOWN with diag when it is missing
 * for another reason than the one reported last. */
static int find_device(struct pl_collector *c, struct pl_diag *diag)
{
	struct pl_diag why = { .text = "" };
	int r;

	if (c->now_ns < c->again_ns)
		return 0;
	c->again_ns = c->now_ns + AGAIN_NS;
	r = c->ops->again(c->nic, &why);
	if (r == 0) {
		for (uint32_t i = 0; r == 0 && i < c->n_stores; i++)
			r = register_store(c, &c->stores[i], &why);
		if (r < 0)
			c->ops->leave(c->nic);
	}
	if (r == 0) {
		c->away = false;
		c->returns++;
		pl_diag_set(diag, "%s is back: peers can connect again", c->ops->name(c->nic));
		return -EAGAIN;
	}
	/* The loss of the device itself was reported when it happened. */
	if (r == -ENODEV || strcmp(why.text, c->why.text) == 0)
		return 0;
	c->why = why;
	pl_diag_set(diag, "%s is not back yet: %s", c->ops->name(c->nic), why.text);
	return -ENETDOWN;
}

/* ---- one turn ---- */

static void control(struct pl_collector *c)
{
	c->control_ns = c->now_ns;
	if (c->server != NULL)
		pl_exchange_server_step(c->server, c->now_ns);
	if (c->have_cm) {
		if (c->now_ns - c->lively_ns >= LIVELY_NS && c->ops->connections->heard != NULL)
			collector_signs_of_life(c);
		collector_cm_events(c);
		c->ops->connections->flush(c->nic);
	}
}

/* Tells of peers that fell silent since the last time. Returns 0, or -EAGAIN with diag. */
static int tell_silent(struct pl_collector *c, struct pl_diag *diag)
{
	const uint64_t n = c->silent - c->silent_told;
	char text[PL_ADDR_TEXT_MAX];

	if (n == 0)
		return 0;
	c->silent_told = c->silent;
	pl_format_addr(text, &c->silent_addr);
	if (n == 1)
		pl_diag_set(diag, "peer %s is silent: its queue pair is released", text);
	else
		pl_diag_set(diag,
			"%" PRIu64 " peers are silent, %s among them: their queue pairs are "
			"released",
			n, text);
	return -EAGAIN;
}

/* "1.2.3.4 guesses: 120 queue pairs" */
static void tell_suspect(struct pl_diag *diag, const struct pl_rdma_suspect *s, uint32_t others)
{
	static const char *const what[PL_RDMA_GUESSES] = { "to unknown queue pairs",
		"to other peers' queue pairs", "with unknown keys", "with far packet numbers" };
	char text[PL_ADDR_TEXT_MAX], counts[160], more[64] = "";
	size_t n = 0;

	pl_format_addr(text, &s->addr);
	counts[0] = '\0';
	for (int i = 0; i < PL_RDMA_GUESSES; i++) {
		if (s->kinds[i] > 0)
			n += (size_t)snprintf(counts + n, sizeof(counts) - n, "%s%" PRIu64 " %s",
				n > 0 ? ", " : "", s->kinds[i], what[i]);
	}
	if (others > 0)
		snprintf(more, sizeof(more), "; so do %u others, see --stats", others);
	pl_diag_set(diag, "%s guesses: requests %s%s", text, counts, more);
}

/* Tells of sources that guess, since the last time. Returns 0, or -EAGAIN with diag. */
static int tell_alarms(struct pl_collector *c, struct pl_diag *diag)
{
	struct pl_rdma_suspect worst = { .guesses = 0 }, s;
	uint32_t n = 0;
	uint64_t alarms;

	if (c->ops->alarms == NULL)
		return 0;
	alarms = c->ops->alarms(c->nic);
	if (alarms == c->alarms_seen || (c->alarm_ns != 0 && c->now_ns - c->alarm_ns < ALARM_NS))
		return 0;
	c->alarms_seen = alarms;
	c->alarm_ns = c->now_ns;
	for (; c->ops->alarm(c->nic, &s); n++) {
		if (s.guesses > worst.guesses)
			worst = s;
	}
	if (n == 0) /* other sources took their places in the table */
		return 0;
	tell_suspect(diag, &worst, n - 1);
	return -EAGAIN;
}

int pl_collector_fits(const struct pl_collector *c, struct pl_diag *diag)
{
	return c->ops->fits != NULL ? c->ops->fits(c->nic, diag) : 0;
}

int pl_collector_wait_ms(const struct pl_collector *c, int max_ms)
{
	const uint64_t next = c->ops->next_ns(c->nic);
	int ms = max_ms < 0 || max_ms > WAIT_MAX_MS ? WAIT_MAX_MS : max_ms;

	if (next <= c->now_ns)
		return 0;
	if (next != UINT64_MAX && (next - c->now_ns) / 1000000u < (uint64_t)ms)
		ms = (int)((next - c->now_ns) / 1000000u) + 1;
	return ms;
}

int pl_collector_step(struct pl_collector *c, struct pl_diag *diag)
{
	int n;

	c->now_ns = pl_clock_mono_ns();
	n = c->away ? find_device(c, diag) : c->ops->step(c->nic, c->now_ns, diag);
	if (c->switch_qpn != 0)
		collector_switch_publish(c);
	collector_completions(c);
	if (n == -ENODEV && c->ops->leave != NULL)
		n = lose_device(c, diag);
	if (n <= 0 || c->now_ns - c->control_ns >= CONTROL_NS)
		control(c);
	if (n >= 0 && (tell_silent(c, diag) < 0 || tell_alarms(c, diag) < 0))
		return -EAGAIN;
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

uint32_t pl_collector_cm_addresses(const struct pl_collector *c, const struct pl_addr **ret)
{
	*ret = c->cm_addresses;
	return c->n_cm_addresses;
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_collector_stats, __VA_ARGS__)
#include "remote/collector_stats.def"
};
const struct pl_stats pl_collector_stats_list = { stat_rows,
	sizeof(stat_rows) / sizeof(stat_rows[0]) };

static const struct pl_stat device_rows[] = {
#include "remote/collector_device.def"
#undef PL_STAT
};
const struct pl_stats pl_collector_device_list = { device_rows,
	sizeof(device_rows) / sizeof(device_rows[0]) };

const char *pl_collector_name(const struct pl_collector *c)
{
	return c->ops->name(c->nic);
}

const char *pl_collector_note(const struct pl_collector *c)
{
	return c->ops->note != NULL ? c->ops->note(c->nic) : NULL;
}

const struct pl_region *pl_collector_region(const struct pl_collector *c, uint32_t store)
{
	return c->stores[store].region;
}
