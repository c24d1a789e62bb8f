/* SPDX-License-Identifier: BSD-2-Clause */
/* Runs the demonstration of packets. */
#include "demo/packets.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/num.h"
#include "flow/cache.h"
#include "gen/traffic.h"
#include "lang/builtin.h"
#include "query/query.h"
#include "tap/tap.h"
#include "tapout/tap_out.h"

#define START_NS    UINT64_C(1700000000000000000)
#define SECOND      UINT64_C(1000000000)
#define LOSS        0.01
#define ROUNDS_MAX  128 /* of the story: an hour and a bit */
#define QUESTIONS   4
#define TOLD_PERIOD 30 /* seconds: a slow server is reported once in each round of the story */

enum { SCAN, FLOOD, STORM, SLOW }; /* the first two of packets, the others of flows */

/* The standing questions. */
static const char *const questions[QUESTIONS] = {
	[SCAN] = "SELECT src, count(distinct dport) AS n FROM packets TUMBLE(ts, 1s) "
		 "WHERE syn_only GROUP BY src HAVING n >= 100 EMIT FIRST",
	[FLOOD] = "syn_flood(threshold=300)",
	[STORM] = "SELECT dst, sum(retrans_fwd + retrans_rev) AS again, "
		  "sum(pkts_fwd + pkts_rev) AS packets FROM flows TUMBLE(ts, 5s) WHERE tcp "
		  "GROUP BY dst HAVING again >= 20 and again * 20 >= packets",
	[SLOW] = "SELECT dst, count(*) AS n, quantile(hs_external_us, 0.5) AS us FROM flows "
		 "TUMBLE(ts, 5s) WHERE hs_external_us > 0 GROUP BY dst HAVING us >= 300000",
};

struct demo;

struct asked {
	struct demo *demo;
	int which;
	struct pl_query *query;
	struct pl_query_run *run;
	bool found[ROUNDS_MAX];
};

struct demo {
	const struct pl_packets_demo_options *o;
	struct pl_packets_demo_result *result;
	struct pl_traffic *traffic;
	struct pl_tap tap;
	struct pl_flow_cache *flows;
	struct pl_tap_out *out;
	struct asked asked[QUESTIONS];
	struct pl_addr right[QUESTIONS]; /* the right answer to each question */
	uint64_t now_ns, begun_ns;
	struct pl_batch batch;
	struct pl_pkt96 records[PL_BATCH_MAX];
};

/* ---- answers ---- */

static unsigned int round_of(int64_t ns)
{
	const uint64_t round = ((uint64_t)ns - START_NS) / (TOLD_PERIOD * SECOND);

	return round < ROUNDS_MAX ? (unsigned int)round : ROUNDS_MAX - 1;
}

/* "BEFORE ADDRESS BETWEEN NUMBER BEHIND" */
struct saying {
	const char *before, *between, *behind;
};

static void tell(
	struct demo *d, const struct saying *say, const struct pl_addr *who, uint64_t number)
{
	char line[160], text[PL_ADDR_TEXT_MAX];

	if (d->o->tell == NULL)
		return;
	(void)pl_format_addr(text, who);
	snprintf(line, sizeof(line), "%s%s%s%" PRIu64 "%s", say->before, text, say->between, number,
		say->behind);
	d->o->tell(d->o->arg, (double)(d->now_ns - START_NS) / 1e9, line);
}

static void take_row(void *arg, const struct pl_query_row *row)
{
	static const struct saying says[QUESTIONS] = {
		[SCAN] = { "port scan by ", ": ", " ports so far" },
		[FLOOD] = { "SYN flood to ", ": ", " SYNs without an answer in a second" },
		[STORM] = { "retransmission storm at ", ": ", " segments sent again in 5 seconds" },
		[SLOW] = { "slow server ", ": half of its handshakes take ", " us and more" },
	};
	static const struct saying wrong = { "FALSE: ", " is the answer to question ", "" };
	struct asked *a = arg;
	struct demo *d = a->demo;
	const struct pl_addr *who = &row->values[0].addr;
	const struct pl_query_value *number = &row->values[a->which == SLOW ? 2 : 1];
	const unsigned int round = round_of(row->start_ns);

	if (!pl_addr_equal(who, &d->right[a->which])) {
		d->result->false_alarms++;
		tell(d, &wrong, who, (uint64_t)a->which);
		return;
	}
	if (!a->found[round])
		tell(d, &says[a->which], who,
			number->type == PL_QUERY_DOUBLE ? (uint64_t)number->d : number->u);
	a->found[round] = true;
}

