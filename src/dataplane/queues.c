/* SPDX-License-Identifier: BSD-2-Clause */
/* The queues of an output port: limits, marking, shaping, scheduling. */
#include "dataplane/queues.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BITS_NS   UINT64_C(8000000000) /* time of a byte at one bit per second, in ns */
/* Least bytes that a round of deficit round robin gives the greatest weight: a usual packet, so
 * that no class sends long while others wait. Rounds in which none can send cost nothing. */
#define ROUND_MIN 2048

/* A time with the fraction of a ns, so that rates are exact over any time. */
struct exact {
	uint64_t ns, rest; /* plus rest / rate ns */
};

struct class
{
	struct pl_dp_packet *head, **tail;
	int64_t deficit;
	/* Time by which the shaper would have sent all its packets at its rate: the next one may
	 * leave burst_ns before (virtual scheduling of GCRA, ITU-T I.371). */
	struct exact shaped;
	uint64_t burst_ns;
	uint32_t quantum;
	struct pl_dp_queue_account account;
};

struct pl_dp_port {
	struct pl_dp_port_cfg cfg;
	struct class classes[PL_DP_CLASSES_MAX];
	struct exact busy; /* the port is busy until then */
	uint32_t held_packets;
	uint64_t held_bytes;
	/* Round robin: the visited class, and whether it got its quantum at this visit. */
	uint32_t visited;
	bool given;
	struct class *last; /* class of the last dequeued packet */
	/* Sending time in the open window and in the one before, ns. A packet that is being sent
	 * reaches into later windows, up to the end of `busy`. */
	uint64_t window, sent_ns, sent_before_ns, counted_to_ns;
};

const struct pl_stats pl_dp_queue_stats = {
	.rows =
		(const struct pl_stat[]){
#define PL_STAT(...) PL_STAT_ROW(struct pl_dp_queue_account, __VA_ARGS__)
#include "dataplane/queue_stats.def"
#undef PL_STAT
		},
	.n = sizeof(struct pl_dp_queue_account) / sizeof(uint64_t),
};

static void add_time(struct exact *t, uint64_t bytes, uint64_t rate_bps)
{
	uint64_t rest = t->rest + bytes * BITS_NS;

	t->ns += rest / rate_bps;
	t->rest = rest % rate_bps;
}

static void take_time(struct exact *t, uint64_t bytes, uint64_t rate_bps)
{
	uint64_t n = bytes * BITS_NS, borrow = n > t->rest ? (n - t->rest - 1) / rate_bps + 1 : 0;

	t->ns -= borrow < t->ns ? borrow : t->ns;
	t->rest = t->rest + borrow * rate_bps - n;
}

static int check(const struct pl_dp_port_cfg *cfg, struct pl_diag *diag)
{
	if (cfg->n_classes == 0 || cfg->n_classes > PL_DP_CLASSES_MAX) {
		pl_diag_set(diag, "a port has 1 to %u classes, not %u", PL_DP_CLASSES_MAX,
			cfg->n_classes);
		return -EINVAL;
	}
	if (cfg->rate_bps > PL_DP_RATE_MAX || cfg->overhead_bytes > 1000) {
		pl_diag_set(diag, "a port's rate is at most 1 Tb/s, its overhead 1000 bytes");
		return -EINVAL;
	}
	for (unsigned int i = 0; i < cfg->n_classes; i++) {
		const struct pl_dp_class_cfg *c = &cfg->classes[i];

		if (c->weight > PL_DP_WEIGHT_MAX || c->rate_bps > PL_DP_RATE_MAX ||
			c->burst_bytes > PL_DP_BURST_MAX) {
			pl_diag_set(diag,
				"class %u: a weight is at most %u, a rate 1 Tb/s, a burst %u bytes",
				i, PL_DP_WEIGHT_MAX, PL_DP_BURST_MAX);
			return -EINVAL;
		}
	}
	return 0;
}

