/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Random packets through the cache and through a model of it: a list of flows, one packet at a
 * time, written from the rules and not from the code. All records must be equal, byte for byte;
 * their order, and with it their number, is the cache's own. PATHLINE_SEED repeats one run.
 */
#include "flow/cache_state.h"
#include "flow/random_model.h"
#include "flow/test_packets.h"

#include "base/rng.h"
#include "record/json.h"

enum { RUNS = 4000, PACKETS = 600, KEYS = 6 };

/* Where flows are evicted, time goes in steps of four ticks of the table, and timeouts are odd to
 * each other: then which flow is to be over first is certain. */
#define TURN (UINT64_C(4) << 20)

/* One end-to-end conversation's numbers, so that random packets mean something to each other. */
struct talk {
	uint32_t next[2], tsval[2], seen_ts[2];
	uint16_t ip_id[2], place[2];
	unsigned int opener, step; /* 1: a SYN was sent, 2: a SYN-ACK */
};

struct run {
	struct pl_rng rng;
	struct talk talks[16];
	uint64_t now;
	uint32_t keys, places, copies; /* one packet in so many is elsewhere */
	bool slow;
};

static bool one_in(struct run *r, uint32_t n)
{
	return pl_rng_below(&r->rng, n) == 0;
}

static uint64_t step_ns(struct run *r)
{
	static const uint64_t steps[] = { 0, 300, 1000, 70000, 900000, 4000000, 250000000,
		1100000000, UINT64_C(6000000000), UINT64_C(16000000000) };

	if (r->slow)
		return (1 + pl_rng_below(&r->rng, one_in(r, 40) ? 5000 : 64)) * TURN;
	return pl_rng_below(&r->rng, 1 + steps[pl_rng_below(&r->rng, one_in(r, 6) ? 10 : 6)]);
}

static uint8_t random_flags(struct run *r)
{
	static const uint8_t flags[] = { ACK, ACK, ACK, ACK, ACK | PSH, ACK, ACK, SYN, SACK,
		FIN | ACK, RST, RST | ACK, 0, SYN | ECE | CWR, SYN | FIN, FIN, ACK, ACK, ACK, ACK };

	return flags[pl_rng_below(&r->rng, one_in(r, 3) ? 20 : 7)];
}

/* Mostly a SYN is answered, and its SYN-ACK too. */
static bool answers(struct run *r, struct talk *t, unsigned int back, struct pl_pkt96 *p)
{
	if (t->step == 0 || (t->step == 1) == (back == t->opener) || one_in(r, 4))
		return false;
	p->tcp_flags = t->step == 1 ? SACK : ACK;
	p->tcp_seq = t->next[back];
	t->next[back] += t->step == 1;
	p->tcp_ack = t->next[!back];
	t->step = t->step == 1 ? 2 : 0;
	return true;
}

static void random_segment(struct run *r, struct talk *t, unsigned int back, struct pl_pkt96 *p)
{
	p->tcp_flags = random_flags(r);
	p->pay_len = (uint16_t)(one_in(r, 2) ? 0 : pl_rng_below(&r->rng, 4) * 7 + one_in(r, 4));
	if ((p->tcp_flags & SYN) != 0 && one_in(r, 3))
		t->next[back] = (uint32_t)pl_rng_u64(&r->rng);
	p->tcp_seq = t->next[back];
	if (one_in(r, 5))
		p->tcp_seq -= (uint32_t)pl_rng_below(&r->rng, 40);
	else if (one_in(r, 12))
		p->tcp_seq += (uint32_t)pl_rng_below(&r->rng, 40);
	if (one_in(r, 300))
		p->tcp_seq = (uint32_t)pl_rng_u64(&r->rng);
	t->next[back] =
		p->tcp_seq + p->pay_len + ((p->tcp_flags & SYN) != 0) + ((p->tcp_flags & FIN) != 0);
	p->tcp_ack = t->next[!back] - (one_in(r, 4) ? (uint32_t)pl_rng_below(&r->rng, 30) : 0);
	if ((p->tcp_flags & (SYN | ACK)) == SYN) {
		t->opener = back;
		t->step = 1;
	}
}

static void random_tcp(struct run *r, struct talk *t, unsigned int back, struct pl_pkt96 *p)
{
	if (!answers(r, t, back, p))
		random_segment(r, t, back, p);
	p->tcp_win = one_in(r, 10) ? (uint16_t)pl_rng_below(&r->rng, 3) : 1000;
	p->ip_id = one_in(r, 4) ? 0 : t->ip_id[back]++;
	if (one_in(r, 8))
		p->ip_id -= 2;
	if (!one_in(r, 3)) {
		t->tsval[back] += one_in(r, 2);
		p->tcp_opts = 1 << 8;
		p->tsval = t->tsval[back];
		p->tsecr = t->tsval[!back] - (uint32_t)pl_rng_below(&r->rng, 3);
	}
}

