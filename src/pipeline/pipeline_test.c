/* SPDX-License-Identifier: BSD-2-Clause */
/* The collector in one process, over the loopback: its account, what a reload keeps and what it
 * makes anew, what a reload that fails leaves behind. */
#include "pipeline/pipeline.h"

#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/condition.h"
#include "base/log.h"
#include "base/test.h"
#include "gen/gen.h"
#include "pipeline/state.h"

static char dir[] = "/tmp/pathline-pipeline-test-XXXXXX";

/* Small tables, so that a pipeline is made quickly. %s in text: the folder for files. */
static int parse(struct pl_config *ret, const char *text, struct pl_diag *diag)
{
	static const char small[] = "aggregate:\n  max_queues: 64\n  max_ports: 64\n"
				    "  max_links: 64\n  max_paths: 64\nweb:\n  listen: off\n";
	char *whole = NULL, *filled = NULL;
	int r;

	if (asprintf(&filled, text, dir, dir) < 0 || asprintf(&whole, "%s%s", filled, small) < 0)
		abort();
	r = pl_config_parse(ret, "test", whole, strlen(whole), diag);
	free(filled);
	free(whole);
	return r;
}

static struct pl_pipeline *start(const char *text)
{
	struct pl_diag diag = { .text = "" };
	struct pl_pipeline *p = NULL;
	struct pl_config c;

	if (parse(&c, text, &diag) < 0 || pl_pipeline_new(&p, &c, NULL, &diag) < 0 ||
		pl_pipeline_start(p, &diag) < 0) {
		printf("Bail out! %s\n", diag.text);
		exit(EXIT_FAILURE);
	}
	return p;
}

static struct pl_pipeline_stats stats_of(struct pl_pipeline *p)
{
	struct pl_pipeline_stats s;
	int r = pl_pipeline_stats(p, &s);

	if (r < 0) {
		printf("Bail out! no numbers: %s\n", strerror(-r));
		exit(EXIT_FAILURE);
	}
	return s;
}

/* Sends `count` datagrams of the generator; bad of them are not telemetry at all. */
static void send_to(uint16_t port, uint64_t count, unsigned int bad)
{
	struct pl_gen_cfg cfg = { .seed = 1, .count = count - bad, .udp = true, .flows = 10 };
	static struct pl_batch batch;
	static const uint8_t garbage[] = { 0xff, 0xff, 0xff };
	struct pl_port *out;
	struct pl_gen *gen;
	char uri[64];

	snprintf(uri, sizeof(uri), "udp://127.0.0.1:%u", port);
	if (pl_gen_new(&gen, &cfg, NULL) < 0 ||
		pl_port_open(&out, uri, PL_PORT_SEND, NULL, NULL) < 0)
		abort();
	while (pl_gen_next(gen, UINT64_MAX, &batch) > 0) {
		while (batch.n > 0) {
			int n = pl_port_send(out, &batch, NULL);

			if (n <= 0)
				abort();
			batch.n -= (uint32_t)n;
			memmove(batch.pkts, batch.pkts + n, batch.n * sizeof(batch.pkts[0]));
		}
	}
	for (unsigned int i = 0; i < bad; i++) {
		batch.n = 1;
		batch.pkts[0] = (struct pl_packet){ .data = garbage,
			.len = sizeof(garbage),
			.wire_len = sizeof(garbage),
			.link = PL_LINK_UDP };
		if (pl_port_send(out, &batch, NULL) != 1)
			abort();
	}
	pl_port_close(out);
	pl_gen_free(gen);
}

static uint16_t port_of(const struct pl_pipeline *p, unsigned int i)
{
	uint16_t port = 0;

	return pl_pipeline_listener(p, i, &port) != NULL ? port : 0;
}

/* Waits until `want` packets were received, and checks that all are in the account. */
static void received(struct pl_pipeline *p, uint64_t want, const char *name)
{
	struct pl_pipeline_stats s = stats_of(p);
	uint64_t verdicts = 0;

	(void)eventually(s.ports.packets + s.ports.kernel_drops >= want, s = stats_of(p));
	for (unsigned int i = 0; i < PL_V_MAX; i++)
		verdicts += s.totals.verdicts[i];
	eq(s.ports.packets + s.ports.kernel_drops, want, "%s: received", name);
	eq(s.totals.packets, want, "%s: decoded or refused", name);
	eq(verdicts, want, "%s: one verdict each", name);
}