/* Quanta are in proportion to the weights, the greatest at least ROUND_MIN. */
static void take_cfg(struct pl_dp_port *p, const struct pl_dp_port_cfg *cfg)
{
	uint32_t greatest = 1, scale;

	p->cfg = *cfg;
	if (p->cfg.util_window_ns == 0)
		p->cfg.util_window_ns = PL_DP_UTIL_WINDOW_NS;
	for (unsigned int i = 0; i < cfg->n_classes; i++) {
		if (cfg->classes[i].weight > greatest)
			greatest = cfg->classes[i].weight;
	}
	scale = (ROUND_MIN - 1) / greatest + 1;
	for (unsigned int i = 0; i < cfg->n_classes; i++) {
		const struct pl_dp_class_cfg *c = &cfg->classes[i];
		struct class *class = &p->classes[i];

		class->quantum = c->weight * scale;
		class->burst_ns = c->rate_bps != 0 ? c->burst_bytes * BITS_NS / c->rate_bps : 0;
	}
}

int pl_dp_port_new(struct pl_dp_port **ret, const struct pl_dp_port_cfg *cfg, struct pl_diag *diag)
{
	struct pl_dp_port *p;
	int r = check(cfg, diag);

	if (r != 0)
		return r;
	p = calloc(1, sizeof(*p));
	if (p == NULL)
		return -ENOMEM;
	for (unsigned int i = 0; i < PL_DP_CLASSES_MAX; i++)
		p->classes[i].tail = &p->classes[i].head;
	take_cfg(p, cfg);
	*ret = p;
	return 0;
}

void pl_dp_port_free(struct pl_dp_port *p)
{
	struct pl_dp_packet *pkt, *next;

	if (p == NULL)
		return;
	for (pkt = pl_dp_port_flush(p); pkt != NULL; pkt = next) {
		next = pkt->next;
		pl_dp_packet_free(pkt);
	}
	free(p);
}

int pl_dp_port_set(struct pl_dp_port *p, const struct pl_dp_port_cfg *cfg, struct pl_diag *diag)
{
	int r = check(cfg, diag);

	if (r != 0)
		return r;
	if (cfg->n_classes != p->cfg.n_classes) {
		pl_diag_set(diag, "the port has %u classes; their number cannot change",
			p->cfg.n_classes);
		return -EINVAL;
	}
	/* The fractions of a ns are in units of the old rates. */
	p->busy.rest = 0;
	for (unsigned int i = 0; i < cfg->n_classes; i++)
		p->classes[i].shaped.rest = 0;
	take_cfg(p, cfg);
	return 0;
}

const struct pl_dp_port_cfg *pl_dp_port_get(const struct pl_dp_port *p)
{
	return &p->cfg;
}

/* Marks an ECN-capable packet CE and updates an IPv4 header's checksum (RFC 1624). */
static void mark(struct pl_dp_packet *pkt, struct pl_dp_queue_account *account)
{
	const struct pl_dp_headers *h = &pkt->headers;
	uint8_t *ip;
	uint32_t sum;

	if ((h->ip_version != 4 && h->ip_version != 6) || h->l3 >= pkt->len ||
		pkt->len - h->l3 < (h->ip_version == 4 ? 20 : 40)) {
		account->not_capable++;
		return;
	}
	ip = pkt->data + h->l3;
	if (h->ip_version == 6) {
		/* Traffic class: bits 4 to 11 of the header, ECN its last two (RFC 8200 3). */
		if ((ip[1] & 0x30) == 0) {
			account->not_capable++;
		} else if ((ip[1] & 0x30) != 0x30) {
			ip[1] |= 0x30;
			account->marked++;
		}
		return;
	}
	if ((ip[1] & 3) == 0) {
		account->not_capable++;
		return;
	}
	if ((ip[1] & 3) == 3)
		return;
	/* HC' = ~(~HC + ~m + m'), where the byte is the lower half of word m. */
	sum = (uint16_t) ~(ip[10] << 8 | ip[11]);
	sum += (uint16_t) ~(ip[0] << 8 | ip[1]);
	ip[1] |= 3;
	sum += (uint32_t)(ip[0] << 8 | ip[1]);
	sum = (sum & 0xffff) + (sum >> 16);
	sum = (sum & 0xffff) + (sum >> 16);
	ip[10] = (uint8_t)(~sum >> 8);
	ip[11] = (uint8_t)~sum;
	account->marked++;
}

