/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Output of the translator into collectors' memory over RoCE:
 * "roce://HOST:PORT[,HOST:PORT]…/STORE[,STORE]…?dev=packet:IFACE", or dev=udp://ADDRESS.
 * "&connect=cm": by RDMA-CM, not over TCP. The connections are those of remote/dialer.h, writes go
 * through remote/uplink.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "chain/translate_roce_state.h"
#include "runtime/say.h"

#define MS              UINT64_C(1000000)
/* time to wait for the first collector, which sends the stores' parameters */
#define START_NS        (10000 * MS)
/* without progress: then operations without room are dropped */
#define STALL_NS        (250 * MS)
#define FINISH_NS       (2000 * MS) /* without progress at the end */
/* for collectors to get the DREQ, which RDMA-CM sends three times */
#define END_NS          (1200 * MS)
#define UNSENT_SHOWN_NS (60000 * MS)
#define ECT             2 /* packets may be marked instead of dropped: ECT(0) of RFC 3168 */
#define FRAME_BYTES     (PL_ROCE_PATH_MTU + PL_ROCE_OVERHEAD)

/* ---- the wire ---- */

static void send_frames(struct pl_roce_out *g, uint64_t now_ns)
{
	bool all;

	do {
		all = pl_uplink_send(g->uplink, now_ns, &g->frames);
		all &= pl_dialer_send(g->dialer, now_ns, &g->frames);
		/* The NIC counts its losses; while it is down, frames wait here and in the
		 * uplink. */
		if (g->frames.batch.n > 0 && pl_nic_send(g->nic, &g->frames, NULL) == -ENETDOWN)
			return;
	} while (!all);
}

static void take_answers(struct pl_roce_out *g, uint64_t now_ns)
{
	struct pl_diag diag = { .text = "" };
	int r;

	for (int i = 0; i < 64; i++) {
		r = pl_nic_recv(g->nic, &g->answers, 0, &diag);
		if (r == -ENETDOWN || r == -EAGAIN)
			pl_say_diag(&diag);
		else if (r < 0)
			g->unreadable++;
		if (r <= 0)
			return;
		pl_uplink_batch(g->uplink, &g->answers, now_ns);
		pl_dialer_batch(g->dialer, &g->answers, now_ns);
		pl_nic_release(g->nic, &g->answers);
	}
}

static void pump(struct pl_roce_out *g)
{
	const uint64_t now_ns = pl_clock_mono_ns();

	take_answers(g, now_ns);
	send_frames(g, now_ns);
}

/* Sleeps until there may be something to do, at most until until_ns. */
static void rest(const struct pl_roce_out *g, uint64_t until_ns)
{
	struct pollfd fds[] = { { .fd = pl_nic_fd(g->nic), .events = POLLIN },
		{ .fd = pl_dialer_fd(g->dialer), .events = POLLIN } };
	const uint64_t now_ns = pl_clock_mono_ns(), next = pl_uplink_next_ns(g->uplink);
	const uint64_t at = next < until_ns ? next : until_ns;
	struct timespec ts = { 0 };

	if (at > now_ns)
		ts = (struct timespec){ (time_t)((at - now_ns) / 1000000000),
			(long)((at - now_ns) % 1000000000) };
	(void)ppoll(fds, 2, &ts, NULL);
}

/* Waits for room; called by the uplink when an operation has none. */
static bool wait_for_room(void *arg, unsigned int collector)
{
	struct pl_roce_out *g = arg;
	const uint64_t done = pl_uplink_counters(g->uplink, collector)->done;
	const uint64_t end_ns = pl_clock_mono_ns() + (g->stalled[collector] ? 0 : STALL_NS);

	for (;;) {
		pump(g);
		if (pl_uplink_counters(g->uplink, collector)->done > done)
			return true;
		if (pl_clock_mono_ns() >= end_ns || pl_uplink_broken(g->uplink, collector))
			break;
		rest(g, end_ns);
	}
	g->stalled[collector] = true;
	return false;
}

/* ---- as an output ---- */

static void ops(void *arg, const struct pl_op *o, size_t n)
{
	const struct pl_roce_out *g = arg;

	pl_uplink_ops(g->uplink, o, n);
}

static void tell(struct pl_roce_out *g, struct pl_translator *t, unsigned int i,
	enum pl_collector_state state)
{
	if (g->told[i] == state)
		return;
	g->told[i] = state;
	pl_translator_set_collector(t, i, state);
}

