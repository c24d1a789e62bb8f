/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps connections in an open-addressed table, each in memory of its own. */
#include "mark/observer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

#define FLOWS_MAX 65536u
#define ECN_CE    3

struct flow {
	struct pl_mark_flow key; /* key of way 0, the direction of the first datagram */
	bool has_handshake;      /* a long header of a known version was seen */
	bool has_answer;
	uint64_t began_ns;
	uint64_t cids[2];
	uint8_t cid_len[2]; /* length of ids in short headers of each way */
	bool has_len[2], has_cid[2];
	uint8_t cid[2][PL_QUIC_CID_MAX];
	struct pl_efm efm;
};

struct pl_observer {
	struct pl_observer_config config;
	struct pl_observer_stats stats;
	struct flow **flows;
	uint32_t *places; /* hash table: index into flows, plus 1 */
	uint32_t n, mask;
	uint64_t seed;
};

const struct pl_stats pl_observer_stats_list = {
	.rows =
		(const struct pl_stat[]){
#define PL_STAT(...) PL_STAT_ROW(struct pl_observer_stats, __VA_ARGS__)
#include "mark/observer_stats.def"
#undef PL_STAT
		},
	.n = sizeof(struct pl_observer_stats) / sizeof(uint64_t),
};

int pl_observer_new(
	struct pl_observer **ret, const struct pl_observer_config *config, struct pl_diag *diag)
{
	const struct pl_efm_config *efm = &config->efm;
	struct pl_observer *o;
	uint32_t room = 4;

	if (efm->square != 0 &&
		((efm->square & (efm->square - 1)) != 0 || efm->square < PL_EFM_SQUARE_MIN ||
			efm->square > PL_EFM_SQUARE_MAX))
		return pl_diag_fail(diag, -EINVAL,
			"blocks of %u packets: a power of two from %u to %u", efm->square,
			PL_EFM_SQUARE_MIN, PL_EFM_SQUARE_MAX);
	if (efm->threshold > PL_EFM_THRESHOLD_MAX)
		return pl_diag_fail(diag, -EINVAL,
			"%u packets behind a block's edge are too many: at most %u, below half "
			"of the shortest block",
			efm->threshold, PL_EFM_THRESHOLD_MAX);
	o = calloc(1, sizeof(*o));
	if (o == NULL)
		return -ENOMEM;
	o->config = *config;
	if (o->config.flows_max == 0)
		o->config.flows_max = FLOWS_MAX;
	while (room < o->config.flows_max + o->config.flows_max / 2 && room < UINT32_C(1) << 31)
		room *= 2;
	o->mask = room - 1;
	o->seed = pl_hash_seed();
	o->flows = calloc(o->config.flows_max, sizeof(struct flow *));
	o->places = calloc(room, sizeof(*o->places));
	if (o->flows == NULL || o->places == NULL) {
		pl_observer_free(o);
		return -ENOMEM;
	}
	*ret = o;
	return 0;
}

void pl_observer_free(struct pl_observer *o)
{
	if (o == NULL)
		return;
	for (uint32_t i = 0; o->flows != NULL && i < o->n; i++)
		free(o->flows[i]);
	free(o->flows);
	free(o->places);
	free(o);
}

/* ---- the table ---- */

static struct pl_mark_flow turned(const struct pl_mark_flow *f)
{
	struct pl_mark_flow back = *f;

	back.src = f->dst;
	back.dst = f->src;
	back.sport = f->dport;
	back.dport = f->sport;
	return back;
}

/* Returns the hash of a connection, equal for both directions. */
static uint32_t hash_of(const struct pl_observer *o, const struct pl_mark_flow *f)
{
	const struct pl_mark_flow back = turned(f);

	return (uint32_t)(pl_hash(f, sizeof(*f), o->seed) + pl_hash(&back, sizeof(back), o->seed));
}

/* Finds the connection of a datagram and its direction there. NULL when there is none, with its
 * place in *ret_at. */
static struct flow *find(const struct pl_observer *o, const struct pl_mark_flow *key,
	unsigned int *ret_way, uint32_t *ret_at)
{
	const struct pl_mark_flow back = turned(key);
	uint32_t at = hash_of(o, key) & o->mask;

	for (; o->places[at] != 0; at = (at + 1) & o->mask) {
		struct flow *f = o->flows[o->places[at] - 1];

		*ret_way = memcmp(&f->key, key, sizeof(*key)) != 0;
		if (*ret_way == 0 || memcmp(&f->key, &back, sizeof(back)) == 0)
			return f;
	}
	*ret_at = at;
	*ret_way = 0;
	return NULL;
}

/* ---- datagrams ---- */

static void take_handshake(
	struct flow *f, unsigned int way, uint64_t time_ns, const struct pl_quic_datagram *d)
{
	f->cid_len[way ^ 1] = d->scid_len;
	f->has_len[way ^ 1] = d->known;
	if (!f->has_handshake) {
		f->has_handshake = true;
		f->efm.from_start = d->initial && way == 0 && f->efm.ways[0].packets == 0 &&
				    f->efm.ways[1].packets == 0;
		f->began_ns = time_ns;
	}
}

