/* SPDX-License-Identifier: BSD-2-Clause */
/* Queues against the definitions of their limits, rates, weights, priorities and marks. */
#include "dataplane/queues.h"

#include <errno.h>
#include <math.h>

#include "base/rng.h"
#include "base/test.h"
#include "wire/layers.h"

#define SECOND UINT64_C(1000000000)

static struct pl_dp_pool *pool;

static struct pl_dp_packet *packet(uint32_t len, uint8_t queue)
{
	struct pl_dp_packet *pkt = pl_dp_packet_new(pool, len);

	pkt->queue = queue;
	return pkt;
}

static struct pl_dp_port *port(const struct pl_dp_port_cfg *cfg)
{
	struct pl_dp_port *p = NULL;
	struct pl_diag diag;

	ok(pl_dp_port_new(&p, cfg, &diag) == 0, "a port");
	return p;
}

/* Enqueues a packet; false, and the packet is freed, when the port refuses it. */
static bool put(struct pl_dp_port *p, uint32_t len, uint8_t queue, uint64_t now_ns)
{
	struct pl_dp_packet *pkt = packet(len, queue);

	if (pl_dp_port_enqueue(p, pkt, now_ns))
		return true;
	pl_dp_packet_free(pkt);
	return false;
}

static uint64_t dropped(const struct pl_dp_queue_account *b)
{
	return b->dropped_bytes_limit + b->dropped_packets_limit + b->dropped_port_limit;
}

static bool closed(const struct pl_dp_port *p)
{
	for (unsigned int i = 0; i < pl_dp_port_get(p)->n_classes; i++) {
		const struct pl_dp_queue_account *b = pl_dp_port_account(p, i);

		if (b->in_packets != b->out_packets + dropped(b) + b->flushed + b->held_packets ||
			b->in_bytes !=
				b->out_bytes + b->dropped_bytes + b->flushed_bytes + b->held_bytes)
			return false;
	}
	return true;
}

static void test_refused(void)
{
	static const struct pl_dp_port_cfg bad[] = {
		{ .n_classes = 0 },
		{ .n_classes = PL_DP_CLASSES_MAX + 1 },
		{ .n_classes = 1, .rate_bps = PL_DP_RATE_MAX + 1 },
		{ .n_classes = 1, .overhead_bytes = 1001 },
		{ .n_classes = 2, .classes[1].weight = PL_DP_WEIGHT_MAX + 1 },
		{ .n_classes = 2, .classes[1].rate_bps = PL_DP_RATE_MAX + 1 },
		{ .n_classes = 2, .classes[1].burst_bytes = PL_DP_BURST_MAX + 1 },
	};
	struct pl_dp_port *p = NULL;
	struct pl_diag diag = { .text = "" };

	for (unsigned int i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		diag.text[0] = '\0';
		eq(pl_dp_port_new(&p, &bad[i], &diag), -EINVAL, "configuration %u", i);
		ok(p == NULL && diag.text[0] != '\0', "its text: %s", diag.text);
	}
	p = port(&(struct pl_dp_port_cfg){ .n_classes = 2 });
	eq(pl_dp_port_set(p, &(struct pl_dp_port_cfg){ .n_classes = 1 }, &diag), -EINVAL);
	ok(pl_dp_port_account(p, 2) == NULL, "no third class");
	pl_dp_port_free(p);
}