/* After the stop, every record offered to an output is accounted for. */
static void outputs_balance(struct pl_pipeline *p, const char *name)
{
	struct pl_pipeline_stats s = stats_of(p);
	uint64_t dropped = 0;

	for (unsigned int i = 0; i < PL_EXPORT_DROP_MAX; i++)
		dropped += s.outputs.dropped[i];
	eq(s.outputs.offered, s.outputs.accepted + s.outputs.full, "%s: offered", name);
	eq(s.outputs.taken, s.outputs.accepted, "%s: taken", name);
	eq(s.outputs.delivered + s.outputs.filtered + dropped + s.outputs.undelivered,
		s.outputs.offered, "%s: delivered and dropped", name);
	ok(s.outputs.delivered > 0, "%s: something is delivered", name);
}

#define IOAM(time) "decode:\n  ioam_time: [\"" time "\"]\n"
#define ONE        "sources:\n  - uri: udp://127.0.0.1:0\n"

static void test_account(void)
{
	struct pl_pipeline *p = start("sources:\n  - uri: udp://127.0.0.1:0\n    sockets: 1\n"
				      "outputs:\n  - path: %s/account.jsonl\n");

	send_to(port_of(p, 0), 3000, 17);
	received(p, 3000, "account");
	eq(pl_pipeline_stop(p, UINT64_C(5) * 1000000000u), 0, "account: nothing left at the stop");
	outputs_balance(p, "account");
	pl_pipeline_free(p);
}

/* Configurations before and after a reload. The source ONE stays; decode_anew: the decoder's
 * account of exporters begins again. */
static const struct {
	const char *name, *before, *after;
	unsigned int workers; /* afterwards */
	unsigned int outputs;
	bool decode_anew, detect_anew;
} reloads[] = {
	{ "the same", ONE, ONE, 1, 0, false, false },
	{ "another source", ONE, ONE "  - uri: udp://127.0.0.1:0?rcvbuf=65536\n", 2, 0, false,
		false },
	{ "a source with two sockets", ONE, ONE "  - uri: udp://127.0.0.1:45017?sockets=2\n", 3, 0,
		false, false },
	{ "one source less", ONE "  - uri: udp://127.0.0.1:0?rcvbuf=65536\n", ONE, 1, 0, false,
		false },
	{ "another output", ONE, ONE "outputs:\n  - path: %s/a.jsonl\n", 1, 1, false, false },
	{ "one output less", ONE "outputs:\n  - path: %s/a.jsonl\n  - path: %s/b.jsonl\n",
		ONE "outputs:\n  - path: %s/b.jsonl\n", 1, 1, false, false },
	{ "an output's expression", ONE "outputs:\n  - path: %s/a.jsonl\n",
		ONE "outputs:\n  - path: %s/a.jsonl\n    where: 'hop_count > 1'\n", 1, 1, false,
		false },
	{ "detection", ONE, ONE "detect:\n  queue_depth:\n    threshold: 7\n", 1, 0, false, false },
	{ "detection's tables", ONE, ONE "detect:\n  max_flows: 262144\n", 1, 0, false, true },
	{ "a profile", ONE, ONE "profiles:\n  - match: 192.0.2.0/24\n", 1, 0, true, true },
	{ "decoding", ONE, ONE "decode:\n  latency_max: 1s\n", 1, 0, true, true },
	{ "the same formats of time", ONE IOAM("123=ptp"), ONE IOAM("123=ptp"), 1, 0, false,
		false },
	{ "another format of time", ONE IOAM("123=ptp"), ONE IOAM("123=ntp"), 1, 0, true, true },
	{ "when exporters are forgotten", ONE, ONE "detect:\n  forget: 1h\n", 1, 0, true, true },
};

