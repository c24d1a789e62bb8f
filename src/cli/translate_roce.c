/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * pathline translate into collectors' memory over RoCE: "roce://HOST:PORT[,HOST:PORT]…/STORE[,STORE]…?dev=packet:IFACE", or dev=udp://ADDRESS.
 * "&connect=cm": by RDMA-CM, not over TCP. The connections are those of nic/dialer.h, what is written goes through nic/uplink.h.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/num.h"
#include "cli/command.h"
#include "cli/translate_out.h"
#include "nic/dialer.h"

#define MS          UINT64_C(1000000)
#define START_NS    (10000 * MS) /* for the first collector, which says what the stores are */
#define STALL_NS    (250 * MS)   /* without any progress: what has no room is dropped */
#define FINISH_NS   (2000 * MS)  /* likewise at the end */
#define END_NS      (1200 * MS) /* for collectors to hear that it is over: RDMA-CM says so three times */
#define ECT         2           /* may be marked instead of dropped: ECT(0) of RFC 3168 */
#define FRAME_BYTES (PL_ROCE_PATH_MTU + PL_ROCE_OVERHEAD)

struct roce {
	char *text; /* of the URI, cut into the strings below */
	const char *dev;
	const char *servers[PL_COLLECTORS_MAX], *stores[PL_DTA_STORES_MAX];
	unsigned int collectors, n_stores;
	bool reliable, unreliable, by_cm, no_ecn;
	uint64_t queue, window, dscp;

	struct pl_nic *nic;
	struct pl_uplink *uplink;
	struct pl_dialer *dialer;
	struct pl_store_params params[PL_DTA_STORES_MAX];
	uint8_t *memory; /* of frames */
	struct pl_frames frames;
	struct pl_batch answers;
	/* what the translator was told of each, and what people were */
	enum pl_collector_state told[PL_COLLECTORS_MAX];
	bool stalled[PL_COLLECTORS_MAX], up[PL_COLLECTORS_MAX], complained[PL_COLLECTORS_MAX];
	uint64_t unreadable; /* times that the interface gave an error */
};

/* ---- the wire ---- */

static void send_frames(struct roce *g, uint64_t now_ns)
{
	bool all;

	do {
		all = pl_uplink_send(g->uplink, now_ns, &g->frames);
		all &= pl_dialer_send(g->dialer, now_ns, &g->frames);
		/* It counts what it loses; while it is down, frames wait here and the others where they are. */
		if (g->frames.batch.n > 0 && pl_nic_send(g->nic, &g->frames, NULL) == -ENETDOWN)
			return;
	} while (!all);
}

static void take_answers(struct roce *g, uint64_t now_ns)
{
	struct pl_diag diag = { .text = "" };
	int r;

	for (int i = 0; i < 64; i++) {
		r = pl_nic_recv(g->nic, &g->answers, 0, &diag);
		if (r == -ENETDOWN || r == -EAGAIN)
			pl_complain_diag(&diag);
		else if (r < 0)
			g->unreadable++;
		if (r <= 0)
			return;
		pl_uplink_batch(g->uplink, &g->answers, now_ns);
		pl_dialer_batch(g->dialer, &g->answers, now_ns);
		pl_nic_release(g->nic, &g->answers);
	}
}

static void pump(struct roce *g)
{
	const uint64_t now_ns = pl_clock_mono_ns();

	take_answers(g, now_ns);
	send_frames(g, now_ns);
}

/* Sleeps until there may be something to do, at most until then. */
static void rest(const struct roce *g, uint64_t until_ns)
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

/* For the uplink: an operation has no room. */
static bool wait_for_room(void *arg, unsigned int collector)
{
	struct roce *g = arg;
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
	const struct roce *g = arg;

	pl_uplink_ops(g->uplink, o, n);
}

static void tell(
	struct roce *g, struct pl_translator *t, unsigned int i, enum pl_collector_state state)
{
	if (g->told[i] == state)
		return;
	g->told[i] = state;
	pl_translator_set_collector(t, i, state);
}