static void test_limits(void)
{
	struct pl_dp_port *p = port(&(struct pl_dp_port_cfg){ .n_classes = 3,
		.rate_bps = 8 * SECOND,
		.limit_bytes = 1000,
		.classes = { { .limit_bytes = 300 }, { .limit_packets = 2 } } });
	const struct pl_dp_queue_account *b;
	struct pl_dp_packet *pkt;

	ok(put(p, 100, 0, 0) && put(p, 200, 0, 0), "class 0 to its limit");
	ok(!put(p, 1, 0, 0), "and not one byte more");
	ok(put(p, 60, 1, 0) && put(p, 60, 1, 0) && !put(p, 60, 1, 0), "two packets in class 1");
	ok(put(p, 580, 2, 0), "class 2 to the limit of the port");
	pkt = packet(60, 2);
	ok(!pl_dp_port_enqueue(p, pkt, 0), "and no more");
	eq(pkt->drop, PL_DP_DROP_QUEUE);
	eq(pkt->depth_bytes, 580);
	eq(pkt->depth_packets, 1);
	pl_dp_packet_free(pkt);
	b = pl_dp_port_account(p, 0);
	ok(b->dropped_bytes_limit == 1 && b->dropped_bytes == 1 && dropped(b) == 1, "by bytes");
	b = pl_dp_port_account(p, 1);
	ok(b->dropped_packets_limit == 1 && dropped(b) == 1, "by packets");
	b = pl_dp_port_account(p, 2);
	ok(b->dropped_port_limit == 1 && dropped(b) == 1, "by the port");
	ok(closed(p), "the account agrees");
	eq(pl_dp_port_account(p, 0)->peak_bytes, 300);
	eq(pl_dp_port_account(p, 0)->peak_packets, 2);

	/* A class that does not exist is class 0. */
	pkt = pl_dp_port_dequeue(p, 0);
	ok(pkt != NULL && pkt->queue == 2 && pkt->len == 580, "the highest class first");
	eq(pkt->out_ns, 580);
	pl_dp_packet_free(pkt);
	ok(pl_dp_port_dequeue(p, 579) == NULL, "busy until its last bit");
	ok(!put(p, 1, 7, 580), "class 7 is class 0, which is full");
	eq(pl_dp_port_account(p, 0)->other_class, 1);
	for (unsigned int n = 0; (pkt = pl_dp_port_flush(p)) != NULL; n++) {
		while (pkt != NULL) {
			struct pl_dp_packet *next = pkt->next;

			if (pkt->drop != PL_DP_DROP_PORT)
				ok(false, "the drop of a flushed packet");
			pl_dp_packet_free(pkt);
			pkt = next;
		}
	}
	eq(pl_dp_port_account(p, 0)->flushed, 2);
	ok(closed(p), "the account agrees");
	eq(pl_dp_port_next(p), PL_DP_NEVER);
	pl_dp_port_free(p);
	eq(pl_dp_pool_alive(pool), 0);
}

/* The rate of a port is exact over packets whose times are not whole ns. */
static void test_port_rate(void)
{
	static const uint64_t rates[] = { 64000, 9999999, 1000000007, 25 * SECOND, PL_DP_RATE_MAX };
	struct pl_rng rng;

	pl_rng_seed(&rng, 1);
	for (unsigned int r = 0; r < 5; r++) {
		struct pl_dp_port *p = port(&(struct pl_dp_port_cfg){
			.n_classes = 1, .rate_bps = rates[r], .overhead_bytes = 24 });
		unsigned __int128 bits = 0;
		uint64_t last = 0, want;
		int64_t off = 0;

		for (int i = 0; i < 20000; i++) {
			uint32_t len = 60 + (uint32_t)pl_rng_below(&rng, 1455),
				 more = (uint32_t)pl_rng_below(&rng, 80);
			struct pl_dp_packet *pkt;

			put(p, len, 0, last);
			pkt = pl_dp_port_dequeue(p, last);
			last = pl_dp_port_grew(p, (int32_t)more - 40);
			bits += (len + 24 + more - 40) * 8;
			want = (uint64_t)(bits * SECOND / rates[r]);
			/* One ns: the last packet's time is rounded down. */
			off = last > want ? (int64_t)(last - want) : (int64_t)(want - last);
			pl_dp_packet_free(pkt);
			if (off > 1)
				break;
		}
		ok(off <= 1, "rate %" PRIu64 ": %" PRId64 " ns off", rates[r], off);
		pl_dp_port_free(p);
	}
}