/* Mostly where the conversation is seen now, which changes at times. */
static uint16_t random_place(struct run *r, uint32_t key, unsigned int back)
{
	uint16_t *place = &r->talks[key].place[back];

	if (r->places > 1 && one_in(r, 60))
		*place = (uint16_t)pl_rng_below(&r->rng, r->places);
	return r->places > 1 && one_in(r, r->copies) ? (uint16_t)pl_rng_below(&r->rng, r->places)
	       : *place % 2 != 0                     ? *place / 2 | PL_OBS_OUT
						     : *place / 2;
}

static void random_icmp(struct run *r, struct pl_pkt96 *p)
{
	static const uint8_t types[] = { 8, 0, 8, 0, 13, 14, 3 };

	p->sport = types[pl_rng_below(&r->rng, sizeof(types))];
	p->dport = (uint16_t)(one_in(r, 3) ? pl_rng_below(&r->rng, 4) : 0);
}

static struct pl_pkt96 random_packet(struct run *r)
{
	static const uint16_t obs[] = {
		PL_OBS_FRAGMENT,
		PL_OBS_TRUNCATED,
		PL_OBS_SAMPLED,
	};
	static const uint16_t ports[] = { 1000, 5000, 40000 };
	const uint32_t key = (uint32_t)pl_rng_below(&r->rng, r->keys);
	const unsigned int back = one_in(r, 2);
	struct pl_pkt96 p;

	r->now += step_ns(r);
	p = packet(r->now, back, (uint16_t)(ports[key % 3] + key),
		key % 8 == 7   ? 1
		: key % 4 == 3 ? 17
			       : 6);
	if (key % 5 == 4)
		*(back ? &p.sport : &p.dport) = 8080;
	if (!r->slow && one_in(r, 10))
		p.ts_ns -= pl_rng_below(&r->rng, one_in(r, 20) ? 40 * SECOND : 2000000);
	if (!r->slow && one_in(r, 2000))
		p.ts_ns += pl_rng_below(&r->rng, 400 * SECOND);
	p.wire_len = (uint16_t)pl_rng_u64(&r->rng);
	p.vlan = (uint16_t)(key % 2);
	if (p.proto == 1)
		random_icmp(r, &p);
	if (p.proto == 6)
		random_tcp(r, &r->talks[key], back, &p);
	if (one_in(r, 25))
		p.obs = obs[pl_rng_below(&r->rng, 3)];
	p.obs |= random_place(r, key, back);
	if (one_in(r, 10))
		p.mss = (uint16_t)pl_rng_below(&r->rng, 4);
	if (p.obs & PL_OBS_FRAGMENT)
		p.frag_off = (uint16_t)(32768 * one_in(r, 2) + pl_rng_below(&r->rng, 2));
	if ((p.obs & PL_OBS_TRUNCATED) != 0 && one_in(r, 2))
		p.sport = p.dport = 0;
	return p;
}

static int by_bytes(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct pl_flow288));
}

/* Numbers 0 to n - 1, each once, in the order handed over; then they are put aside. */
static bool numbered(struct kept *kept)
{
	bool good = true;

	for (uint32_t i = 0; i < kept->n; i++) {
		good &= kept->records[i].flow_seq == i;
		kept->records[i].flow_seq = 0;
	}
	return good;
}

static void tell(const char *who, const struct pl_flow288 *r)
{
	struct pl_buf text;

	pl_buf_init(&text);
	pl_flat_json(&text, PL_FLAT_FLOW288, r);
	printf("# %s: %.*s\n", who, (int)text.len, text.data);
	pl_buf_done(&text);
}

static bool same_records(struct kept *got, struct kept *want)
{
	const uint32_t n = got->n < want->n ? got->n : want->n;

	if (!numbered(got)) {
		printf("# the records are not numbered in order\n");
		return false;
	}
	qsort(got->records, got->n, sizeof(*got->records), by_bytes);
	qsort(want->records, want->n, sizeof(*want->records), by_bytes);
	for (uint32_t i = 0; i < n; i++)
		if (by_bytes(&got->records[i], &want->records[i]) != 0) {
			tell("cache", &got->records[i]);
			tell("model", &want->records[i]);
			return false;
		}
	if (got->n != want->n)
		printf("# %u records, the model has %u\n", got->n, want->n);
	return got->n == want->n;
}

static bool same_counters(const struct pl_flow_counters *got, const struct pl_flow_counters *want)
{
	bool good = true;

	for (unsigned int i = 0; i < pl_flow_counters_list.n; i++) {
		const struct pl_stat *row = &pl_flow_counters_list.rows[i];

		if (pl_stat_read(row, got) == pl_stat_read(row, want))
			continue;
		good = false;
		printf("# %s: %" PRIu64 ", the model has %" PRIu64 "\n", row->name,
			pl_stat_read(row, got), pl_stat_read(row, want));
	}
	return good;
}

/* In memory as a file has it, each change noted in a journal. */
static struct pl_flow_cache *new_kept(const struct pl_flow_config *config, struct kept *kept)
{
	const uint32_t n_buckets = pl_flow_buckets_for(config);
	const size_t bytes = (pl_flow_layout(n_buckets).bytes + 63) / 64 * 64;
	struct pl_flow_cache *c = pl_flow_cache_bare(config, keep, kept);
	void *memory = aligned_alloc(64, bytes);

