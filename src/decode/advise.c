/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Keeps the samples. An exporter gets a place with its first packet that fails or is doubted; when
 * its sample is full, it is tried once. One for which nothing was found rests for twice as many
 * packets each time, so that damage costs little however much of it there is. An advice stays until
 * its exporter sends only packets that decode, or nothing any more.
 */
#include "decode/advise_try.h"

#include <errno.h>
#include <stdlib.h>

#define PLACES       8    /* exporters that are followed */
#define SAMPLE       8    /* packets that fail, and packets that decode, per exporter */
#define OF_A_LOOK    16   /* packets examined per batch: so many that fail, and as many others */
#define OF_EVERY     64   /* packets examined per batch when every batch is examined */
#define REST_MAX     4096 /* most packets skipped of an exporter for which no setting was found */
#define CURED        64   /* packets that decode, in a row, before an advice is taken back */
#define DEFAULT_IDLE UINT64_C(600000000000)

struct place {
	bool used, advised, given; /* given: by pl_advise_fresh */
	struct pl_advice advice;   /* valid with `advised` */
	struct pl_addr addr;
	uint8_t verdict; /* verdict of bad */
	unsigned int n_bad, n_good;
	bool believed;     /* one of its depths cannot be of 16 + 16 bits */
	uint32_t rest;     /* failing packets still to be skipped */
	uint32_t rest_for; /* packets to be skipped next time */
	uint32_t cured;    /* packets that decoded since the last that did not */
	uint64_t last_ns;  /* time of the last check */
	struct kept bad[SAMPLE], good[SAMPLE];
};

struct pl_advise {
	struct trial trial;
	uint64_t look_ns, next_ns, idle_ns, now_ns;
	uint32_t turn; /* packet of the batch at which the next check begins */
	bool changed;
	struct kept now; /* the present packet */
	struct place places[PLACES];
};

int pl_advise_new(struct pl_advise **ret, const struct pl_decode_options *decode, uint64_t look_ns)
{
	struct pl_advise *a = calloc(1, sizeof(*a));

	if (a == NULL)
		return -ENOMEM;
	a->look_ns = look_ns;
	a->idle_ns = decode->exporter_idle_ns != 0 ? decode->exporter_idle_ns : DEFAULT_IDLE;
	if (trial_init(&a->trial, decode) < 0) {
		pl_advise_free(a);
		return -ENOMEM;
	}
	*ret = a;
	return 0;
}

void pl_advise_free(struct pl_advise *a)
{
	if (a == NULL)
		return;
	trial_done(&a->trial);
	free(a);
}

uint64_t pl_advise_memory(const struct pl_decode_options *decode)
{
	return sizeof(struct pl_advise) + trial_memory(decode);
}

/* ---- places ---- */

static struct place *find(struct pl_advise *a, const struct pl_addr *addr)
{
	for (unsigned int i = 0; i < PLACES; i++) {
		if (a->places[i].used && pl_addr_equal(&a->places[i].addr, addr))
			return &a->places[i];
	}
	return NULL;
}

static void give_up(struct pl_advise *a, struct place *p)
{
	a->changed |= p->advised;
	p->used = false;
	p->advised = false;
}

/* Finds a free place, or, of those without an advice, the one that was silent for the longest; NULL
 * when all have one. */
static struct place *room(struct pl_advise *a)
{
	struct place *oldest = NULL;

	for (unsigned int i = 0; i < PLACES; i++) {
		struct place *p = &a->places[i];

		if (!p->used)
			return p;
		if (!p->advised && (oldest == NULL || p->last_ns < oldest->last_ns))
			oldest = p;
	}
	return oldest;
}

static struct place *find_or_make(struct pl_advise *a, const struct pl_addr *addr)
{
	struct place *p = find(a, addr);