static void test_reloads(void)
{
	for (size_t i = 0; i < sizeof(reloads) / sizeof(reloads[0]); i++) {
		struct pl_pipeline *p = start(reloads[i].before);
		struct pl_diag diag = { .text = "" };
		struct pl_pipeline_stats before, after;
		const struct pl_decode *decode;
		const struct pl_detect *detect;
		struct pl_config c;

		send_to(port_of(p, 0), 500, 3);
		received(p, 500, reloads[i].name);
		if (parse(&c, reloads[i].after, &diag) < 0) {
			ok(false, "%s: %s", reloads[i].name, diag.text);
			pl_pipeline_stop(p, 0);
			pl_pipeline_free(p);
			continue;
		}
		before = stats_of(p);
		decode = p->workers[0]->engine->decode;
		detect = p->workers[0]->engine->detect;
		eq(pl_pipeline_reload(p, &c, &diag), 0, "%s: reload%s", reloads[i].name, diag.text);
		eq(p->n_workers, reloads[i].workers, "%s: workers", reloads[i].name);
		eq(p->n_outputs, reloads[i].outputs, "%s: outputs", reloads[i].name);
		ok((p->workers[0]->engine->decode != decode) == reloads[i].decode_anew,
			"%s: the decoder %s", reloads[i].name,
			reloads[i].decode_anew ? "is new" : "stays");
		ok((p->workers[0]->engine->detect != detect) == reloads[i].detect_anew,
			"%s: the detector %s", reloads[i].name,
			reloads[i].detect_anew ? "is new" : "stays");
		after = stats_of(p);
		eq(after.flows, reloads[i].detect_anew ? 0 : before.flows, "%s: flows known",
			reloads[i].name);
		send_to(port_of(p, 0), 700, 0);
		received(p, 1200, reloads[i].name);
		after = stats_of(p);
		ok(after.totals.stored > before.totals.stored, "%s: goes on", reloads[i].name);
		eq(after.totals.stored, after.totals.paths, "%s: no report lost on the way",
			reloads[i].name);
		pl_pipeline_stop(p, UINT64_C(5) * 1000000000u);
		pl_pipeline_free(p);
	}
}

/* ---- a worker that does not answer ---- */

static pthread_mutex_t stuck = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool has_answer;