/* Its lists go on where the collector has them. */
static int resume_lists(const struct roce *g, struct pl_translator *t, unsigned int collector)
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

static void tell_people(struct roce *g, unsigned int i, bool up)
{
	const char *why = pl_dialer_why(g->dialer, i);

	if (up)
		pl_complain("collector %s: connected", g->servers[i]);
	else if (g->up[i])
		pl_complain("collector %s: lost (%s); trying again", g->servers[i], why);
	else if (!g->complained[i] && why[0] != '\0')
		pl_complain("collector %s: not there (%s); trying again", g->servers[i], why);
	else
		return;
	g->complained[i] = true;
}

static void look_after(struct roce *g, struct pl_translator *t, unsigned int i)
{
	const bool up = pl_uplink_is_up(g->uplink, i);

	if (up != g->up[i] || !up)
		tell_people(g, i, up);
	if (up && !g->up[i]) {
		g->stalled[i] = false;
		(void)resume_lists(
			g, t, i); /* cannot fail: the lists are those of its parameters */
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
	struct roce *g = arg;
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
	const struct roce *g = arg;

	if (max < 2)
		return 0;
	ret[0] = (struct pollfd){ .fd = pl_nic_fd(g->nic), .events = POLLIN };
	ret[1] = (struct pollfd){ .fd = pl_dialer_fd(g->dialer), .events = POLLIN };
	return 2;
}

static void pressed(void *arg, struct pl_translator *t)
{
	struct roce *g = arg;

	for (unsigned int i = 0; i < g->collectors; i++) {
		if (g->stalled[i] && g->told[i] == PL_COLLECTOR_UP)
			tell(g, t, i, PL_COLLECTOR_BUSY);
	}
}

static uint64_t waiting(const struct roce *g)
{
	uint64_t n = 0;

	for (unsigned int i = 0; i < g->collectors; i++)
		n += pl_uplink_waiting(g->uplink, i);
	return n;
}

/* And collectors hear of it. */
static void hang_up(struct roce *g)
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
	struct roce *g = arg;
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
	/* Nobody will know of the rest. */
	hang_up(g);
}

static int resume(void *arg, struct pl_translator *t)
{
	struct roce *g = arg;

	for (unsigned int i = 0; i < g->collectors; i++)
		look_after(g, t, i);
	return 0;
}

/* ---- accounts ---- */

static void collector_stats(const struct roce *g, unsigned int i, struct pl_json *json)
{
	static const char *const results[] = { "ok", "invalid", "access", "operation", "retries",
		"rnr", "flushed" };
	const struct pl_uplink_counters *c = pl_uplink_counters(g->uplink, i);
	const struct pl_dialer_counters *d = pl_dialer_counters(g->dialer, i);

	pl_json_object(json);
	pl_json_key(json, "collector");
	pl_json_str(json, g->servers[i]);
	pl_json_number(json, "given", c->given);
	pl_json_number(json, "done", c->done);
	pl_json_number(json, "waiting", pl_uplink_waiting(g->uplink, i));
	pl_json_number(json, "lost", c->lost);
	pl_json_number(json, "full", c->full);
	pl_json_number(json, "down", c->down);
	pl_json_number(json, "outside", c->outside);
	pl_json_number(json, "writes", c->writes);
	pl_json_number(json, "adds", c->adds);
	pl_json_number(json, "connections", c->connections);
	pl_json_number(json, "tries", d->tries);
	pl_json_number(json, "tries_failed", d->failures);
	pl_json_number(json, "connections_lost", d->losses);
	pl_json_key(json, "failures");
	pl_json_object(json);
	for (int r = PL_RDMA_RESULT_INVALID; r < PL_RDMA_RESULT_FLUSHED; r++)
		pl_json_number(json, results[r], c->failures[r]);
	pl_json_object_end(json);
	pl_json_object_end(json);
}