/* Keeps the classes of `mask` full until `end`; counts bytes and packets sent by class. */
static void saturate(struct pl_dp_port *p, uint32_t mask, const uint32_t *least,
	const uint32_t *most, uint64_t end, uint64_t bytes[PL_DP_CLASSES_MAX], struct pl_rng *rng)
{
	uint64_t now = 0;

	memset(bytes, 0, PL_DP_CLASSES_MAX * sizeof(*bytes));
	while (now < end) {
		struct pl_dp_packet *pkt;

		for (uint8_t i = 0; i < PL_DP_CLASSES_MAX; i++) {
			while ((mask >> i & 1) != 0 && pl_dp_port_account(p, i)->held_packets < 4)
				put(p,
					least[i] +
						(uint32_t)pl_rng_below(rng, most[i] - least[i] + 1),
					i, now);
		}
		now = pl_dp_port_next(p);
		pkt = pl_dp_port_dequeue(p, now);
		if (pkt == NULL) {
			ok(false, "nothing at the time that was told");
			return;
		}
		bytes[pkt->queue] += pkt->len;
		pl_dp_packet_free(pkt);
	}
}

static const uint32_t least_len[PL_DP_CLASSES_MAX] = { 60, 1000, 60, 64, 500, 60, 60, 60 };
static const uint32_t most_len[PL_DP_CLASSES_MAX] = { 1514, 1514, 100, 1514, 500, 60, 9000, 1514 };

static void test_shaped(void)
{
	static const uint64_t rates[] = { 1000000, 33333333, 777777777 };
	struct pl_rng rng;

	pl_rng_seed(&rng, 2);
	for (unsigned int r = 0; r < 3; r++) {
		struct pl_dp_port_cfg cfg = { .n_classes = 2, .rate_bps = 10 * SECOND };
		struct pl_dp_port *p;
		uint64_t bytes[PL_DP_CLASSES_MAX],
			end = rates[r] < SECOND / 100 ? 40 * SECOND : SECOND;
		double off;

		cfg.classes[0].rate_bps = rates[r];
		cfg.classes[1] =
			(struct pl_dp_class_cfg){ .rate_bps = 2000000, .burst_bytes = 3000 };
		p = port(&cfg);
		saturate(p, 1, least_len, most_len, end, bytes, &rng);
		off = (double)bytes[0] * 8e9 / (double)end / (double)rates[r] - 1;
		ok(fabs(off) < 0.001, "shaped to %" PRIu64 ": off by %g", rates[r], off);
		pl_dp_port_free(p);
	}
}

/* A shaped class sends its burst at once after a pause, and then at its rate. */
static void test_burst(void)
{
	struct pl_dp_port_cfg cfg = { .n_classes = 1 };
	struct pl_dp_port *p;
	unsigned int at_once = 0;

	cfg.classes[0] = (struct pl_dp_class_cfg){ .rate_bps = 8000000, .burst_bytes = 3000 };
	p = port(&cfg);
	for (int i = 0; i < 10; i++)
		put(p, 1000, 0, SECOND);
	for (struct pl_dp_packet *pkt; (pkt = pl_dp_port_dequeue(p, SECOND)) != NULL; at_once++)
		pl_dp_packet_free(pkt);
	/* The burst, and the packet being sent when it ends. */
	eq(at_once, 4);
	eq(pl_dp_port_next(p), SECOND + 1000000);
	pl_dp_port_free(p);
}