/* A question by name, or its text. */
static int ask(struct demo *d, int which, struct pl_diag *diag)
{
	const struct pl_query_config config = { .seed = pl_hash_seed(),
		.lateness_ns = which >= STORM ? 20 * SECOND : 0 };
	struct asked *a = &d->asked[which];
	struct pl_buf text;
	int r;

	a->demo = d;
	a->which = which;
	pl_buf_init(&text);
	r = pl_query_builtin_text(&text, questions[which], diag);
	if (r == -ENOENT)
		r = 0;
	if (r == 0)
		r = pl_query_parse(&a->query, text.len > 0 ? text.data : questions[which], diag);
	pl_buf_done(&text);
	return r < 0 ? r : pl_query_run_new(&a->run, a->query, &config, take_row, a, diag);
}

/* ---- records ---- */

static void keep_if_great(struct pl_packets_demo_result *r, const struct pl_flow288 *flow)
{
	const uint64_t bytes = flow->bytes_fwd + flow->bytes_rev;
	uint32_t at = r->n_top;

	while (at > 0 && r->top[at - 1].bytes_fwd + r->top[at - 1].bytes_rev < bytes)
		at--;
	if (at == PL_PACKETS_DEMO_TOP)
		return;
	if (r->n_top < PL_PACKETS_DEMO_TOP)
		r->n_top++;
	memmove(&r->top[at + 1], &r->top[at], (r->n_top - 1 - at) * sizeof(r->top[0]));
	r->top[at] = *flow;
}

static void take_flows(void *arg, const struct pl_flow288 *flows, uint32_t n)
{
	struct demo *d = arg;

	for (uint32_t i = 0; i < n; i++) {
		const struct pl_flow288 *f = &flows[i];

		d->result->packets_in_flows += f->pkts_fwd + f->pkts_rev;
		d->result->retransmissions += f->retrans_fwd + f->retrans_rev;
		d->result->connections_found += f->end_reason == PL_FLOW_END_FINISHED &&
						(f->flags_fwd & f->flags_rev & 1) != 0;
		keep_if_great(d->result, f);
	}
	d->result->flows += n;
	for (int which = STORM; which <= SLOW; which++)
		(void)pl_query_feed_flat(d->asked[which].run, PL_FLAT_FLOW288, flows, n, 0);
}

static void take_packets(struct demo *d)
{
	const uint32_t n = pl_tap_batch(&d->tap, &d->batch, d->records, PL_BATCH_MAX);

	for (int which = SCAN; which <= FLOOD; which++)
		(void)pl_query_feed_flat(d->asked[which].run, PL_FLAT_PKT96, d->records, n, 0);
	pl_flow_cache_feed(d->flows, d->records, n);
	if (d->out != NULL) {
		d->out->driver->put(d->out, d->records, n);
		(void)d->out->driver->turn(d->out, pl_clock_mono_ns());
	}
}

/* ---- running ---- */

/* Until the traffic's time is the clock's, or an eighth of a second. */
static void keep_time(const struct demo *d)
{
	const uint64_t due = d->begun_ns + (pl_traffic_due_ns(d->traffic) - START_NS),
		       now = pl_clock_mono_ns();

	if (due > now)
		(void)nanosleep(&(struct timespec){ .tv_nsec = (long)(due - now < SECOND / 8
									      ? due - now
									      : SECOND / 8) },
			NULL);
}

static void run(struct demo *d)
{
	int r = 0;

	d->begun_ns = pl_clock_mono_ns();
	while (r >= 0 && (d->o->stop == NULL || !*d->o->stop)) {
		uint64_t until = UINT64_MAX;

		if (d->o->paced) {
			keep_time(d);
			until = START_NS + (pl_clock_mono_ns() - d->begun_ns);
		}
		r = pl_traffic_next(d->traffic, until, &d->batch);
		if (r <= 0)
			continue;
		d->now_ns = d->batch.pkts[r - 1].ts_ns;
		take_packets(d);
	}
	pl_flow_cache_finish(d->flows);
	for (int which = 0; which < QUESTIONS; which++)
		pl_query_finish(d->asked[which].run);
	if (d->out != NULL) {
		d->out->driver->finish(d->out);
		d->result->out_lost = d->out->driver->lost(d->out);
	}
}

/* Rounds whose attack was over by second `to`, and in how many it was found. */
static void count_rounds(
	const struct demo *d, int which, uint64_t to, uint64_t *ret_were, uint64_t *ret_found)
{
	const uint64_t lasted = (d->now_ns - START_NS) / SECOND;

	for (uint64_t round = 0; round < ROUNDS_MAX && round * TOLD_PERIOD + to <= lasted;
		round++) {
		(*ret_were)++;
		*ret_found += d->asked[which].found[round];
	}
}