/* Returns the counter of the limit that the packet exceeds; NULL: it fits. */
static uint64_t *refuses(struct pl_dp_port *p, unsigned int queue, uint32_t len)
{
	const struct pl_dp_class_cfg *c = &p->cfg.classes[queue];
	struct pl_dp_queue_account *account = &p->classes[queue].account;

	if (c->limit_bytes != 0 && account->held_bytes + len > c->limit_bytes)
		return &account->dropped_bytes_limit;
	if (c->limit_packets != 0 && account->held_packets >= c->limit_packets)
		return &account->dropped_packets_limit;
	if (p->cfg.limit_bytes != 0 && p->held_bytes + len > p->cfg.limit_bytes)
		return &account->dropped_port_limit;
	return NULL;
}

bool pl_dp_port_enqueue(struct pl_dp_port *p, struct pl_dp_packet *pkt, uint64_t now_ns)
{
	struct class *class;
	struct pl_dp_queue_account *account;
	uint64_t *refused;

	if (pkt->queue >= p->cfg.n_classes) {
		pkt->queue = 0;
		p->classes[0].account.other_class++;
	}
	class = &p->classes[pkt->queue];
	account = &class->account;
	pkt->depth_bytes = (uint32_t)account->held_bytes;
	pkt->depth_packets = (uint32_t)account->held_packets;
	pkt->queued_ns = now_ns;
	account->in_packets++;
	account->in_bytes += pkt->len;
	refused = refuses(p, pkt->queue, pkt->len);
	if (refused != NULL) {
		++*refused;
		account->dropped_bytes += pkt->len;
		pkt->drop = PL_DP_DROP_QUEUE;
		return false;
	}
	if (p->cfg.classes[pkt->queue].ecn_bytes != 0 &&
		pkt->depth_bytes >= p->cfg.classes[pkt->queue].ecn_bytes)
		mark(pkt, account);
	pkt->next = NULL;
	*class->tail = pkt;
	class->tail = &pkt->next;
	account->held_packets++;
	account->held_bytes += pkt->len;
	if (account->held_packets > account->peak_packets)
		account->peak_packets = account->held_packets;
	if (account->held_bytes > account->peak_bytes)
		account->peak_bytes = account->held_bytes;
	p->held_packets++;
	p->held_bytes += pkt->len;
	return true;
}

/* Returns when the shaper lets the class's first packet leave. */
static uint64_t ready(const struct pl_dp_port *p, unsigned int queue)
{
	const struct class *c = &p->classes[queue];

	if (p->cfg.classes[queue].rate_bps == 0 || c->shaped.ns <= c->burst_ns)
		return 0;
	return c->shaped.ns - c->burst_ns;
}

uint64_t pl_dp_port_next(const struct pl_dp_port *p)
{
	uint64_t first = PL_DP_NEVER;

	if (p->held_packets == 0)
		return PL_DP_NEVER;
	for (unsigned int i = 0; i < p->cfg.n_classes; i++) {
		const struct class *c = &p->classes[i];
		uint64_t at;

		if (c->head == NULL)
			continue;
		/* No packet leaves before it arrived. */
		at = ready(p, i);
		at = at > c->head->queued_ns ? at : c->head->queued_ns;
		first = at < first ? at : first;
	}
	return first > p->busy.ns ? first : p->busy.ns;
}

static bool may_send(const struct pl_dp_port *p, unsigned int queue, uint64_t now_ns)
{
	const struct pl_dp_packet *head = p->classes[queue].head;

	/* A late caller asks for a past time, at which packets that came later must not count. */
	return head != NULL && head->queued_ns <= now_ns && ready(p, queue) <= now_ns;
}

/* Returns the bytes that class i lacks to send its first packet. */
static int64_t lacks(const struct pl_dp_port *p, unsigned int i)
{
	const struct class *c = &p->classes[i];

	return (int64_t)c->head->len + p->cfg.overhead_bytes - c->deficit;
}