static void test_weights(void)
{
	static const struct {
		uint32_t weights[PL_DP_CLASSES_MAX];
		uint32_t mask;
	} cases[] = {
		{ { 1, 1 }, 3 },
		{ { 1, 3 }, 3 },
		{ { 5, 7, 11, 13 }, 15 },
		{ { 5, 7, 11, 13 }, 11 },
		{ { 1, 100, 1, 1, 1, 1, 1, 1 }, 0xff },
		{ { 10000, 9999, 1, 2, 3, 4, 5, 6 }, 3 },
	};
	struct pl_rng rng;

	pl_rng_seed(&rng, 3);
	for (unsigned int c = 0; c < sizeof(cases) / sizeof(cases[0]); c++) {
		struct pl_dp_port_cfg cfg = { .n_classes = PL_DP_CLASSES_MAX,
			.rate_bps = 10 * SECOND };
		uint64_t bytes[PL_DP_CLASSES_MAX], all = 0, weights = 0;
		struct pl_dp_port *p;
		double worst = 0;

		for (unsigned int i = 0; i < PL_DP_CLASSES_MAX; i++)
			cfg.classes[i].weight = cases[c].weights[i] != 0 ? cases[c].weights[i] : 1;
		p = port(&cfg);
		saturate(p, cases[c].mask, least_len, most_len, SECOND / 2, bytes, &rng);
		for (unsigned int i = 0; i < PL_DP_CLASSES_MAX; i++) {
			all += bytes[i];
			weights += (cases[c].mask >> i & 1) != 0 ? cfg.classes[i].weight : 0;
		}
		for (unsigned int i = 0; i < PL_DP_CLASSES_MAX; i++) {
			double share = (double)cfg.classes[i].weight / (double)weights,
			       off = fabs((double)bytes[i] / (double)all / share - 1);

			if ((cases[c].mask >> i & 1) != 0 && off > worst)
				worst = off;
		}
		ok(worst < 0.01, "weights %u: off by %g", c, worst);
		ok(closed(p), "the account agrees");
		pl_dp_port_free(p);
	}
}

/* Growth after the queue counts too: two classes of equal weight, and packets of one grow. */
static void test_weights_of_grown(void)
{
	struct pl_dp_port_cfg cfg = { .n_classes = 2, .rate_bps = SECOND };
	uint64_t sent[2] = { 0, 0 }, now = 0;
	struct pl_dp_port *p;

	cfg.classes[0].weight = cfg.classes[1].weight = 1;
	p = port(&cfg);
	while (now < SECOND) {
		struct pl_dp_packet *pkt;

		for (uint8_t i = 0; i < 2; i++) {
			while (pl_dp_port_account(p, i)->held_packets < 4)
				put(p, 100, i, now);
		}
		now = pl_dp_port_next(p);
		pkt = pl_dp_port_dequeue(p, now);
		sent[pkt->queue] += pkt->queue == 0 ? 160 : 100;
		if (pkt->queue == 0)
			pl_dp_port_grew(p, 60);
		pl_dp_packet_free(pkt);
	}
	ok(fabs((double)sent[0] / (double)sent[1] - 1) < 0.01, "%" PRIu64 " and %" PRIu64, sent[0],
		sent[1]);
	pl_dp_port_free(p);
}

/* For any input: no packet is sent before one of a higher strict class, or with a weight before a
 * strict one; each class is first in, first out; depths are those of a model; and the port never
 * idles while it holds a packet. */