static void wire_stats(const struct roce *g, struct pl_json *json)
{
	const struct pl_requester_counters *p = pl_uplink_packets(g->uplink);
	const struct pl_nic_counters *n = pl_nic_counters(g->nic);
	const struct {
		const char *name;
		const struct pl_counter *n;
	} rows[] = { { "packets", &p->packets }, { "repeated", &p->repeated },
		{ "timeouts", &p->timeouts }, { "received", &p->received }, { "acks", &p->acks },
		{ "atomic_acks", &p->atomic_acks }, { "read_responses", &p->read_responses },
		{ "sequence_naks", &p->sequence_naks }, { "rnr_naks", &p->rnr_naks },
		{ "error_naks", &p->error_naks }, { "cnps", &p->cnps }, { "ghosts", &p->ghosts },
		{ "foreign", &p->foreign }, { "unknown", &p->unknown },
		{ "management", &p->management }, { "frames_sent", &n->sent },
		{ "frames_unsent", &n->unsent } };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		pl_json_number(json, rows[i].name, pl_counter_read(rows[i].n));
	pl_json_number(json, "slowed", pl_uplink_slowed(g->uplink));
	pl_json_number(json, "interface_errors", g->unreadable);
}

static void stats(void *arg, struct pl_json *json)
{
	const struct roce *g = arg;
	struct pl_uplink_counters sum = { 0 };

	for (unsigned int i = 0; i < g->collectors; i++) {
		const struct pl_uplink_counters *c = pl_uplink_counters(g->uplink, i);

		sum.given += c->given;
		sum.writes += c->writes;
		sum.adds += c->adds;
		sum.lost += c->lost;
		sum.full += c->full;
		sum.down += c->down;
		sum.outside += c->outside;
	}
	pl_json_number(json, "given", sum.given);
	pl_json_number(json, "writes", sum.writes);
	pl_json_number(json, "adds", sum.adds);
	pl_json_number(json, "lost", sum.lost);
	pl_json_number(json, "full", sum.full);
	pl_json_number(json, "down", sum.down);
	pl_json_number(json, "outside", sum.outside);
	wire_stats(g, json);
	pl_json_key(json, "collectors");
	pl_json_array(json);
	for (unsigned int i = 0; i < g->collectors; i++)
		collector_stats(g, i, json);
	pl_json_array_end(json);
}

/* ---- opening ---- */

static int close_all(void *arg)
{
	struct roce *g = arg;

	pl_dialer_free(g->dialer);
	pl_uplink_free(g->uplink);
	pl_nic_close(g->nic);
	free(g->memory);
	free(g->text);
	free(g);
	return 0;
}

static int refuse(struct pl_diag *diag, const char *what)
{
	pl_diag_set(diag, "roce: %s", what);
	return -EINVAL;
}

/* "a,b,c" in place. -1: more than `max`, or an empty one. */
static int split(char *text, const char **ret, unsigned int max)
{
	unsigned int n = 0;
	char *rest = text, *word;

	while ((word = strsep(&rest, ",")) != NULL) {
		if (n == max || word[0] == '\0')
			return -1;
		ret[n++] = word;
	}
	return (int)n;
}

static int take_key(struct roce *g, const char *key, const char *value, struct pl_diag *diag)
{
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
	pl_diag_set(diag,
		"roce: '%s=%s': there are dev=packet:IFACE or udp://ADDRESS, connect=tcp or cm, service=uc or rc, queue=64 to %u, "
		"window=2 to queue, dscp=0 to 63, ecn=on or off",
		key, value, PL_RDMA_WINDOW_MAX);
	return -EINVAL;
}

