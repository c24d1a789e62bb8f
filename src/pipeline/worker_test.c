/* SPDX-License-Identifier: BSD-2-Clause */
/* A worker over a port that follows a script: its reactions to every result of the port, and its
 * quiet points. */
#include "pipeline/worker.h"

#include <errno.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/test.h"
#include "netio/driver.h"
#include "pipeline/state.h"

enum { STEPS_MAX = 12, PACKETS = 5, FLOOD = -10000 };

/* Results of the port, in order: a number of packets, or an error; 0: nothing for now. After the
 * last one it stays silent. FLOOD: packets without end, until the script is changed. */
struct script {
	int steps[STEPS_MAX];
	int opens[STEPS_MAX]; /* of attempts to open it again: 0 or an error */
	bool gone;            /* all attempts fail */
	_Atomic unsigned int at, opened;
	_Atomic bool flood_ended;
	_Atomic uint64_t sent;
};

struct fake_port {
	struct pl_port port;
	struct script *script;
};

static const uint8_t garbage[4] = { 0xff, 0xff, 0xff, 0xff };

static int give(struct fake_port *self, struct pl_batch *batch, int n)
{
	for (int i = 0; i < n; i++)
		batch->pkts[i] = (struct pl_packet){
			.data = garbage,
			.len = sizeof(garbage),
			.wire_len = sizeof(garbage),
			.ts_ns = 1,
			.link = PL_LINK_UDP,
			.dport = 32766,
		};
	atomic_fetch_add(&self->script->sent, (uint64_t)n);
	return n;
}

static void doze(void)
{
	nanosleep(&(struct timespec){ .tv_nsec = 1000000 }, NULL);
}

static int fake_recv(
	struct pl_port *port, struct pl_batch *batch, int timeout_ms, struct pl_diag *diag)
{
	struct fake_port *self = (struct fake_port *)port;
	unsigned int at = atomic_load(&self->script->at);
	int step = at < STEPS_MAX ? self->script->steps[at] : 0;

	if (step == FLOOD && !atomic_load(&self->script->flood_ended))
		return give(self, batch, PACKETS);
	if (at < STEPS_MAX)
		atomic_store(&self->script->at, at + 1);
	if (step > 0)
		return give(self, batch, step);
	if (step == -ENETDOWN || step == -EIO)
		pl_diag_set(diag, "the cable is out");
	if (step < 0 && step != FLOOD)
		return step;
	if (timeout_ms > 0)
		doze();
	return 0;
}

static int fake_close(struct pl_port *port)
{
	free(port->name);
	free(port);
	return 0;
}

static const struct pl_port_driver fake_driver = { .scheme = "fake",
	.recv = fake_recv,
	.close = fake_close };

static int fake_open(void *arg, const struct pl_worker_source *source, struct pl_port **ret,
	struct pl_diag *diag)
{
	struct script *script = arg;
	unsigned int n = atomic_fetch_add(&script->opened, 1);
	struct fake_port *self;

	(void)source;
	if (script->gone && n > 0)
		return -ENODEV;
	if (n < STEPS_MAX && script->opens[n] < 0) {
		pl_diag_set(diag, "no such cable");
		return script->opens[n];
	}
	self = calloc(1, sizeof(*self));
	if (self == NULL)
		return -ENOMEM;
	self->port.driver = &fake_driver;
	self->port.mode = PL_PORT_RECV;
	self->port.fd = -1;
	self->port.name = strdup("fake:0");
	self->script = script;
	*ret = &self->port;
	return 0;
}

static struct pl_engine *new_engine(bool all)
{
	static const char text[] = "decode:\n  max_paths: 64\naggregate:\n  max_queues: 8\n";
	const struct pl_changes make = { all, true, all };
	struct pl_profile profile = { .report_version = 0 };
	struct pl_config config;
	struct pl_engine *e = NULL;

	if (pl_config_parse(&config, "test", text, strlen(text), NULL) < 0)
		abort();
	if (pl_pipeline_engine_new(&e, &config, &profile, &(struct pl_worker){ .id = 1 }, &make) <
		0)
		abort();
	pl_config_done(&config);
	return e;
}

static struct pl_worker *start(struct script *script)
{
	struct pl_worker_source source = {
		.name = "fake", .uri = "fake:0", .of = 1, .open = fake_open, .open_arg = script
	};
	struct pl_worker *w;