static void test_order(void)
{
	struct pl_dp_port_cfg cfg = { .n_classes = 4, .rate_bps = SECOND, .limit_bytes = 20000 };
	uint64_t held[4] = { 0 }, bytes[4] = { 0 }, got[4] = { 0 }, put_in[4] = { 0 }, now = 0,
		 free_at = 0;
	struct pl_dp_port *p;
	struct pl_rng rng;
	int wrong = 0, refused = 0;

	pl_rng_seed(&rng, 4);
	cfg.classes[0].weight = 2;
	cfg.classes[1].weight = 5;
	cfg.classes[0].limit_bytes = 9000;
	p = port(&cfg);
	for (int round = 0; round < 100000; round++) {
		struct pl_dp_packet *pkt;

		now += pl_rng_below(&rng, 9000);
		while (pl_dp_port_next(p) <= now) {
			uint64_t at = pl_dp_port_next(p);
			unsigned int q;

			pkt = pl_dp_port_dequeue(p, at);
			q = pkt->queue;
			wrong += at != (free_at > pkt->queued_ns ? free_at : pkt->queued_ns) &&
				 at != free_at;
			free_at = pkt->out_ns;
			wrong += pkt->out_ns != at + pkt->len * 8;
			wrong += pkt->serial != got[q]++;
			wrong += q < 3 && held[3] != 0;
			wrong += q < 2 && held[2] != 0;
			held[q]--;
			bytes[q] -= pkt->len;
			pl_dp_packet_free(pkt);
		}
		pkt = packet(
			60 + (uint32_t)pl_rng_below(&rng, 1000), (uint8_t)pl_rng_below(&rng, 4));
		pkt->serial = put_in[pkt->queue];
		if (pl_dp_port_enqueue(p, pkt, now)) {
			wrong += pkt->depth_bytes != bytes[pkt->queue] ||
				 pkt->depth_packets != held[pkt->queue];
			held[pkt->queue]++;
			bytes[pkt->queue] += pkt->len;
			put_in[pkt->queue]++;
		} else {
			uint64_t all = bytes[0] + bytes[1] + bytes[2] + bytes[3] + pkt->len;

			wrong += all <= 20000 && (pkt->queue != 0 || bytes[0] + pkt->len <= 9000);
			refused++;
			pl_dp_packet_free(pkt);
		}
		wrong += !closed(p);
	}
	eq(wrong, 0);
	ok(refused > 100, "%d were refused", refused);
	pl_dp_port_free(p);
}

static void test_ecn(void)
{
	for (unsigned int version = 4; version <= 6; version += 2) {
		for (unsigned int ecn = 0; ecn < 4; ecn++) {
			struct pl_dp_port_cfg cfg = { .n_classes = 1 };
			struct pl_dp_port *p;
			const struct pl_dp_queue_account *b;
			struct pl_dp_packet *pkt;
			uint8_t *ip;
			uint32_t sum;

			cfg.classes[0].ecn_bytes = 100;
			p = port(&cfg);
			for (int n = 0; n < 2; n++) {
				pkt = packet(100, 0);
				pkt->headers = (struct pl_dp_headers){ .l3 = 14,
					.ip_version = (uint8_t)version };
				ip = pkt->data + 14;
				memset(ip, 0, 86);
				ip[0] = version == 4 ? 0x45 : 0x6a;
				ip[1] = (uint8_t)(version == 4 ? 0xb8 | ecn : ecn << 4 | 0x8f);
				ip[8] = 64;
				ip[12] = 0xfe;
				sum = pl_checksum_add(0, ip, 20);
				if (version == 4) {
					ip[10] = (uint8_t)(pl_checksum_fold(sum) >> 8);
					ip[11] = (uint8_t)pl_checksum_fold(sum);
				}
				pl_dp_port_enqueue(p, pkt, 0);
			}
			pkt = pl_dp_port_dequeue(p, 0);
			ip = pkt->data + 14;
			eq(version == 4 ? ip[1] & 3 : ip[1] >> 4 & 3, ecn, "below the threshold");
			pl_dp_packet_free(pkt);
			pkt = pl_dp_port_dequeue(p, 0);
			ip = pkt->data + 14;
			eq(version == 4 ? ip[1] & 3 : ip[1] >> 4 & 3, ecn == 0 ? 0 : 3,
				"version %u, ECN %u", version, ecn);
			eq(version == 4 ? ip[1] >> 2 : ip[1] & 0xf, version == 4 ? 0x2e : 0xf,
				"the rest of the byte");
			if (version == 4)
				eq(pl_checksum_fold(pl_checksum_add(0, ip, 20)), 0, "its checksum");
			b = pl_dp_port_account(p, 0);
			eq(b->marked, ecn == 1 || ecn == 2);
			eq(b->not_capable, ecn == 0);
			pl_dp_packet_free(pkt);
			pl_dp_port_free(p);
		}
	}
}