static int parse(struct roce *g, const char *uri, struct pl_diag *diag)
{
	char *hosts, *names, *query, *pair;
	int n;

	g->text = strdup(uri + strlen(PL_TRANSLATE_ROCE));
	if (g->text == NULL)
		return -ENOMEM;
	hosts = g->text;
	query = strchr(hosts, '?');
	if (query != NULL)
		*query++ = '\0';
	names = strchr(hosts, '/');
	if (names == NULL || names[1] == '\0')
		return refuse(
			diag, "which stores? As roce://10.0.0.2:7471/last,lists?dev=packet:eth0");
	*names++ = '\0';
	n = split(hosts, g->servers, PL_COLLECTORS_MAX);
	if (n < 0)
		return refuse(diag, "which collectors? 1 to 64, as 10.0.0.2:7471,10.0.0.3:7471");
	g->collectors = (unsigned int)n;
	n = split(names, g->stores, PL_DTA_STORES_MAX);
	if (n < 0)
		return refuse(diag, "1 to 256 names of stores, with commas between them");
	g->n_stores = (unsigned int)n;
	while ((pair = strsep(&query, "&")) != NULL) {
		char *value = strchr(pair, '=');

		if (value == NULL)
			return refuse(diag, "a key without a value");
		*value++ = '\0';
		if (take_key(g, pair, value, diag) < 0)
			return -EINVAL;
	}
	if (g->dev == NULL)
		return refuse(diag, "through which interface? ?dev=packet:IFACE or udp://ADDRESS");
	if (g->by_cm && g->unreliable)
		return refuse(diag, "with connect=cm unacknowledged writes would not tell that a "
				    "collector is gone: service=rc");
	g->reliable |= g->by_cm;
	return 0;
}

static int open_all(struct roce *g, const struct pl_rights *rights, struct pl_diag *diag)
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
	g->memory = malloc((size_t)PL_BATCH_MAX * FRAME_BYTES);
	if (g->memory == NULL)
		return -ENOMEM;
	pl_frames_init(&g->frames, g->memory, (size_t)PL_BATCH_MAX * FRAME_BYTES);
	r = pl_uplink_new(&g->uplink, &uplink);
	if (r == -EINVAL)
		return refuse(diag, "collectors, stores and queue together are too many packets");
	if (r < 0)
		return r;
	dialer.nic = g->nic;
	dialer.uplink = g->uplink;
	return pl_dialer_new(&g->dialer, &dialer, diag);
}

/* Until one collector is there: it says what the stores are. */
static int wait_for_first(struct roce *g, const volatile sig_atomic_t *stop, struct pl_diag *diag)
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
		if (*stop != 0 || now_ns >= end_ns) {
			pl_diag_set(diag, "no collector is there: %s", pl_dialer_why(g->dialer, 0));
			return -EHOSTUNREACH;
		}
		rest(g, next < now_ns + 100 * MS ? next : now_ns + 100 * MS);
	}
}

bool pl_translate_is_roce(const char *where)
{
	return strncmp(where, PL_TRANSLATE_ROCE, strlen(PL_TRANSLATE_ROCE)) == 0;
}

int pl_translate_to_roce(struct pl_translate_out *ret, const char *uri,
	const struct pl_translate_open *open, const volatile sig_atomic_t *stop,
	struct pl_diag *diag)
{
	struct roce *g = calloc(1, sizeof(*g));
	int r;

	if (g == NULL)
		return -ENOMEM;
	g->queue = 4096;
	g->window = 128;
	r = parse(g, uri, diag);
	if (r == 0)
		r = open_all(g, open->rights, diag);
	if (r == 0)
		r = open->opened(open->arg, diag);
	if (r == 0) {
		r = wait_for_first(g, stop, diag);
		if (r < 0)
			hang_up(g);
	}
	if (r < 0) {
		(void)close_all(g);
		return r;
	}
	for (unsigned int s = 0; s < g->n_stores; s++)
		g->params[s] = *pl_dialer_store(g->dialer, s);
	*ret = (struct pl_translate_out){
		.ops = ops,
		.resume = resume,
		.stats = stats,
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