/* Resumes the lists at the collector's heads. */
static int resume_lists(
	const struct pl_roce_out *g, struct pl_translator *t, unsigned int collector)
{
	for (unsigned int s = 0; s < g->n_stores; s++) {
		const uint32_t lists =
			g->params[s].primitive == PL_APPEND ? g->params[s].append.lists : 0;

		for (uint32_t list = 0; list < lists; list++) {
			int r = pl_translator_resume_list(t, collector, s, list,
				pl_dialer_head(g->dialer, collector, s, list));

			if (r < 0)
				return r;
		}
	}
	return 0;
}

static void tell_people(struct pl_roce_out *g, unsigned int i, bool up)
{
	const char *why = pl_dialer_why(g->dialer, i);

	if (up)
		pl_say("collector %s: connected", g->servers[i]);
	else if (g->up[i])
		pl_say("collector %s: lost (%s); trying again", g->servers[i], why);
	else if (!g->complained[i] && why[0] != '\0')
		pl_say("collector %s: cannot connect (%s); trying again", g->servers[i], why);
	else
		return;
	g->complained[i] = true;
}

static void look_after(struct pl_roce_out *g, struct pl_translator *t, unsigned int i)
{
	const bool up = pl_uplink_is_up(g->uplink, i);

	if (up != g->up[i] || !up)
		tell_people(g, i, up);
	if (up && !g->up[i]) {
		g->stalled[i] = false;
		(void)resume_lists(
			g, t, i); /* cannot fail, because the lists are within its parameters */
	}
	g->up[i] = up;
	if (!up)
		tell(g, t, i, PL_COLLECTOR_DOWN);
	else if (!g->stalled[i])
		tell(g, t, i, PL_COLLECTOR_UP);
	else if (pl_uplink_queued(g->uplink, i) < g->queue / 2)
		g->stalled[i] = false;
}

static uint64_t turn(void *arg, struct pl_translator *t, uint64_t now_ns)
{
	struct pl_roce_out *g = arg;
	uint64_t next, at;

	pump(g);
	next = pl_dialer_step(g->dialer, now_ns);
	for (unsigned int i = 0; i < g->collectors; i++)
		look_after(g, t, i);
	send_frames(g, now_ns);
	at = pl_uplink_next_ns(g->uplink);
	return at < next ? at : next;
}

static unsigned int fds(void *arg, struct pollfd *ret, unsigned int max)
{
	const struct pl_roce_out *g = arg;

	if (max < 2)
		return 0;
	ret[0] = (struct pollfd){ .fd = pl_nic_fd(g->nic), .events = POLLIN };
	ret[1] = (struct pollfd){ .fd = pl_dialer_fd(g->dialer), .events = POLLIN };
	return 2;
}

static void pressed(void *arg, struct pl_translator *t)
{
	struct pl_roce_out *g = arg;

	for (unsigned int i = 0; i < g->collectors; i++) {
		if (g->stalled[i] && g->told[i] == PL_COLLECTOR_UP)
			tell(g, t, i, PL_COLLECTOR_BUSY);
	}
}

static uint64_t waiting(const struct pl_roce_out *g)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < g->collectors; i++)
		n += pl_uplink_waiting(g->uplink, i);
	return n;
}

/* Ends the connections, and tells the collectors. */
static void hang_up(struct pl_roce_out *g)
{
	const uint64_t end_ns = pl_clock_mono_ns() + END_NS;

	pl_dialer_hang_up(g->dialer, pl_clock_mono_ns());
	for (;;) {
		pump(g);
		if (pl_dialer_idle(g->dialer) || pl_clock_mono_ns() >= end_ns)
			return;
		rest(g, pl_clock_mono_ns() + 10 * MS);
	}
}

static void finish(void *arg)
{
	struct pl_roce_out *g = arg;
	uint64_t left = UINT64_MAX, end_ns = 0;

	for (;;) {
		const uint64_t now_ns = pl_clock_mono_ns(), n = waiting(g);

		if (n < left) {
			left = n;
			end_ns = now_ns + FINISH_NS;
		}
		if (n == 0 || now_ns >= end_ns)
			break;
		pump(g);
		(void)pl_dialer_step(g->dialer, now_ns);
		rest(g, now_ns + 10 * MS);
	}
	/* The results of the remaining operations stay unknown. */
	hang_up(g);
}