	if (pl_worker_new(&w, &source, 1, 4, NULL) < 0 || pl_worker_start(w, new_engine(true)) < 0)
		abort();
	return w;
}

static void stop(struct pl_worker *w)
{
	pl_worker_stop_by(w, pl_clock_mono_ns() + 1000000000u);
	pl_worker_join(w);
}

static bool await_script(const struct script *script)
{
	return eventually(atomic_load(&script->at) >= STEPS_MAX);
}

/* Every packet of every port is in the account. */
static void balanced(struct pl_worker *w, const struct script *script, const char *name)
{
	uint64_t sum = 0, sent = atomic_load(&script->sent);

	pl_worker_ask(w);
	ok(eventually(pl_worker_answered(w)), "%s: snapshot", name);
	pl_worker_take(w);
	for (unsigned int i = 0; i < PL_V_MAX; i++)
		sum += w->snap.totals.verdicts[i];
	eq(w->snap.totals.packets, sent, "%s: packets", name);
	eq(w->snap.port.packets, sent, "%s: of the port", name);
	eq(sum, sent, "%s: verdicts", name);
}

struct situation {
	const char *name;
	int steps[STEPS_MAX], opens[STEPS_MAX];
	int error; /* at the end */
	unsigned int losses, opened;
	bool ended;
	const char *trouble;
};

static const struct situation situations[] = {
	{ .name = "packets", .steps = { 5, 3, 0, 256 }, .opened = 1, .trouble = "" },
	{ .name = "interface down and up",
		.steps = { 5, -ENETDOWN, 0, 0, -EAGAIN, 4 },
		.losses = 1,
		.opened = 1,
		.trouble = "" },
	{ .name = "interface stays down",
		.steps = { 5, -ENETDOWN },
		.error = ENETDOWN,
		.losses = 1,
		.opened = 1,
		.trouble = "the cable is out" },
	{ .name = "down is told twice",
		.steps = { -ENETDOWN, -ENETDOWN, 0, -EAGAIN },
		.losses = 1,
		.opened = 1,
		.trouble = "" },
	{ .name = "renamed", .steps = { 1, -EAGAIN, 1 }, .opened = 1, .trouble = "" },
	{ .name = "broken, opened anew",
		.steps = { 5, -EIO, 7 },
		.losses = 1,
		.opened = 2,
		.trouble = "" },
	{ .name = "broken, opened anew at the third attempt",
		.steps = { 5, -EIO, 7, 9 },
		.opens = { 0, -ENODEV, -ENODEV },
		.losses = 1,
		.opened = 4,
		.trouble = "" },
	{ .name = "broken twice",
		.steps = { 5, -EIO, 7, -EBADF, 1 },
		.losses = 2,
		.opened = 3,
		.trouble = "" },
	{ .name = "end of a file",
		.steps = { 5, -ENODATA },
		.opened = 1,
		.ended = true,
		.trouble = "" },
	{ .name = "damaged file",
		.steps = { 5, -EBADMSG },
		.error = EBADMSG,
		.losses = 1,
		.opened = 1,
		.ended = true,
		.trouble = "Bad message" },
	{ .name = "no right to open it again",
		.steps = { 5, -EIO },
		.opens = { 0, -ENODEV, -EPERM },
		.error = EPERM,
		.losses = 1,
		.opened = 3,
		.ended = true,
		.trouble = "no such cable" },
};

static void test_situations(void)
{
	for (size_t i = 0; i < sizeof(situations) / sizeof(situations[0]); i++) {
		const struct situation *s = &situations[i];
		struct script script = { .sent = 0 };
		char trouble[256];
		struct pl_worker *w;

		memcpy(script.steps, s->steps, sizeof(s->steps));
		memcpy(script.opens, s->opens, sizeof(s->opens));
		w = start(&script);
		if (s->ended)
			ok(eventually(atomic_load(&w->ended)), "%s: ends", s->name);
		else
			ok(await_script(&script), "%s: plays", s->name);
		balanced(w, &script, s->name);
		eq(pl_worker_trouble(w, trouble, sizeof(trouble)), s->error, "%s: error", s->name);
		streq(trouble, s->trouble, "%s: words", s->name);
		eq(atomic_load(&w->losses), s->losses, "%s: losses", s->name);
		eq(atomic_load(&script.opened), s->opened, "%s: times opened", s->name);
		stop(w);
		balanced(w, &script, s->name);
		pl_worker_free(w);
	}
}