/* Measures the handshake's round-trip time: from the client's first datagram to its first one after
 * the server's answer. */
static void time_handshake(struct flow *f, unsigned int way, uint64_t time_ns)
{
	if (!f->efm.from_start || f->efm.handshake_ns != 0)
		return;
	if (way == 1)
		f->has_answer = true;
	else if (f->has_answer && time_ns > f->began_ns)
		f->efm.handshake_ns = time_ns - f->began_ns;
}

/* True when the packet has another connection id than the one before in its direction. */
static bool turns(struct flow *f, unsigned int way, const struct pl_quic_datagram *d)
{
	const uint8_t len = f->cid_len[way];
	const uint8_t *cid = pl_cursor_peek(&d->behind, len);
	bool other;

	if (!f->has_len[way] || len == 0 || cid == NULL)
		return false;
	other = f->has_cid[way] && memcmp(f->cid[way], cid, len) != 0;
	f->has_cid[way] = true;
	memcpy(f->cid[way], cid, len);
	return other;
}

static bool is_followed(const struct pl_observer *o, const struct pl_mark_flow *key,
	const struct pl_quic_datagram *d)
{
	return d->known || o->config.any_port || key->sport == PL_OBSERVER_PORT ||
	       key->dport == PL_OBSERVER_PORT;
}

static struct flow *begin(struct pl_observer *o, const struct pl_mark_flow *key, uint32_t at)
{
	struct flow *f = o->n < o->config.flows_max ? calloc(1, sizeof(*f)) : NULL;

	if (f == NULL)
		return NULL;
	f->key = *key;
	o->flows[o->n++] = f;
	o->places[at] = o->n;
	o->stats.flows = o->n;
	return f;
}

bool pl_observer_take(struct pl_observer *o, const struct pl_mark_flow *flow, uint64_t time_ns,
	uint8_t ecn, struct pl_cursor payload, uint32_t missing)
{
	struct pl_quic_datagram d;
	const enum pl_quic_read read = pl_quic_read(&d, payload, missing);
	unsigned int way;
	uint32_t at = 0;
	struct flow *f;

	o->stats.datagrams++;
	if (read != PL_QUIC_OK) {
		o->stats.not_quic += read == PL_QUIC_NOT;
		o->stats.broken += read == PL_QUIC_BROKEN;
		return false;
	}
	f = find(o, flow, &way, &at);
	if (f == NULL && !is_followed(o, flow, &d)) {
		o->stats.other_short += d.has_short;
		o->stats.not_quic += !d.has_short;
		return false;
	}
	if (f == NULL)
		f = begin(o, flow, at);
	if (f == NULL) {
		o->stats.without_room++;
		return false;
	}
	if (d.known)
		take_handshake(f, way, time_ns, &d);
	time_handshake(f, way, time_ns);
	if (!d.has_short) {
		o->stats.handshake++;
		return true;
	}
	o->stats.observed++;
	if (turns(f, way, &d)) {
		f->cids[way]++;
		pl_efm_break(&f->efm, way, time_ns);
	}
	pl_efm_take(&f->efm, &o->config.efm, way, time_ns, d.first, ecn == ECN_CE);
	return true;
}

/* ---- results ---- */

static void tell(const struct pl_observer *o, struct flow *f,
	void (*told)(void *arg, const struct pl_observed *one), void *arg)
{
	struct pl_observed one;
	unsigned int first = 0;

	pl_efm_finish(&f->efm);
	pl_efm_result(&one.efm, &f->efm, &o->config.efm, 1);
	if (!f->efm.from_start)
		first = one.efm.is_client;
	for (unsigned int i = 0; i < 2; i++) {
		const unsigned int way = i ^ first;
		const struct pl_efm_way *w = &f->efm.ways[way];

		if (w->packets == 0)
			continue;
		one = (struct pl_observed){ .flow = way == 0 ? f->key : turned(&f->key),
			.packets = w->packets,
			.first_ns = w->first_ns,
			.last_ns = w->last_ns,
			.edges = w->edges,
			.rejected = w->rejected,
			.paused = w->paused,
			.congested = w->congested,
			.cids = f->cids[way],
			.handshake_ns = f->efm.handshake_ns };
		pl_efm_result(&one.efm, &f->efm, &o->config.efm, way);
		if (f->efm.from_start) {
			one.efm.is_client = way == 0;
			one.efm.is_server = way == 1;
		}
		told(arg, &one);
	}
}

void pl_observer_finish(
	struct pl_observer *o, void (*told)(void *arg, const struct pl_observed *one), void *arg)
{
	for (uint32_t i = 0; i < o->n; i++) {
		tell(o, o->flows[i], told, arg);
		free(o->flows[i]);
	}
	o->n = 0;
	o->stats.flows = 0;
	memset(o->places, 0, ((size_t)o->mask + 1) * sizeof(*o->places));
}

const struct pl_observer_stats *pl_observer_stats(const struct pl_observer *o)
{
	return &o->stats;
}
