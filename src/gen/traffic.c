/* SPDX-License-Identifier: BSD-2-Clause */
/* Generates frames of ordinary traffic, with attacks. */
#include "gen/traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/rng.h"
#include "wire/layers.h"

#define SECOND    UINT64_C(1000000000)
#define MS        UINT64_C(1000000)
#define US        UINT64_C(1000)
#define FRAME_MAX 1600
#define MSS       1448
#define AGAIN_NS  (210 * MS) /* timeout after which a lost segment is sent again */
#define TALKS_MAX 65536      /* at the same time */
#define ROUND_NS  (30 * SECOND)

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };

/* Steps of a connection; after ANSWER comes ANSWERED for every second segment. */
enum step {
	OPEN,
	OPENED,
	BEGUN,
	REQUEST,
	ANSWER,
	ANSWERED,
	CLOSE,
	CLOSED,
	ENDED,
	DNS_ASK,
	DNS_ANSWER,
	PROBE,
	PROBED,
	FLOOD,
	OVER,
};

/* A conversation, ordered by the time of its next packet. */
struct talk {
	uint64_t due_ns;
	struct pl_addr client, server;
	uint16_t cport, sport;
	uint8_t step;
	bool again;          /* the next packet is one that was lost */
	uint16_t answers;    /* segments left; DNS: the server whose name is asked */
	uint32_t cseq, sseq; /* next sequence numbers of client and server */
	uint64_t rtt_ns;
};

struct pl_traffic {
	struct pl_traffic_cfg cfg;
	struct pl_rng rng;
	struct pl_traffic_truth truth;
	uint64_t next_tcp_ns, next_dns_ns; /* begin of the next one */
	uint64_t attack_ns;                /* time of the story's next step */
	uint64_t end_ns;
	uint32_t n; /* length of the heap */
	struct talk *heap;
	uint8_t frames[PL_BATCH_MAX][FRAME_MAX];
};

/* ---- the heap: the earliest first ---- */

static void swap(struct talk *a, struct talk *b)
{
	const struct talk c = *a;

	*a = *b;
	*b = c;
}

static void sift_down(struct pl_traffic *t)
{
	uint32_t at = 0;

	for (;;) {
		uint32_t least = at;

		for (uint32_t child = 2 * at + 1; child <= 2 * at + 2 && child < t->n; child++) {
			if (t->heap[child].due_ns < t->heap[least].due_ns)
				least = child;
		}
		if (least == at)
			return;
		swap(&t->heap[at], &t->heap[least]);
		at = least;
	}
}