	if (p != NULL)
		return p;
	p = room(a);
	if (p == NULL)
		return NULL;
	p->used = true;
	p->addr = *addr;
	p->n_bad = p->n_good = 0;
	p->believed = false;
	p->rest = p->rest_for = p->cured = 0;
	return p;
}

/* ---- packets ---- */

/* The datagram of a report, as a socket would give it; false: it is none, or too long. */
static bool keep(struct pl_advise *a, const struct pl_packet *packet)
{
	struct pl_layers l;
	struct pl_packet *k = &a->now.packet;

	*k = *packet;
	if (packet->link != PL_LINK_UDP) {
		if (pl_layers_walk(&l, pl_cursor(packet->data, packet->len),
			    (enum pl_link)packet->link, true) != PL_V_OK ||
			(l.flags & (PL_LAYERS_FRAGMENT | PL_LAYERS_NO_L4)) != 0 ||
			l.flow.proto != PL_IP_UDP || !is_report_port(a->trial.probe, l.flow.dport))
			return false;
		*k = (struct pl_packet){ .data = l.payload.pos,
			.len = (uint32_t)pl_cursor_left(&l.payload),
			.wire_len = (uint32_t)pl_cursor_left(&l.payload) + l.missing,
			.ts_ns = packet->ts_ns,
			.link = PL_LINK_UDP,
			.sport = l.flow.sport,
			.dport = l.flow.dport,
			.src = l.flow.src,
			.dst = l.flow.dst };
	}
	if (k->len > KEPT_BYTES)
		return false;
	memcpy(a->now.bytes, k->data, k->len);
	return true;
}

static void store(struct kept *sample, unsigned int *n, const struct kept *k)
{
	if (*n == SAMPLE)
		return;
	sample[*n].packet = k->packet;
	memcpy(sample[*n].bytes, k->bytes, k->packet.len);
	(*n)++;
}

/* Verdicts that another setting may change. A packet that was cut stays cut. */
static bool is_worth(uint8_t verdict)
{
	return verdict >= PL_V_REPORT_VERSION && verdict != PL_V_INT_TRUNCATED;
}

static void take_bad(struct pl_advise *a, uint8_t verdict)
{
	struct place *p = find_or_make(a, &a->now.packet.src);

	if (p == NULL)
		return;
	p->last_ns = a->now_ns;
	p->cured = 0;
	if (p->advised && p->advice.verdict != PL_V_OK)
		return;
	if (p->rest > 0) {
		p->rest--;
		return;
	}
	if (p->n_bad == 0)
		p->verdict = verdict;
	if (p->verdict == verdict)
		store(p->bad, &p->n_bad, &a->now);
}

/* True when a packet that decodes confirms the advice. */
static bool confirms(const struct place *p, enum depths depths)
{
	return p->advice.verdict == PL_V_OK && depths == DEPTHS_DOUBTED;
}

static void take_good(struct pl_advise *a)
{
	struct place *p = find(a, &a->now.packet.src);
	enum depths depths;

	if (trial_before(&a->trial, &a->now) != PL_V_OK)
		return;
	depths = trial_depths(&a->trial.before);
	if (p == NULL && depths == DEPTHS_DOUBTED)
		p = find_or_make(a, &a->now.packet.src);
	if (p == NULL)
		return;
	p->last_ns = a->now_ns;
	p->believed |= depths == DEPTHS_BELIEVED;
	if (p->n_bad > 0 || depths == DEPTHS_DOUBTED)
		store(p->good, &p->n_good, &a->now);
	if (!p->advised)
		return;
	p->cured = confirms(p, depths) ? 0 : p->cured + 1;
	if (p->cured == CURED || (p->believed && p->advice.verdict == PL_V_OK)) {
		p->advised = false;
		p->n_bad = p->n_good = 0;
		a->changed = true;
	}
}

static void look(
	struct pl_advise *a, const struct pl_batch *batch, const struct pl_outcome *outcomes)
{
	const unsigned int most = a->look_ns == 0 ? OF_EVERY : OF_A_LOOK;
	unsigned int bad = 0, good = 0;