static void tell_result(struct demo *d)
{
	const struct pl_traffic_truth *truth = pl_traffic_truth(d->traffic);
	const struct pl_flow_counters *c = pl_flow_cache_counters(d->flows);
	struct pl_packets_demo_result *r = d->result;

	r->seconds = (double)(d->now_ns - START_NS) / 1e9;
	r->packets = d->tap.stats.packets;
	r->records = d->tap.stats.records;
	r->not_in_flows = c->fragments + c->without_ports;
	r->connections = truth->connections;
	r->lost = truth->lost;
	count_rounds(d, SCAN, 8, &r->scan, &r->scan_found);
	count_rounds(d, FLOOD, 14, &r->flood, &r->flood_found);
	count_rounds(d, STORM, 20, &r->storm, &r->storm_found);
}

static int give_up_rights(const struct pl_packets_demo_options *o, struct pl_diag *diag)
{
	int r = o->to != NULL ? pl_tap_out_files(o->to, o->confine) : 0;

	return r == 0 ? pl_confine(o->confine, diag) : r;
}

static int prepare(struct demo *d, struct pl_diag *diag)
{
	const struct pl_traffic_cfg traffic = { .seed = d->o->seed,
		.start_ns = START_NS,
		.duration_ns = d->o->duration_ns,
		.loss = LOSS,
		.story = true };
	const struct pl_flow_config flow = PL_FLOW_CONFIG;
	const struct pl_tap_out_settings settings = { .kind = PL_FLAT_PKT96 };
	int r = pl_traffic_new(&d->traffic, &traffic, diag);

	d->now_ns = START_NS;
	(void)pl_parse_addr(PL_TRAFFIC_SCANNER, &d->right[SCAN]);
	(void)pl_parse_addr(PL_TRAFFIC_FIRST_SERVER, &d->right[FLOOD]);
	(void)pl_parse_addr(PL_TRAFFIC_STORM_SERVER, &d->right[STORM]);
	(void)pl_parse_addr(PL_TRAFFIC_SLOW_SERVER, &d->right[SLOW]);
	if (r == 0)
		r = pl_flow_cache_new(&d->flows, &flow, take_flows, d, diag);
	for (int which = 0; r == 0 && which < QUESTIONS; which++)
		r = ask(d, which, diag);
	if (r == 0 && d->o->confine != NULL)
		r = give_up_rights(d->o, diag);
	if (r == 0 && d->o->to != NULL)
		r = pl_tap_out_open(&d->out, d->o->to, &settings, diag);
	return r;
}

int pl_packets_demo(const struct pl_packets_demo_options *options,
	struct pl_packets_demo_result *ret, struct pl_diag *diag)
{
	struct demo *d = calloc(1, sizeof(*d));
	int r;

	if (d == NULL)
		return pl_diag_fail(diag, -ENOMEM, "%s", strerror(ENOMEM));
	*ret = (struct pl_packets_demo_result){ 0 };
	d->o = options;
	d->result = ret;
	r = prepare(d, diag);
	if (r == 0) {
		run(d);
		tell_result(d);
	}
	pl_tap_out_close(d->out);
	for (int which = 0; which < QUESTIONS; which++) {
		pl_query_run_free(d->asked[which].run);
		pl_query_free(d->asked[which].query);
	}
	pl_flow_cache_free(d->flows);
	pl_traffic_free(d->traffic);
	free(d);
	return r;
}

bool pl_packets_demo_right(const struct pl_packets_demo_result *r)
{
	return r->packets == r->records && r->records == r->packets_in_flows + r->not_in_flows &&
	       r->scan_found == r->scan && r->flood_found == r->flood &&
	       r->storm_found == r->storm && r->false_alarms == 0 && r->out_lost == 0;
}

void pl_packets_demo_json(const struct pl_packets_demo_result *r, struct pl_json *json)
{
	pl_json_key(json, "seconds");
	pl_json_double(json, r->seconds);
	pl_json_number(json, "packets", r->packets);
	pl_json_number(json, "records", r->records);
	pl_json_number(json, "flows", r->flows);
	pl_json_number(json, "packets_in_flows", r->packets_in_flows);
	pl_json_number(json, "connections", r->connections);
	pl_json_number(json, "connections_found", r->connections_found);
	pl_json_number(json, "segments_lost", r->lost);
	pl_json_number(json, "retransmissions_found", r->retransmissions);
	pl_json_number(json, "scans", r->scan);
	pl_json_number(json, "scans_found", r->scan_found);
	pl_json_number(json, "floods", r->flood);
	pl_json_number(json, "floods_found", r->flood_found);
	pl_json_number(json, "storms", r->storm);
	pl_json_number(json, "storms_found", r->storm_found);
	pl_json_number(json, "false_alarms", r->false_alarms);
	pl_json_number(json, "output_lost", r->out_lost);
	pl_json_key(json, "right");
	pl_json_bool(json, pl_packets_demo_right(r));
}