/* Gives the classes in the mask the quanta of the rounds in which none can send, but the last. */
static void skip_rounds(struct pl_dp_port *p, uint32_t mask)
{
	int64_t rounds = INT64_MAX;

	for (unsigned int i = 0; i < p->cfg.n_classes; i++) {
		if ((mask >> i & 1) != 0) {
			int64_t n = (lacks(p, i) - 1) / p->classes[i].quantum;

			rounds = n < rounds ? n : rounds;
		}
	}
	for (unsigned int i = 0; rounds > 0 && i < p->cfg.n_classes; i++) {
		if ((mask >> i & 1) != 0)
			p->classes[i].deficit += rounds * p->classes[i].quantum;
	}
}

/* Returns the class whose turn it is by deficit round robin; -1: none may send. */
static int round_robin(struct pl_dp_port *p, uint64_t now_ns)
{
	uint32_t mask = 0, tried = 0;

	for (unsigned int i = 0; i < p->cfg.n_classes; i++)
		mask |= (uint32_t)(p->cfg.classes[i].weight != 0 && may_send(p, i, now_ns)) << i;
	/* Terminates: after skip_rounds a class can send in the next round. */
	while (mask != 0) {
		const uint32_t i = p->visited;

		if ((mask >> i & 1) != 0) {
			if (!p->given)
				p->classes[i].deficit += p->classes[i].quantum;
			p->given = true;
			if (lacks(p, i) <= 0)
				return (int)i;
		}
		p->visited = (i + 1) % p->cfg.n_classes;
		p->given = false;
		if (++tried == p->cfg.n_classes) {
			skip_rounds(p, mask);
			tried = 0;
		}
	}
	return -1;
}

static int whose_turn(struct pl_dp_port *p, uint64_t now_ns)
{
	for (int i = (int)p->cfg.n_classes - 1; i >= 0; i--) {
		if (p->cfg.classes[i].weight == 0 && may_send(p, (unsigned int)i, now_ns))
			return i;
	}
	return round_robin(p, now_ns);
}

/* Adds the port's sending time until now to the windows, of which two are kept. */
static void count_sent(struct pl_dp_port *p, uint64_t now_ns)
{
	const uint64_t size = p->cfg.util_window_ns;
	uint64_t window = now_ns / size, end = p->busy.ns < now_ns ? p->busy.ns : now_ns;

	if (window > p->window) {
		uint64_t from = p->counted_to_ns, start = window * size;

		/* Sending time in the whole window before the open one. */
		p->sent_before_ns = window == p->window + 1 ? p->sent_ns : 0;
		p->sent_ns = 0;
		if (from < start - size)
			from = start - size;
		if (end > from)
			p->sent_before_ns +=
				(end < start ? end : start) - (from < start ? from : start);
		p->window = window;
		if (p->counted_to_ns < start)
			p->counted_to_ns = start;
	}
	if (end > p->counted_to_ns) {
		p->sent_ns += end - p->counted_to_ns;
		p->counted_to_ns = end;
	}
}

/* Returns the utilization of the port in the last complete window before now, in 1/65536; 0 without
 * a rate. */
static uint32_t util_of(struct pl_dp_port *p, uint64_t now_ns)
{
	if (p->cfg.rate_bps == 0)
		return 0;
	count_sent(p, now_ns);
	return (uint32_t)((p->sent_before_ns << 16) / p->cfg.util_window_ns);
}

static void take_out(struct pl_dp_port *p, struct class *class)
{
	struct pl_dp_packet *pkt = class->head;

	class->head = pkt->next;
	if (class->head == NULL) {
		class->tail = &class->head;
		/* An empty class loses its credit (3.2 of the paper), not its debt. */
		class->deficit = class->deficit < 0 ? class->deficit : 0;
	}
	pkt->next = NULL;
	class->account.held_packets--;
	class->account.held_bytes -= pkt->len;
	p->held_packets--;
	p->held_bytes -= pkt->len;
}