/* Utilization: the share of a window in which the port sent. */
static void test_util(void)
{
	struct pl_dp_port *p = port(&(struct pl_dp_port_cfg){
		.n_classes = 1, .rate_bps = 8 * SECOND, .util_window_ns = 10000 });
	/* Time, bytes (= ns), and the expected utilization of the window before. */
	static const struct {
		uint64_t at;
		uint32_t len, want;
	} sends[] = {
		{ 0, 2500, 0 }, { 9000, 5000, 0 }, /* 1000 in this window, 4000 in the next */
		{ 14000, 1000, 3500 },             /* 2500 + 1000 */
		{ 20000, 100, 5000 },              /* 4000 + 1000 */
		{ 45000, 9000, 0 },                /* the window before is empty */
		{ 61000, 100, 4000 },              /* of it between 50000 and 60000 */
	};

	for (unsigned int i = 0; i < sizeof(sends) / sizeof(sends[0]); i++) {
		struct pl_dp_packet *pkt;

		put(p, sends[i].len, 0, sends[i].at);
		pkt = pl_dp_port_dequeue(p, sends[i].at);
		eq(pkt->tx_util, ((uint64_t)sends[i].want << 16) / 10000, "send %u", i);
		pl_dp_packet_free(pkt);
	}
	pl_dp_port_free(p);
}

/* Changes rates and limits while the port holds packets. */
static void test_set(void)
{
	struct pl_dp_port_cfg cfg = { .n_classes = 1, .rate_bps = 8 * SECOND };
	struct pl_dp_port *p = port(&cfg);
	struct pl_dp_packet *pkt;

	put(p, 1000, 0, 0);
	put(p, 1000, 0, 0);
	pkt = pl_dp_port_dequeue(p, 0);
	eq(pkt->out_ns, 1000);
	pl_dp_packet_free(pkt);
	cfg.rate_bps = SECOND;
	cfg.classes[0].limit_bytes = 1500;
	eq(pl_dp_port_set(p, &cfg, NULL), 0);
	ok(!put(p, 501, 0, 10) && put(p, 500, 0, 10), "the new limit");
	eq(pl_dp_port_next(p), 1000);
	pkt = pl_dp_port_dequeue(p, 1000);
	eq(pkt->out_ns, 9000);
	pl_dp_packet_free(pkt);
	ok(closed(p), "the account agrees");
	pl_dp_port_free(p);
	eq(pl_dp_pool_alive(pool), 0);
}

/* No hidden buffer: of B bytes put in at once at rate C, a byte leaves when those up to it have been
 * sent, and the last one 8 B / C later. A caller who comes late to each packet takes it at the time at
 * which it may leave; a packet put in meanwhile does not leave before it came, whatever its class. */
static void test_no_hidden_buffer(void)
{
	static const uint64_t rates[] = { 64000, 10000000, 1000000007, 100 * SECOND };
	struct pl_rng rng;

	pl_rng_seed(&rng, 29);
	for (unsigned int r = 0; r < 4; r++) {
		struct pl_dp_port *p = port(&(struct pl_dp_port_cfg){ .n_classes = 3,
			.rate_bps = rates[r],
			.overhead_bytes = 24,
			.classes = { { .weight = 1 }, { .weight = 3 }, { .weight = 0 } } });
		unsigned __int128 bits = 0;
		const uint64_t start = 1000 * SECOND + r;
		uint64_t at, wrong = 0, all = 0;

		for (unsigned int i = 0; i < 500; i++) {
			const uint32_t len = 60 + (uint32_t)pl_rng_below(&rng, 1455);

			put(p, len, (uint8_t)pl_rng_below(&rng, 3), start);
			all += len + 24;
		}
		while ((at = pl_dp_port_next(p)) != PL_DP_NEVER) {
			struct pl_dp_packet *pkt = pl_dp_port_dequeue(p, at - 1);
			uint64_t want;

			wrong += pkt != NULL;
			if (pkt == NULL)
				pkt = pl_dp_port_dequeue(p, at);
			bits += (pkt->len + 24) * 8;
			want = start + (uint64_t)(bits * SECOND / rates[r]);
			wrong += pkt->out_ns > want || pkt->out_ns + 1 < want ||
				 (pl_dp_port_held(p) == 0 && bits != all * 8);
			pl_dp_packet_free(pkt);
		}
		eq(wrong, 0, "rate %" PRIu64 ": packets that left at another time", rates[r]);
		pl_dp_port_free(p);
	}
}