static void wait_for_stuck(void *arg, uint64_t now_ns, uint64_t ts_ns, struct pl_event_batch *out)
{
	(void)arg;
	(void)now_ns;
	(void)ts_ns;
	(void)out;
	pthread_mutex_lock(&stuck);
	pthread_mutex_unlock(&stuck);
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

static bool no_exporter(void *arg, uint64_t *pos, struct pl_exporter *ret)
{
	(void)arg;
	(void)pos;
	(void)ret;
	return false;
}

static void *ask_for_stats(void *arg)
{
	(void)stats_of(arg);
	atomic_store(&has_answer, true);
	return NULL;
}

/* Returns whether the pipeline is unlocked while the other thread waits. */
static bool is_unlocked(struct pl_pipeline *p)
{
	const bool had = pthread_mutex_trylock(&p->lock) == 0;

	if (had)
		pthread_mutex_unlock(&p->lock);
	return had && !atomic_load(&has_answer);
}

static bool is_slow(struct pl_pipeline *p)
{
	struct pl_conditions list;

	pl_pipeline_conditions(p, &list);
	for (unsigned int i = 0; i < list.n; i++) {
		if (strcmp(list.items[i].name, "worker_slow") == 0)
			return true;
	}
	return false;
}

static struct pl_pipeline_stats stats_now(struct pl_pipeline *p)
{
	struct pl_pipeline_stats s;

	if (pl_pipeline_stats_now(p, &s) < 0)
		abort();
	return s;
}

/* The worker is stuck: a reader that waits for it calls it slow. */
static void test_now(struct pl_pipeline *p)
{
	struct pl_pipeline_stats s;

	ok(eventually(is_slow(p), (void)stats_now(p)), "a worker that is asked in passing");
	ok(stats_now(p).open_ns > 0, "and does not answer is slow");
	send_to(port_of(p, 0), 100, 0);
	pthread_mutex_lock(&p->lock);
	pl_pipeline_forget_answers(p);
	p->behind = false;
	pthread_mutex_unlock(&p->lock);
	s = stats_now(p);
	eq(s.totals.packets, 500, "what it told last is told");
	ok(!p->behind, "without waiting for it");
}

/* The worker answers again. */
static void test_now_again(struct pl_pipeline *p)
{
	struct pl_pipeline_stats s = stats_now(p);

	ok(eventually(s.totals.packets == 600, s = stats_now(p)), "its next answer is taken");
	ok(!is_slow(p), "then it is not slow");
}

static void test_stuck(void)
{
	static const struct pl_worker_aside aside = { .work = wait_for_stuck,
		.totals = no_totals,
		.harvest = no_harvest,
		.state = no_state,
		.exporter = no_exporter };
	struct pl_diag diag = { .text = "" };
	struct pl_pipeline *p = NULL;
	struct pl_pipeline_stats s;
	struct pl_config c;
	pthread_t asker;

	if (parse(&c, ONE, &diag) < 0 || pl_pipeline_new(&p, &c, NULL, &diag) < 0) {
		ok(false, "a pipeline: %s", diag.text);
		return;
	}
	p->workers[0]->source.aside = &aside;
	eq(pl_pipeline_start(p, &diag), 0, "it starts");
	send_to(port_of(p, 0), 500, 0);
	received(p, 500, "stuck");
	ok(!is_slow(p), "a worker that answers is not slow");
	pthread_mutex_lock(&stuck);
	test_now(p);
	pthread_mutex_unlock(&stuck);
	test_now_again(p);
	pthread_mutex_lock(&stuck);
	ok(eventually(is_slow(p), (void)stats_of(p)), "one that does not is a condition");
	send_to(port_of(p, 0), 100, 0);
	s = stats_of(p);
	eq(s.totals.packets, 600, "what it told last is told");
	ok(s.age_ns > 0, "with its age");
	ok(pthread_create(&asker, NULL, ask_for_stats, p) == 0, "somebody asks");
	ok(eventually(is_unlocked(p) || atomic_load(&has_answer)) && !atomic_load(&has_answer),
		"and holds no lock while it waits");
	pthread_join(asker, NULL);
	pthread_mutex_unlock(&stuck);
	received(p, 700, "stuck no more");
	ok(eventually(!is_slow(p)), "then it is no condition");
	pl_pipeline_stop(p, 0);
	pl_pipeline_free(p);
}

/* Outputs after a reload, in order: names are unique, and outputs that stay keep theirs. */
#define OUTPUTS(list) ONE "outputs: [" list "]\n"
#define FILE_A        "{path: %1$s/a.jsonl}"
#define FILE_B        "{path: %1$s/b.jsonl}"
#define HOOK(port)    "{type: webhook, url: 'http://127.0.0.1:" port "/hook'}"
static const struct {
	const char *name, *before, *after, *names; /* names NULL: it is refused */
} renames[] = {
	{ "an unnamed one before an unnamed one", OUTPUTS(FILE_A), OUTPUTS(FILE_B ", " FILE_A),
		"jsonl0 jsonl1" },
	{ "one goes and another comes", OUTPUTS(FILE_A), OUTPUTS(FILE_B), "jsonl1" },
	{ "two change places", OUTPUTS(FILE_A ", " FILE_B), OUTPUTS(FILE_B ", " FILE_A),
		"jsonl0 jsonl1" },
	{ "one without a file before another one", OUTPUTS(HOOK("1")),
		OUTPUTS(HOOK("2") ", " HOOK("1")), "webhook0 webhook1" },
	{ "one without a file in the place of another one", OUTPUTS(HOOK("1")), OUTPUTS(HOOK("2")),
		"webhook1" },
	{ "equal ones without files", OUTPUTS(HOOK("1") ", " HOOK("1")), OUTPUTS(HOOK("1")),
		"webhook0" },
	{ "a name that was made up, for another file", OUTPUTS(FILE_A),
		OUTPUTS("{name: jsonl0, path: %1$s/b.jsonl}, " FILE_A), NULL },
	{ "names that change places",
		OUTPUTS("{name: x, path: %1$s/a.jsonl}, {name: y, path: %1$s/b.jsonl}"),
		OUTPUTS("{name: y, path: %1$s/a.jsonl}, {name: x, path: %1$s/b.jsonl}"), "x y" },
	{ "the old name for another file", OUTPUTS("{name: x, path: %1$s/a.jsonl}"),
		OUTPUTS("{name: y, path: %1$s/a.jsonl}, {name: x, path: %1$s/b.jsonl}"), NULL },
	{ "a name that goes", OUTPUTS("{name: x, path: %1$s/a.jsonl}"),
		OUTPUTS("{name: x, path: %1$s/b.jsonl}"), "x" },
};

static void test_names(void)
{
	for (size_t i = 0; i < sizeof(renames) / sizeof(renames[0]); i++) {
		struct pl_pipeline *p = start(renames[i].before);
		struct pl_diag diag = { .text = "" };
		struct pl_config c;
		char names[128] = "";
		int r = parse(&c, renames[i].after, &diag);

		if (r == 0) {
			r = pl_pipeline_reload(p, &c, &diag);
			if (r < 0)
				pl_config_done(&c);
		}
		eq(r, renames[i].names != NULL ? 0 : -EINVAL, "%s: %s", renames[i].name, diag.text);
		for (unsigned int k = 0; r == 0 && k < p->n_outputs; k++)
			snprintf(names + strlen(names), sizeof(names) - strlen(names), "%s%s",
				k > 0 ? " " : "", pl_output_name(p->outputs[k]));
		if (r == 0)
			streq(names, renames[i].names, "%s: the names", renames[i].name);
		pl_pipeline_stop(p, 0);
		pl_pipeline_free(p);
	}
}

/* Thresholds change while a level is raised: it continues, or ends, by the new ones. */
static void test_rules(void)
{
	static const struct {
		const char *name, *text;
		bool ends;
	} rules[] = {
		{ "a higher threshold",
			ONE "detect:\n  queue_depth:\n    threshold: 1000000\n    end_hold: 10ms\n",
			true },
		{ "no threshold", ONE "detect:\n  queue_depth:\n    enabled: false\n", true },
		{ "another event",
			ONE
			"detect:\n  idle: 1h\n  flow_start: true\n  queue_depth:\n    threshold: 1\n    begin_hold: 0s\n    end_hold: 1h\n",
			false },
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		struct pl_pipeline *p = start(ONE
			"detect:\n  idle: 1h\n  queue_depth:\n    threshold: 1\n    begin_hold: 0s\n    end_hold: 1h\n");
		struct pl_pipeline_stats before, after;
		struct pl_config c;

		send_to(port_of(p, 0), 500, 0);
		received(p, 500, rules[i].name);
		before = stats_of(p);
		ok(before.raised > 0, "%s: %llu levels are raised", rules[i].name,
			(unsigned long long)before.raised);
		if (parse(&c, rules[i].text, NULL) < 0)
			abort();
		eq(pl_pipeline_reload(p, &c, NULL), 0, "%s: reload", rules[i].name);
		if (rules[i].ends) {
			/* The new rules apply with the next values, or at once when there is no
			 * rule any more. */
			send_to(port_of(p, 0), 500, 0);
			received(p, 1000, rules[i].name);
			(void)eventually(stats_of(p).raised == 0);
		}
		after = stats_of(p);
		eq(after.raised, rules[i].ends ? 0 : before.raised, "%s: levels raised",
			rules[i].name);
		eq(after.flows, before.flows, "%s: flows known", rules[i].name);
		ok(after.totals.events[PL_EVENT_QUEUE_DEPTH] >=
				before.totals.events[PL_EVENT_QUEUE_DEPTH],
			"%s: events are not counted anew", rules[i].name);
		pl_pipeline_stop(p, UINT64_C(5) * 1000000000u);
		pl_pipeline_free(p);
	}
}

/* A new detector does not know the levels of the old one, which therefore end. */
static void test_levels_of_old_detector(void)
{
	struct pl_pipeline *p = start(ONE
		"detect:\n  idle: 1h\n  queue_depth:\n    threshold: 1\n    begin_hold: 0s\n    end_hold: 1h\n");
	struct pl_pipeline_stats before, after;
	struct pl_config c;

	send_to(port_of(p, 0), 500, 0);
	received(p, 500, "old detector");
	before = stats_of(p);
	ok(before.raised > 0, "old detector: levels are raised");
	if (parse(&c, ONE "detect:\n  max_flows: 512\n", NULL) < 0)
		abort();
	eq(pl_pipeline_reload(p, &c, NULL), 0, "old detector: reload");
	after = stats_of(p);
	eq(after.raised, 0, "old detector: nothing is raised");
	eq(after.totals.events[PL_EVENT_QUEUE_DEPTH] + after.totals.events[PL_EVENT_HOP_LATENCY],
		before.totals.events[PL_EVENT_QUEUE_DEPTH] +
			before.totals.events[PL_EVENT_HOP_LATENCY] + before.raised,
		"old detector: each level has an end");
	pl_pipeline_stop(p, UINT64_C(5) * 1000000000u);
	pl_pipeline_free(p);
}

/* Reloads that fail at different steps, and change nothing. `taken` is a port in use by others. */
static const char *const bad_reloads[] = {
	ONE "  - uri: udp://127.0.0.1:%u\n",
	ONE "  - uri: udp://127.0.0.1:0?rcvbuf=9000\n  - uri: udp://127.0.0.1:%u?sockets=2\n",
	ONE "outputs:\n  - path: /nonexistent/x.jsonl\n# %u\n",
	ONE "  - uri: pcap:/nonexistent/x.pcap\n# %u\n",
	ONE "  - uri: udp://192.0.2.1:%u\n",
};

static void test_bad_reloads(void)
{
	struct sockaddr_in sa = { .sin_family = AF_INET,
		.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct pl_pipeline *p = start(ONE "outputs:\n  - path: %s/bad.jsonl\n");
	int other = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(sa);
	uint64_t sent = 0;

	if (bind(other, (struct sockaddr *)&sa, sizeof(sa)) < 0 ||
		getsockname(other, (struct sockaddr *)&sa, &len) < 0)
		abort();
	for (size_t i = 0; i < sizeof(bad_reloads) / sizeof(bad_reloads[0]); i++) {
		const struct pl_engine *engine = p->workers[0]->engine;
		struct pl_diag diag = { .text = "" };
		char text[256], name[32];
		struct pl_config c;

		snprintf(text, sizeof(text), bad_reloads[i], ntohs(sa.sin_port));
		snprintf(name, sizeof(name), "bad reload %zu", i);
		if (parse(&c, text, &diag) < 0)
			abort();
		ok(pl_pipeline_reload(p, &c, &diag) < 0, "%s fails", name);
		ok(diag.text[0] != '\0', "%s: %s", name, diag.text);
		pl_config_done(&c);
		eq(p->n_workers, 1, "%s: workers", name);
		eq(p->n_outputs, 1, "%s: outputs", name);
		ok(p->workers[0]->engine == engine, "%s: the same parts", name);
		eq(p->reloads_failed, i + 1, "%s: counted", name);
		send_to(port_of(p, 0), 300, 1);
		sent += 300;
		received(p, sent, name);
	}
	close(other);
	eq(pl_pipeline_stop(p, UINT64_C(5) * 1000000000u), 0, "bad reloads: nothing left");
	outputs_balance(p, "bad reloads");
	pl_pipeline_free(p);
}

struct sender {
	uint16_t port;
	uint64_t count;
};

static void *send_thread(void *arg)
{
	const struct sender *s = arg;

	send_to(s->port, s->count, 0);
	return NULL;
}

/* Reloads with different changes while packets come: nothing is lost or counted twice. */
static void test_reload_under_load(void)
{
	static const char *const texts[] = {
		ONE,
		ONE "decode:\n  latency_max: 1s\n",
		ONE "outputs:\n  - path: %s/load.jsonl\n",
		ONE "detect:\n  queue_depth:\n    threshold: 7\n",
		ONE "  - uri: udp://127.0.0.1:0?rcvbuf=65536\n",
	};
	struct pl_pipeline *p = start(ONE);
	struct sender sender = { .port = port_of(p, 0), .count = 20000 };
	unsigned int good = 0;
	pthread_t thread;

	if (pthread_create(&thread, NULL, send_thread, &sender) != 0)
		abort();
	for (unsigned int i = 1; i <= 40; i++) {
		struct pl_pipeline_stats s;
		struct pl_config c;

		if (parse(&c, texts[i % (sizeof(texts) / sizeof(texts[0]))], NULL) < 0)
			abort();
		good += pl_pipeline_reload(p, &c, NULL) == 0;
		s = stats_of(p);
		good -= s.totals.packets != s.ports.packets;
	}
	pthread_join(thread, NULL);
	eq(good, 40, "reloads under load, each with a balanced account");
	received(p, 20000, "under load");
	pl_pipeline_stop(p, UINT64_C(5) * 1000000000u);
	pl_pipeline_free(p);
}

/* A file is a source with an end; a damaged one makes the collector not ready, with the reason. */
static void test_files(void)
{
	static const uint8_t damaged[] = { 0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0,
		0, 0xff, 0xff, 0, 0, 1, 0, 0, 0, /* a record of 4 GiB */ 1, 0, 0, 0, 1, 0, 0, 0,
		0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff };
	struct pl_gen_cfg cfg = { .seed = 1, .count = 1000 };
	struct pl_pipeline_stats before, after;
	static struct pl_batch batch;
	struct pl_config c;
	struct pl_pipeline *p;
	struct pl_port *out;
	struct pl_gen *gen;
	struct pl_buf json;
	char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/damaged.pcap", dir);
	f = fopen(path, "we");
	if (f == NULL || fwrite(damaged, sizeof(damaged), 1, f) != 1 || fclose(f) != 0)
		abort();
	snprintf(path, sizeof(path), "pcap:%s/good.pcap", dir);
	if (pl_gen_new(&gen, &cfg, NULL) < 0 ||
		pl_port_open(&out, path, PL_PORT_SEND, NULL, NULL) < 0)
		abort();
	while (pl_gen_next(gen, UINT64_MAX, &batch) > 0) {
		if (pl_port_send(out, &batch, NULL) != (int)batch.n)
			abort();
	}
	pl_port_close(out);
	pl_gen_free(gen);

	p = start("sources:\n  - uri: pcap:%s/good.pcap\n");
	received(p, 1000, "file");
	(void)eventually(atomic_load(&p->workers[0]->ended));
	received(p, 1000, "file, read to its end");
	ok(pl_pipeline_ready(p, NULL), "a file that was read is no reason to be not ready");
	pl_pipeline_stop(p, 0);
	pl_pipeline_free(p);

	p = start(
		"sources:\n  - uri: pcap:%s/good.pcap\ndetect:\n  queue_depth:\n    threshold: 1\n    begin_hold: 0s\n    end_hold: 1h\n");
	received(p, 1000, "file with events");
	(void)eventually(atomic_load(&p->workers[0]->ended));
	before = stats_of(p);
	ok(before.raised > 0, "levels are raised when the file ends");
	if (parse(&c, ONE, NULL) < 0)
		abort();
	eq(pl_pipeline_reload(p, &c, NULL), 0, "its source is removed");
	after = stats_of(p);
	eq(after.totals.events[PL_EVENT_QUEUE_DEPTH],
		before.totals.events[PL_EVENT_QUEUE_DEPTH] + before.raised, "each has an end");
	pl_pipeline_stop(p, 0);
	pl_pipeline_free(p);

	p = start("sources:\n  - uri: pcap:%s/damaged.pcap\n");
	(void)eventually(atomic_load(&p->workers[0]->ended));
	pl_buf_init(&json);
	ok(!pl_pipeline_ready(p, &json), "a damaged file is");
	ok(strstr(json.data, "\"ok\":false,\"trouble\":\"") != NULL, "and says so: %s", json.data);
	pl_buf_done(&json);
	pl_pipeline_stop(p, 0);
	pl_pipeline_free(p);
}

int main(void)
{
	char command[64];

	/* Some of these cause errors on purpose. */
	pl_log_set_level(PL_LOG_ERROR);
	if (mkdtemp(dir) == NULL)
		return EXIT_FAILURE;
	test_account();
	test_reloads();
	test_names();
	test_stuck();
	test_rules();
	test_levels_of_old_detector();
	test_bad_reloads();
	test_reload_under_load();
	test_files();
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	if (system(command) != 0)
		return EXIT_FAILURE;
	return pl_test_done();
}