	for (uint32_t i = 0; i < batch->n && (bad < most || good < most); i++) {
		const uint32_t at = (a->turn + i) % batch->n;
		const struct pl_outcome *o = &outcomes[at];

		if (o->verdict == PL_V_OK && o->reports > 0 && good < most) {
			good++;
			if (keep(a, &batch->pkts[at]))
				take_good(a);
		} else if (is_worth(o->verdict) && bad < most) {
			bad++;
			if (keep(a, &batch->pkts[at]))
				take_bad(a, o->verdict);
		}
	}
	/* An odd number, so that sizes of batches do not decide which packets are examined. */
	a->turn += most + 1;
}

/* ---- trials ---- */

static void advise(struct pl_advise *a, struct place *p, const struct pl_advice *advice)
{
	p->advised = true;
	p->given = false;
	p->advice = *advice;
	p->cured = 0;
	a->changed = true;
}

static void try_bad(struct pl_advise *a, struct place *p)
{
	struct pl_advice found;

	if (trial_find(&a->trial, &p->addr, p->bad, p->n_bad, p->good, p->n_good, &found)) {
		found.verdict = p->verdict;
		advise(a, p, &found);
		return;
	}
	p->n_bad = p->n_good = 0;
	p->rest_for = p->rest_for == 0 ? SAMPLE : 2 * p->rest_for;
	if (p->rest_for > REST_MAX)
		p->rest_for = REST_MAX;
	p->rest = p->rest_for;
}

static void try_good(struct pl_advise *a, struct place *p)
{
	struct pl_advice found;

	if (trial_find(&a->trial, &p->addr, NULL, 0, p->good, p->n_good, &found))
		advise(a, p, &found);
	else
		p->believed = true;
}

/* Tries the sample of one exporter at most, which costs as much as some hundred packets. */
static void try_one(struct pl_advise *a, unsigned int bad, unsigned int good)
{
	for (unsigned int i = 0; i < PLACES; i++) {
		struct place *p = &a->places[i];

		if (!p->used || (p->advised && p->advice.verdict != PL_V_OK))
			continue;
		if (p->n_bad >= bad) {
			try_bad(a, p);
			return;
		}
		if (!p->advised && !p->believed && p->n_bad == 0 && p->n_good >= good) {
			try_good(a, p);
			return;
		}
	}
}

bool pl_advise_batch(struct pl_advise *a, const struct pl_batch *batch,
	const struct pl_outcome *outcomes, uint64_t now_ns)
{
	if (now_ns < a->next_ns || batch->n == 0)
		return false;
	a->next_ns = now_ns + a->look_ns;
	a->now_ns = now_ns;
	a->changed = false;
	for (unsigned int i = 0; i < PLACES; i++) {
		struct place *p = &a->places[i];

		if (p->used && now_ns > p->last_ns && now_ns - p->last_ns > a->idle_ns)
			give_up(a, p);
	}
	look(a, batch, outcomes);
	try_one(a, SAMPLE, SAMPLE);
	return a->changed;
}

bool pl_advise_end(struct pl_advise *a)
{
	a->changed = false;
	for (unsigned int i = 0; i < PLACES; i++)
		try_one(a, 1, SAMPLE / 2);
	return a->changed;
}

const struct pl_advice *pl_advise_next(const struct pl_advise *a, unsigned int *pos)
{
	while (*pos < PLACES) {
		const struct place *p = &a->places[(*pos)++];

		if (p->used && p->advised)
			return &p->advice;
	}
	return NULL;
}

const struct pl_advice *pl_advise_fresh(struct pl_advise *a)
{
	for (unsigned int i = 0; i < PLACES; i++) {
		struct place *p = &a->places[i];

		if (!p->used || !p->advised || p->given)
			continue;
		p->given = true;
		return &p->advice;
	}
	return NULL;
}