/* Charges the port and the class's shaper for a packet whose sending began now. */
static void note_leave(struct pl_dp_port *p, unsigned int queue, uint64_t bytes, uint64_t now_ns)
{
	const struct pl_dp_class_cfg *cfg = &p->cfg.classes[queue];
	struct class *class = &p->classes[queue];

	if (now_ns > p->busy.ns)
		p->busy = (struct exact){ .ns = now_ns };
	if (p->counted_to_ns < now_ns)
		p->counted_to_ns = now_ns;
	if (p->cfg.rate_bps != 0)
		add_time(&p->busy, bytes, p->cfg.rate_bps);
	if (cfg->rate_bps != 0) {
		if (now_ns > class->shaped.ns)
			class->shaped = (struct exact){ .ns = now_ns };
		add_time(&class->shaped, bytes, cfg->rate_bps);
	}
	if (cfg->weight != 0)
		class->deficit -= (int64_t)bytes;
}

struct pl_dp_packet *pl_dp_port_dequeue(struct pl_dp_port *p, uint64_t now_ns)
{
	struct pl_dp_packet *pkt;
	struct class *class;
	uint64_t residence;
	int queue;

	if (p->held_packets == 0 || now_ns < p->busy.ns)
		return NULL;
	queue = whose_turn(p, now_ns);
	if (queue < 0)
		return NULL;
	class = &p->classes[queue];
	pkt = class->head;
	pkt->tx_util = util_of(p, now_ns);
	note_leave(p, (unsigned int)queue, (uint64_t)pkt->len + p->cfg.overhead_bytes, now_ns);
	take_out(p, class);
	pkt->out_ns = p->busy.ns;
	residence = pkt->out_ns - pkt->queued_ns;
	class->account.out_packets++;
	class->account.out_bytes += pkt->len;
	class->account.residence_ns += residence;
	if (residence > class->account.residence_max_ns)
		class->account.residence_max_ns = residence;
	p->last = class;
	return pkt;
}

uint64_t pl_dp_port_grew(struct pl_dp_port *p, int32_t bytes)
{
	const uint64_t n = bytes < 0 ? 0u - (uint64_t)bytes : (uint64_t)bytes;
	struct class *class = p->last;
	uint64_t rate;

	if (class == NULL || n == 0)
		return p->busy.ns;
	rate = p->cfg.classes[class - p->classes].rate_bps;
	if (bytes > 0) {
		class->account.grown_bytes += n;
		if (p->cfg.rate_bps != 0)
			add_time(&p->busy, n, p->cfg.rate_bps);
		if (rate != 0)
			add_time(&class->shaped, n, rate);
	} else {
		class->account.shrunk_bytes += n;
		if (p->cfg.rate_bps != 0)
			take_time(&p->busy, n, p->cfg.rate_bps);
		if (rate != 0)
			take_time(&class->shaped, n, rate);
	}
	if (p->cfg.classes[class - p->classes].weight != 0)
		class->deficit -= bytes;
	return p->busy.ns;
}

struct pl_dp_packet *pl_dp_port_flush(struct pl_dp_port *p)
{
	struct pl_dp_packet *list = NULL, **end = &list;

	for (unsigned int i = 0; i < PL_DP_CLASSES_MAX; i++) {
		struct class *class = &p->classes[i];

		while (class->head != NULL) {
			struct pl_dp_packet *pkt = class->head;

			class->account.flushed++;
			class->account.flushed_bytes += pkt->len;
			take_out(p, class);
			pkt->drop = PL_DP_DROP_PORT;
			*end = pkt;
			end = &pkt->next;
		}
	}
	return list;
}

void pl_dp_port_clock_set(struct pl_dp_port *p, uint64_t step_ns)
{
	p->busy.ns += step_ns;
	p->counted_to_ns += step_ns;
	for (unsigned int i = 0; i < p->cfg.n_classes; i++) {
		p->classes[i].shaped.ns += step_ns;
		for (struct pl_dp_packet *pkt = p->classes[i].head; pkt != NULL; pkt = pkt->next) {
			pkt->queued_ns += step_ns;
			pkt->in_ns += step_ns;
		}
	}
}

uint32_t pl_dp_port_held(const struct pl_dp_port *p)
{
	return p->held_packets;
}

const struct pl_dp_queue_account *pl_dp_port_account(const struct pl_dp_port *p, unsigned int queue)
{
	return queue < p->cfg.n_classes ? &p->classes[queue].account : NULL;
}