static int resume(void *arg, struct pl_translator *t)
{
	struct pl_roce_out *g = arg;

	for (unsigned int i = 0; i < g->collectors; i++)
		look_after(g, t, i);
	return 0;
}

static void add_unsent(struct pl_roce_out *g, struct pl_conditions *ret)
{
	const uint64_t unsent = pl_counter_read(&pl_nic_counters(g->nic)->unsent);

	if (unsent != g->unsent)
		g->unsent_ns = pl_clock_mono_ns();
	g->unsent = unsent;
	if (g->unsent_ns != 0 && pl_clock_mono_ns() - g->unsent_ns < UNSENT_SHOWN_NS)
		pl_condition_add(ret, PL_CONDITION_WARNING, "frames_unsent",
			"%s did not take frames within the last minute, %" PRIu64
			" since the start: unacknowledged writes in them are lost",
			pl_nic_name(g->nic), unsent);
}

/* While another collector is up, that one takes the reports. */
static void conditions(void *arg, struct pl_conditions *ret)
{
	struct pl_roce_out *g = arg;
	unsigned int n_up = 0;

	add_unsent(g, ret);

	for (unsigned int i = 0; i < g->collectors; i++)
		n_up += pl_uplink_is_up(g->uplink, i);
	if (n_up == 0)
		pl_condition_add(
			ret, PL_CONDITION_FAULT, "no_collector", "no collector is connected");
	for (unsigned int i = 0; n_up < g->collectors && i < g->collectors; i++) {
		const char *why = pl_dialer_why(g->dialer, i);

		if (!pl_uplink_is_up(g->uplink, i))
			pl_condition_add(ret, PL_CONDITION_WARNING, "collector_lost",
				"collector %s is not connected%s%s", g->servers[i],
				why[0] != '\0' ? ": " : "", why);
	}
}

/* ---- opening ---- */

static int close_all(void *arg)
{
	struct pl_roce_out *g = arg;

	pl_dialer_free(g->dialer);
	pl_uplink_free(g->uplink);
	pl_nic_close(g->nic);
	free(g->memory);
	pl_roce_uri_done(&g->uri);
	free(g);
	return 0;
}

static int refuse(struct pl_diag *diag, const char *what)
{
	return pl_diag_fail(diag, -EINVAL, "roce: %s", what);
}

static int take_key(void *arg, const char *key, const char *value, struct pl_diag *diag)
{
	struct pl_roce_out *g = arg;

	if (strcmp(key, "dev") == 0) {
		g->dev = value;
		return 0;
	}
	if (strcmp(key, "service") == 0 && (strcmp(value, "rc") == 0 || strcmp(value, "uc") == 0)) {
		g->reliable = strcmp(value, "rc") == 0;
		g->unreliable = !g->reliable;
		return 0;
	}
	if (strcmp(key, "connect") == 0 &&
		(strcmp(value, "tcp") == 0 || strcmp(value, "cm") == 0)) {
		g->by_cm = strcmp(value, "cm") == 0;
		return 0;
	}
	if (strcmp(key, "queue") == 0 && pl_parse_u64(value, &g->queue) == 0 && g->queue >= 64 &&
		g->queue <= PL_RDMA_WINDOW_MAX)
		return 0;
	if (strcmp(key, "window") == 0 && pl_parse_u64(value, &g->window) == 0 && g->window >= 2 &&
		g->window <= g->queue)
		return 0;
	if (strcmp(key, "dscp") == 0 && pl_parse_u64(value, &g->dscp) == 0 && g->dscp <= 63)
		return 0;
	if (strcmp(key, "ecn") == 0 && (strcmp(value, "on") == 0 || strcmp(value, "off") == 0)) {
		g->no_ecn = strcmp(value, "off") == 0;
		return 0;
	}
	return pl_diag_fail(diag, -EINVAL,
		"roce: invalid '%s=%s': keys are dev=packet:IFACE or udp://ADDRESS, connect=tcp or cm, service=uc or rc, queue=64 to %u, window=2 to queue, dscp=0 to 63, ecn=on or off",
		key, value, PL_RDMA_WINDOW_MAX);
}