/* Adds a conversation; without room it is left out. */
static bool add(struct pl_traffic *t, const struct talk *talk)
{
	uint32_t at = t->n;

	if (t->n == TALKS_MAX)
		return false;
	t->heap[t->n++] = *talk;
	while (at > 0 && t->heap[(at - 1) / 2].due_ns > t->heap[at].due_ns) {
		swap(&t->heap[at], &t->heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	return true;
}

static void drop_first(struct pl_traffic *t)
{
	t->heap[0] = t->heap[--t->n];
	sift_down(t);
}

/* ---- who talks ---- */

static struct pl_addr server_address(uint32_t i)
{
	return pl_addr_v4((const uint8_t[4]){ 192, 0, 2, (uint8_t)(1 + i) });
}

static struct talk new_talk(struct pl_traffic *t, uint64_t due_ns)
{
	const uint32_t client = (uint32_t)pl_rng_below(&t->rng, t->cfg.clients),
		       server = (uint32_t)pl_rng_below(&t->rng, t->cfg.servers);

	return (struct talk){ .due_ns = due_ns,
		.client = pl_addr_v4(
			(const uint8_t[4]){ 10, 0, (uint8_t)(client >> 8), (uint8_t)client }),
		.server = server_address(server),
		.cport = (uint16_t)(1024 + pl_rng_below(&t->rng, 64000)),
		.sport = 443,
		.cseq = (uint32_t)pl_rng_u64(&t->rng),
		.sseq = (uint32_t)pl_rng_u64(&t->rng),
		.rtt_ns = (5 + 3 * (uint64_t)server) * MS +
			  (uint64_t)pl_rng_exp(&t->rng, (double)MS) };
}

/* Time since the begin of the story's round. */
static uint64_t in_round(const struct pl_traffic *t, uint64_t ns)
{
	return (ns - t->cfg.start_ns) % ROUND_NS;
}

static bool within(uint64_t at, uint64_t from_s, uint64_t to_s)
{
	return at >= from_s * SECOND && at < to_s * SECOND;
}

static bool is_of(const struct talk *talk, uint32_t server)
{
	return talk->server.b[15] == server_address(server).b[15];
}

static void begin_tcp(struct pl_traffic *t)
{
	struct talk talk = new_talk(t, t->next_tcp_ns);

	talk.step = OPEN;
	talk.answers = (uint16_t)(1 + pl_rng_exp(&t->rng, 6));
	if (t->cfg.story && within(in_round(t, talk.due_ns), 20, 25) && is_of(&talk, 1))
		talk.rtt_ns += 400 * MS;
	t->truth.connections += add(t, &talk);
	t->next_tcp_ns += 1 + (uint64_t)pl_rng_exp(&t->rng, 1e9 / t->cfg.connections);
}

static void begin_dns(struct pl_traffic *t)
{
	struct talk talk = new_talk(t, t->next_dns_ns);

	talk.step = DNS_ASK;
	talk.server = pl_addr_v4((const uint8_t[4]){ 192, 0, 2, 253 });
	talk.sport = 53;
	talk.answers = (uint16_t)pl_rng_below(&t->rng, t->cfg.servers);
	t->truth.questions += add(t, &talk);
	t->next_dns_ns += 1 + (uint64_t)pl_rng_exp(&t->rng, 1e9 / t->cfg.connections);
}

static void probe(struct pl_traffic *t, uint64_t due_ns)
{
	struct talk talk = new_talk(t, due_ns);

	talk.step = PROBE;
	talk.client = pl_addr_v4((const uint8_t[4]){ 198, 51, 100, 66 });
	talk.server = server_address(t->cfg.servers - 1);
	talk.sport = (uint16_t)(1 + t->truth.scans % 10000);
	t->truth.scans += add(t, &talk);
}

static void flood(struct pl_traffic *t, uint64_t due_ns)
{
	struct talk talk = new_talk(t, due_ns);
	const uint64_t who = pl_rng_u64(&t->rng);

	talk.step = FLOOD;
	talk.client = pl_addr_v4((const uint8_t[4]){ (uint8_t)(who % 100 + 100),
		(uint8_t)(who >> 8), (uint8_t)(who >> 16), (uint8_t)(who >> 24) });
	talk.server = server_address(0);
	t->truth.syns += add(t, &talk);
}

/* Makes the story's next packet, or sets the time of its next step. */
static void attack(struct pl_traffic *t)
{
	const uint64_t ns = t->attack_ns, at = in_round(t, ns);

	if (within(at, 5, 7)) {
		probe(t, ns);
		t->attack_ns += 5 * MS;
	} else if (within(at, 10, 13)) {
		flood(t, ns);
		t->attack_ns += 1 * MS;
	} else {
		t->attack_ns += 100 * MS;
	}
}

/* Begins all conversations that start before the earliest packet of the present ones. */
static void begin_talks(struct pl_traffic *t)
{
	for (;;) {
		const uint64_t first = t->n > 0 ? t->heap[0].due_ns : UINT64_MAX;
		uint64_t least = t->next_tcp_ns < t->next_dns_ns ? t->next_tcp_ns : t->next_dns_ns;

		if (t->cfg.story && t->attack_ns < least && t->attack_ns <= first) {
			attack(t);
			continue;
		}
		if (least > first)
			return;
		if (least == t->next_tcp_ns)
			begin_tcp(t);
		else
			begin_dns(t);
	}
}

/* ---- packets ---- */

struct segment {
	bool back; /* from the server */
	uint8_t flags;
	uint16_t payload;
	uint64_t wait_ns; /* time until the next packet of this conversation */
	uint8_t next;
};

/* RFC 1035: asks for hNNN.example.net, a server's name, and answers with its address. */
static void put_dns(struct pl_build *b, const struct talk *talk, bool back)
{
	const uint8_t server = (uint8_t)talk->answers;
	const char name[] = { 4, 'h', (char)('0' + server / 100), (char)('0' + server / 10 % 10),
		(char)('0' + server % 10), 7, 'e', 'x', 'a', 'm', 'p', 'l', 'e', 3, 'n', 'e', 't',
		0 };

	pl_put_be16(b, (uint16_t)talk->cseq);
	pl_put_be16(b, back ? 0x8180 : 0x0100);
	pl_put_be16(b, 1);
	pl_put_be16(b, back);
	pl_put_be32(b, 0);
	pl_put(b, name, sizeof(name));
	pl_put_be32(b, 1 << 16 | 1); /* an address, of the Internet */
	if (!back)
		return;
	pl_put(b, "\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4", 12);
	pl_put(b, server_address(server).b + 12, 4);
}

static uint32_t put_frame(
	uint8_t *frame, const struct talk *talk, const struct segment *s, uint8_t proto)
{
	struct pl_build b = pl_build(frame, FRAME_MAX);
	struct pl_flow flow = { .proto = proto, .have = PL_FLOW_PORTS };
	const uint32_t ms = (uint32_t)(talk->due_ns / MS);
	size_t at, tcp;

	flow.src = s->back ? talk->server : talk->client;
	flow.dst = s->back ? talk->client : talk->server;
	flow.sport = s->back ? talk->sport : talk->cport;
	flow.dport = s->back ? talk->cport : talk->sport;
	memset(frame, 0, 80);
	pl_put_eth(&b, PL_ETH_IPV4, 0);
	at = pl_put_ip(&b, &flow, s->back ? 57 : 64, proto == PL_IP_TCP ? 3 : 0);
	if (proto == PL_IP_TCP) {
		const uint32_t seq = s->back ? talk->sseq : talk->cseq,
			       ack = s->back ? talk->cseq : talk->sseq;

		tcp = at + 20;
		pl_patch_be32(&b, tcp + 4, seq);
		pl_patch_be32(&b, tcp + 8, (s->flags & ACK) != 0 ? ack : 0);
		pl_patch_u8(&b, tcp + 13, s->flags);
		pl_patch_be16(&b, tcp + 14, 502);
		pl_patch(&b, tcp + 20, "\1\1\x8\xa", 4);
		pl_patch_be32(&b, tcp + 24, ms);
		pl_patch_be32(&b, tcp + 28, (s->flags & ACK) != 0 ? ms - 1 : 0);
	}
	if (proto == PL_IP_UDP)
		put_dns(&b, talk, s->back);
	else
		pl_put_zero(&b, s->payload);
	pl_end_ip(&b, at);
	return (uint32_t)b.len;
}

/* Segment that the conversation's step sends, and the next step. */
static struct segment segment_of(struct pl_traffic *t, const struct talk *talk)
{
	const uint64_t near = 200 * US + pl_rng_below(&t->rng, 100 * US), rtt = talk->rtt_ns;

	switch ((enum step)talk->step) {
	case OPEN:
		return (struct segment){ false, SYN, 0, rtt, OPENED };
	case OPENED:
		return (struct segment){ true, SYN | ACK, 0, near, BEGUN };
	case BEGUN:
		return (struct segment){ false, ACK, 0, near, REQUEST };
	case REQUEST:
		return (struct segment){ false, PSH | ACK, 320, rtt + MS, ANSWER };
	case ANSWER:
		return (struct segment){ true, ACK, MSS, near,
			talk->answers % 2 == 0 || talk->answers == 1 ? ANSWERED : ANSWER };
	case ANSWERED:
		return (struct segment){ false, ACK, 0, rtt / 4,
			talk->answers == 0 ? CLOSE : ANSWER };
	case CLOSE:
		return (struct segment){ false, FIN | ACK, 0, rtt, CLOSED };
	case CLOSED:
		return (struct segment){ true, FIN | ACK, 0, near, ENDED };
	case ENDED:
		return (struct segment){ false, ACK, 0, 0, OVER };
	case DNS_ASK:
		return (struct segment){ false, 0, 0, rtt, DNS_ANSWER };
	case DNS_ANSWER:
		return (struct segment){ true, 0, 0, 0, OVER };
	case PROBE:
		return (struct segment){ false, SYN, 0, rtt, PROBED };
	case PROBED:
		return (struct segment){ true, RST | ACK, 0, 0, OVER };
	case FLOOD:
	case OVER:
		break;
	}
	return (struct segment){ false, SYN, 0, 0, OVER };
}

/* Advances the numbers by the segment that was sent. */
static void step_on(struct talk *talk, const struct segment *s)
{
	uint32_t *seq = s->back ? &talk->sseq : &talk->cseq;

	*seq += s->payload + ((s->flags & (SYN | FIN)) != 0 ? 1 : 0);
	if (talk->step == ANSWER)
		talk->answers--;
	talk->step = s->next;
	talk->due_ns += s->wait_ns;
}

/* Returns true when the segment is lost behind the tap. */
static bool is_lost(struct pl_traffic *t, const struct talk *talk)
{
	const bool storm =
		t->cfg.story && within(in_round(t, talk->due_ns), 15, 19) && is_of(talk, 2);
	const double loss =
		storm && t->cfg.loss < PL_TRAFFIC_STORM_LOSS ? PL_TRAFFIC_STORM_LOSS : t->cfg.loss;

	if (pl_rng_unit(&t->rng) >= loss)
		return false;
	t->truth.lost++;
	t->truth.storm += storm;
	return true;
}

/* Sends the earliest conversation's packet. A segment that is lost behind the tap is sent again:
 * the tap sees it twice. */
static void send_first(struct pl_traffic *t, struct pl_packet *pkt, uint8_t *frame)
{
	struct talk *talk = &t->heap[0];
	const struct segment s = segment_of(t, talk);
	const bool dns = talk->step == DNS_ASK || talk->step == DNS_ANSWER;
	const uint32_t len = put_frame(frame, talk, &s, dns ? PL_IP_UDP : PL_IP_TCP);

	*pkt = (struct pl_packet){ .data = frame,
		.len = len,
		.wire_len = len,
		.ts_ns = talk->due_ns,
		.link = PL_LINK_ETHERNET };
	t->truth.packets++;
	if (s.payload > 0 && !dns && !talk->again && is_lost(t, talk)) {
		talk->again = true;
		talk->due_ns += AGAIN_NS;
	} else {
		talk->again = false;
		step_on(talk, &s);
	}
	if (talk->step == OVER)
		drop_first(t);
	else
		sift_down(t);
}

static bool ended(const struct pl_traffic *t)
{
	return (t->cfg.count != 0 && t->truth.packets >= t->cfg.count) ||
	       t->heap[0].due_ns >= t->end_ns;
}

int pl_traffic_next(struct pl_traffic *traffic, uint64_t until_ns, struct pl_batch *ret)
{
	struct pl_traffic *t = traffic;

	ret->n = 0;
	while (ret->n < PL_BATCH_MAX) {
		begin_talks(t);
		if (ended(t))
			return ret->n > 0 ? (int)ret->n : -ENODATA;
		if (t->heap[0].due_ns >= until_ns)
			break;
		send_first(t, &ret->pkts[ret->n], t->frames[ret->n]);
		ret->n++;
	}
	begin_talks(t);
	return (int)ret->n;
}

uint64_t pl_traffic_due_ns(const struct pl_traffic *traffic)
{
	return ended(traffic) ? UINT64_MAX : traffic->heap[0].due_ns;
}

void pl_traffic_skip_to(struct pl_traffic *traffic, uint64_t now_ns)
{
	struct pl_traffic *t = traffic;
	const uint64_t due = t->heap[0].due_ns, by = now_ns > due ? now_ns - due : 0;

	for (uint32_t i = 0; i < t->n; i++)
		t->heap[i].due_ns += by;
	t->next_tcp_ns += by;
	t->next_dns_ns += by;
	t->attack_ns += by;
}

const struct pl_traffic_truth *pl_traffic_truth(const struct pl_traffic *traffic)
{
	return &traffic->truth;
}

int pl_traffic_new(struct pl_traffic **ret, const struct pl_traffic_cfg *cfg, struct pl_diag *diag)
{
	struct pl_traffic *t;

	if (cfg->clients > 65536 || cfg->servers > 200 || cfg->connections < 0 ||
		cfg->connections > 1e6 || cfg->loss < 0 || cfg->loss > 1) {
		pl_diag_set(diag,
			"traffic: at most 65536 clients, 200 servers, 1000000 connections per second, "
			"and a loss from 0 to 1");
		return -EINVAL;
	}
	t = calloc(1, sizeof(*t));
	if (t != NULL)
		t->heap = calloc(TALKS_MAX, sizeof(*t->heap));
	if (t == NULL || t->heap == NULL) {
		free(t);
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	t->cfg = *cfg;
	t->cfg.clients = cfg->clients != 0 ? cfg->clients : 200;
	t->cfg.servers = cfg->servers != 0 ? cfg->servers : 10;
	t->cfg.connections = cfg->connections > 0 ? cfg->connections : 100;
	t->end_ns = cfg->duration_ns != 0 ? cfg->start_ns + cfg->duration_ns : UINT64_MAX;
	t->next_tcp_ns = t->next_dns_ns = t->attack_ns = cfg->start_ns;
	pl_rng_seed(&t->rng, cfg->seed);
	begin_talks(t);
	*ret = t;
	return 0;
}

void pl_traffic_free(struct pl_traffic *traffic)
{
	if (traffic == NULL)
		return;
	free(traffic->heap);
	free(traffic);
}