/* A packet that came later than the time of a dequeue is not there yet. */
static void test_later(void)
{
	struct pl_dp_port *p = port(&(struct pl_dp_port_cfg){
		.n_classes = 2, .rate_bps = 8 * SECOND, .classes = { { .weight = 1 } } });
	struct pl_dp_packet *pkt;

	put(p, 100, 0, 0);
	put(p, 100, 0, 0);
	pl_dp_packet_free(pl_dp_port_dequeue(p, 0));
	put(p, 100, 1, 5000);
	eq(pl_dp_port_next(p), 100);
	pkt = pl_dp_port_dequeue(p, 100);
	ok(pkt != NULL && pkt->queue == 0 && pkt->out_ns == 200, "the one that was there");
	pl_dp_packet_free(pkt);
	eq(pl_dp_port_next(p), 5000);
	pl_dp_packet_free(pl_dp_port_dequeue(p, 5000));
	eq(pl_dp_port_account(p, 1)->residence_max_ns, 100);
	pl_dp_port_free(p);
}

/* A clock that is set forward is nobody's waiting time, and takes nothing from rates. */
static void test_clock_set(void)
{
	struct pl_dp_port *p = port(&(struct pl_dp_port_cfg){ .n_classes = 2,
		.rate_bps = 8 * SECOND,
		.classes = { { .weight = 1 }, { .rate_bps = 80000000 } } });
	struct pl_dp_packet *pkt;

	for (unsigned int i = 0; i < 4; i++)
		put(p, 100, i % 2, 1000);
	pkt = pl_dp_port_dequeue(p, 1000);
	ok(pkt->queue == 1 && pkt->out_ns == 1100, "the first of class 1");
	pl_dp_packet_free(pkt);
	pl_dp_port_clock_set(p, 50 * SECOND);
	eq(pl_dp_port_next(p), 50 * SECOND + 1100);
	pkt = pl_dp_port_dequeue(p, 50 * SECOND + 1100);
	ok(pkt->queue == 0 && pkt->out_ns == 50 * SECOND + 1200, "then class 0");
	eq(pkt->in_ns, 50 * SECOND, "it came before");
	pl_dp_packet_free(pkt);
	pl_dp_packet_free(pl_dp_port_dequeue(p, 50 * SECOND + 1200));
	eq(pl_dp_port_next(p), 50 * SECOND + 11000, "class 1 at its rate");
	pl_dp_packet_free(pl_dp_port_dequeue(p, 50 * SECOND + 11000));
	eq(pl_dp_port_account(p, 0)->residence_max_ns, 300);
	eq(pl_dp_port_account(p, 1)->residence_max_ns, 10100);
	pl_dp_port_free(p);
}

int main(void)
{
	if (pl_dp_pool_new(&pool, PL_DP_HEADROOM + 9100, 1000) != 0)
		return EXIT_FAILURE;
	test_refused();
	test_limits();
	test_port_rate();
	test_no_hidden_buffer();
	test_later();
	test_clock_set();
	test_shaped();
	test_burst();
	test_weights();
	test_weights_of_grown();
	test_order();
	test_ecn();
	test_util();
	test_set();
	pl_dp_pool_free(pool);
	return pl_test_done();
}