static int parse(struct pl_roce_out *g, const char *uri, struct pl_diag *diag)
{
	int r = pl_roce_uri_parse(&g->uri, uri, take_key, g, diag);

	if (r < 0)
		return r;
	g->servers = g->uri.servers;
	g->stores = g->uri.stores;
	g->collectors = g->uri.n_servers;
	g->n_stores = g->uri.n_stores;
	if (g->dev == NULL)
		return refuse(
			diag, "missing interface: add ?dev=packet:IFACE or ?dev=udp://ADDRESS");
	if (g->by_cm && g->unreliable)
		return refuse(diag,
			"connect=cm needs service=rc: unacknowledged writes would not detect that a collector is gone");
	g->reliable |= g->by_cm;
	return 0;
}

static int open_all(struct pl_roce_out *g, const struct pl_rights *rights, struct pl_diag *diag)
{
	const struct pl_nic_options nic = { .rights = rights };
	const struct pl_uplink_options uplink = { .collectors = g->collectors,
		.n_stores = g->n_stores,
		.queue = (uint32_t)g->queue,
		.window = (uint32_t)g->window,
		.wait = wait_for_room,
		.arg = g };
	struct pl_dialer_options dialer = { .servers = g->servers,
		.stores = g->stores,
		.collectors = g->collectors,
		.n_stores = g->n_stores,
		.reliable = g->reliable,
		.by_cm = g->by_cm,
		.tos = (uint8_t)(g->dscp << 2 | (g->no_ecn ? 0 : ECT)) };
	int r = pl_nic_open(&g->nic, g->dev, &nic, diag);

	if (r < 0)
		return r;
	if (pl_nic_note(g->nic) != NULL)
		pl_say("%s: frames are sent through a packet socket: %s", pl_nic_name(g->nic),
			pl_nic_note(g->nic));
	g->memory = malloc((size_t)PL_BATCH_MAX * FRAME_BYTES);
	if (g->memory == NULL)
		return -ENOMEM;
	pl_frames_init(&g->frames, g->memory, (size_t)PL_BATCH_MAX * FRAME_BYTES);
	r = pl_uplink_new(&g->uplink, &uplink);
	if (r == -EINVAL)
		return refuse(diag,
			"collectors, stores and queue= together need too many packets: lower queue=");
	if (r < 0)
		return r;
	dialer.nic = g->nic;
	dialer.uplink = g->uplink;
	return pl_dialer_new(&g->dialer, &dialer, diag);
}

/* Waits until one collector is up, which sends the stores' parameters. */
static int wait_for_first(struct pl_roce_out *g, struct pl_diag *diag)
{
	const uint64_t end_ns = pl_clock_mono_ns() + START_NS;

	for (;;) {
		const uint64_t now_ns = pl_clock_mono_ns();
		uint64_t next = pl_dialer_step(g->dialer, now_ns);

		pump(g);
		for (unsigned int i = 0; i < g->collectors; i++) {
			if (pl_uplink_is_up(g->uplink, i))
				return 0;
		}
		if (pl_runtime_ends() || now_ns >= end_ns)
			return pl_diag_fail(diag, -EHOSTUNREACH, "no collector can be reached: %s",
				pl_dialer_why(g->dialer, 0));
		rest(g, next < now_ns + 100 * MS ? next : now_ns + 100 * MS);
	}
}

bool pl_translate_is_roce(const char *where)
{
	return pl_roce_uri_is(where);
}

static int connect_first(void *arg, struct pl_diag *diag)
{
	struct pl_roce_out *g = arg;
	const int r = wait_for_first(g, diag);

	if (r < 0) {
		hang_up(g);
		return r;
	}
	for (unsigned int s = 0; s < g->n_stores; s++)
		g->params[s] = *pl_dialer_store(g->dialer, s);
	return 0;
}

int pl_translate_to_roce(struct pl_translate_out *ret, const char *uri,
	const struct pl_rights *rights, struct pl_diag *diag)
{
	struct pl_roce_out *g = calloc(1, sizeof(*g));
	int r;

	if (g == NULL)
		return -ENOMEM;
	g->queue = 4096;
	g->window = 128;
	r = parse(g, uri, diag);
	if (r == 0)
		r = open_all(g, rights, diag);
	if (r < 0) {
		(void)close_all(g);
		return r;
	}
	*ret = (struct pl_translate_out){
		.ops = ops,
		.resume = resume,
		.account = pl_roce_out_account,
		.conditions = conditions,
		.connect = connect_first,
		.close = close_all,
		.turn = turn,
		.fds = fds,
		.pressed = pressed,
		.finish = finish,
		.arg = g,
		.stores = g->params,
		.n_stores = g->n_stores,
		.collectors = g->collectors,
	};
	return 0;
}