	*kept = (struct kept){ 0 };
	if (c == NULL || memory == NULL)
		abort();
	memset(memory, 0, bytes);
	pl_flow_new_seed(((struct pl_flow_kept *)memory)->seed, c);
	pl_flow_cache_place(c, memory, n_buckets);
	return c;
}

/* Another process goes on at once, between two packets: nothing tells it. */
static bool go_on(struct pl_flow_cache **cache, const struct pl_flow_config *config)
{
	struct pl_flow_cache *old = *cache, *c = pl_flow_cache_bare(config, old->sink, old->arg);
	const uint64_t live = old->counters.live;
	bool good;

	if (c == NULL)
		abort();
	pl_flow_cache_place(c, old->kept, old->n_buckets);
	pl_flow_mend(c);
	good = c->counters.live == live && c->state_counters.damaged == 0 &&
	       c->state_counters.torn == 0;
	c->counters = old->counters;
	c->behind = old->behind;
	c->scanned = old->scanned;
	pl_flow_cache_free(old);
	*cache = c;
	return good;
}

static bool run_once(uint64_t seed, struct pl_flow_counters *sum)
{
	struct pl_flow_config config = PL_FLOW_CONFIG;
	struct run r = { .now = EPOCH / TURN * TURN };
	struct pl_pkt96 packets[100];
	struct kept got, want = { 0 };
	struct pl_flow_cache *cache;
	struct model model;
	bool good, same = true;

	pl_rng_seed(&r.rng, seed);
	r.slow = one_in(&r, 4);
	r.places = one_in(&r, 3) ? 1 : 2 + (uint32_t)pl_rng_below(&r.rng, one_in(&r, 3) ? 18 : 2);
	r.copies = 2 + (uint32_t)pl_rng_below(&r.rng, one_in(&r, 2) ? 4 : 60);
	r.keys = r.slow ? 12 : KEYS;
	config.max_flows = r.slow || one_in(&r, 2) ? 8 : 512;
	if (r.slow) {
		config.idle_ns = 3500 * TURN;
		config.end_ns = 200 * TURN + TURN / 2;
	} else if (one_in(&r, 4)) {
		config.idle_ns = SECOND + pl_rng_below(&r.rng, 20 * SECOND);
	}
	if (one_in(&r, 2))
		config.active_ns = 1 + pl_rng_below(&r.rng, 5 * SECOND);
	cache = seed % 2 == 0 ? new_kept(&config, &got) : new_cache(&config, &got);
	model_init(&model, &config, r.slow ? 8 : 1000, &want);
	for (uint32_t left = PACKETS; left > 0;) {
		const uint32_t n = 1 + (uint32_t)pl_rng_below(&r.rng, left < 100 ? left : 100);

		for (uint32_t i = 0; i < n; i++) {
			packets[i] = random_packet(&r);
			model_packet(&model, &packets[i]);
		}
		pl_flow_cache_feed(cache, packets, n);
		left -= n;
		if (one_in(&r, 5)) {
			pl_flow_cache_expire(cache, r.now);
			model_expire(&model, r.now);
		}
		if (cache->keeps)
			same = go_on(&cache, &config) && same;
	}
	pl_flow_cache_finish(cache);
	model_finish(&model);
	good = same_records(&got, &want) && same;
	good = same_counters(pl_flow_cache_counters(cache), &model.c.n) && good;
	pl_stats_add(&pl_flow_counters_list, sum, pl_flow_cache_counters(cache));
	if (cache->keeps)
		free(cache->kept);
	pl_flow_cache_free(cache);
	free(got.records);
	free(want.records);
	return good;
}

/* True when only live packets, which the model has not, come to be counted so: live_test.c. */
static bool is_of_live(const struct pl_stat *row)
{
	return strcmp(row->name, "ahead") == 0 || strcmp(row->name, "behind") == 0;
}

int main(void)
{
	const char *wanted = getenv("PATHLINE_SEED");
	struct pl_flow_counters sum = { 0 };
	uint64_t first = wanted != NULL ? strtoull(wanted, NULL, 0) : 1;
	uint32_t bad = 0;

	for (uint64_t seed = first; seed < first + (wanted != NULL ? 1 : RUNS) && bad < 3; seed++)
		if (!run_once(seed, &sum)) {
			printf("# PATHLINE_SEED=%" PRIu64 "\n", seed);
			bad++;
		}
	eq(bad, 0, "%u runs of %u packets agree with the model", RUNS, PACKETS);
	for (unsigned int i = 0; i < pl_flow_counters_list.n && wanted == NULL; i++) {
		const struct pl_stat *row = &pl_flow_counters_list.rows[i];

		if (!row->gauge && !is_of_live(row))
			ok(pl_stat_read(row, &sum) > 0, "%s came about: %" PRIu64, row->name,
				pl_stat_read(row, &sum));
	}
	return pl_test_done();
}