/* Parts are exchanged while packets come: nothing is lost or counted twice, whatever part it is. */
static void test_exchange(void)
{
	struct script script = { .steps = { FLOOD, -EIO, 5 }, .opens = { 0, -ENODEV, -ENODEV } };
	struct pl_worker *w = start(&script);
	struct pl_engine *old;
	uint64_t before = 0;
	bool grew = true;

	for (int i = 0; i < 60; i++) {
		pl_worker_exchange(w, new_engine(i % 3 != 0), &old);
		pl_engine_free(old);
		pl_worker_ask(w);
		if (!eventually(pl_worker_answered(w)))
			break;
		pl_worker_take(w);
		grew = grew && w->snap.totals.packets >= before;
		before = w->snap.totals.packets;
	}
	ok(grew && before > 0, "counts never go back over 60 exchanges");
	atomic_store(&script.flood_ended, true);
	/* The source is lost now; exchanges go on. */
	pl_worker_exchange(w, new_engine(true), &old);
	pl_engine_free(old);
	ok(await_script(&script), "comes back after the exchange");
	balanced(w, &script, "exchanged");
	stop(w);
	pl_worker_exchange(w, new_engine(true), &old);
	pl_engine_free(old);
	balanced(w, &script, "exchanged when it has ended");
	pl_worker_free(w);
}

/* The source never comes back: a stop that waited for it would not end. */
static void test_stop_while_lost(void)
{
	struct script script = { .steps = { 5, -EIO }, .gone = true };
	struct pl_worker *w = start(&script);

	ok(eventually(atomic_load(&w->error) != 0), "a source is lost");
	stop(w);
	balanced(w, &script, "stopped while lost");
	pl_worker_free(w);
}

static void no_work(void *arg, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	(void)arg;
	(void)now_ns;
	(void)ts_ns;
	(void)out;
}

static void no_totals(void *arg, struct pl_totals *totals)
{
	(void)arg;
	(void)totals;
}

static void no_harvest(void *arg, struct pl_aggregate *into, uint64_t now_ns, uint64_t ts_ns)
{
	(void)arg;
	(void)into;
	(void)now_ns;
	(void)ts_ns;
}

static void no_state(void *arg, struct pl_snapshot *snap, bool top)
{
	(void)arg;
	(void)snap;
	(void)top;
}

static void one_end(void *arg, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	(void)now_ns;
	++*(unsigned int *)arg;
	out->events[out->n++] =
		(struct pl_event){ .ts_ns = ts_ns, .event = PL_EVENT_LOOP, .phase = PL_PHASE_END };
}

/* A source that detects by itself ends its events when it is removed. */
static void test_removed(void)
{
	struct script script = { .sent = 0 };
	unsigned int ends = 0;
	const struct pl_worker_aside aside = { .work = no_work,
		.end = one_end,
		.totals = no_totals,
		.harvest = no_harvest,
		.state = no_state,
		.arg = &ends };
	struct pl_worker_source source = { .name = "fake",
		.uri = "fake:0",
		.of = 1,
		.aside = &aside,
		.open = fake_open,
		.open_arg = &script };
	struct pl_worker *w;

	if (pl_worker_new(&w, &source, 1, 4, NULL) < 0 || pl_worker_start(w, new_engine(true)) < 0)
		abort();
	stop(w);
	eq(ends, 0, "no event ends because the thread does");
	pl_worker_end_events(w);
	eq(ends, 1, "a removed source ends its events");
	eq(w->events.n, 0, "and they are delivered");
	pl_worker_free(w);
}

static void test_cannot_open(void)
{
	struct script script = { .opens = { -ENODEV } };
	struct pl_worker_source source = {
		.name = "fake", .uri = "fake:0", .of = 1, .open = fake_open, .open_arg = &script
	};
	struct pl_diag diag = { .text = "" };
	struct pl_worker *w;

	eq(-pl_worker_new(&w, &source, 1, 4, &diag), ENODEV,
		"the first opening is not tried again");
	streq(diag.text, "no such cable");
	source.open = NULL;
	source.uri = "pcap:/nonexistent/x.pcap";
	eq(-pl_worker_new(&w, &source, 1, 4, &diag), ENOENT, "no such file");
}

int main(void)
{
	/* Log messages are for the test above, not for this program's output. */
	pl_log_set_level(PL_LOG_ERROR);
	test_situations();
	test_exchange();
	test_stop_while_lost();
	test_removed();
	test_cannot_open();
	return pl_test_done();
}
