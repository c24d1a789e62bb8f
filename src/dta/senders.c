/* SPDX-License-Identifier: BSD-2-Clause */
#include "dta/senders.h"

#include <errno.h>
#include <stdlib.h>

#include "base/hash.h"

#define WAYS 8u

int pl_senders_init(struct pl_senders *s, uint32_t n, uint64_t idle_ns, double rate, double burst)
{
	*s = (struct pl_senders){
		.sets = (n + WAYS - 1) / WAYS,
		.idle_ns = idle_ns,
		.rate = rate,
		.burst = burst,
		.seed = pl_hash_seed(),
	};
	s->table = calloc((size_t)s->sets * WAYS, sizeof(*s->table));
	return s->table == NULL ? -ENOMEM : 0;
}

void pl_senders_done(struct pl_senders *s)
{
	free(s->table);
	s->table = NULL;
}

static bool is(const struct pl_sender *s, const struct pl_addr *addr, uint16_t port, uint8_t form)
{
	return s->used && s->port == port && s->form == form && pl_addr_equal(&s->addr, addr);
}

struct pl_sender *pl_senders_find(struct pl_senders *s, const struct pl_addr *addr, uint16_t port,
	enum pl_dta_form form, uint64_t now_ns)
{
	uint64_t h = pl_hash(addr, sizeof(*addr), s->seed ^ ((uint64_t)port << 8 | form));
	uint32_t set = (uint32_t)(((unsigned __int128)h * s->sets) >> 64);
	struct pl_sender *first = &s->table[(size_t)set * WAYS], *room = NULL;

	for (struct pl_sender *e = first; e < first + WAYS; e++) {
		if (is(e, addr, port, (uint8_t)form)) {
			e->seen_ns = now_ns;
			return e;
		}
		if (room != NULL && !room->used)
			continue;
		if (!e->used || ((room == NULL || e->seen_ns < room->seen_ns) &&
					now_ns - e->seen_ns > s->idle_ns))
			room = e;
	}
	if (room == NULL)
		return NULL;
	*room = (struct pl_sender){
		.addr = *addr,
		.port = port,
		.form = (uint8_t)form,
		.used = true,
		.seen_ns = now_ns,
	};
	pl_bucket_init(&room->bucket, s->rate, s->burst, now_ns);
	return room;
}

static void begin(struct pl_sender *s, uint32_t seq)
{
	s->expected = seq < PL_SEQ_BEGIN ? 0 : seq;
	s->numbered = true;
	s->gap = false;
	s->tries = 0;
}

enum pl_seq pl_sender_look(struct pl_sender *s, uint32_t seq, uint32_t *ret_missing)
{
	int32_t ahead;

	if (!s->numbered)
		begin(s, seq);
	if (s->form == PL_DTA_TRACKING) {
		ahead = (uint8_t)(seq - s->expected);
		if (ahead > INT8_MAX)
			ahead -= UINT8_MAX + 1;
	} else {
		ahead = (int32_t)(seq - s->expected);
		if (ahead > PL_SEQ_WINDOW || ahead < -PL_SEQ_WINDOW) {
			begin(s, seq);
			ahead = (int32_t)(seq - s->expected);
		}
	}
	*ret_missing = ahead > 0 ? (uint32_t)ahead : 0;
	return ahead == 0 ? PL_SEQ_NEXT : ahead > 0 ? PL_SEQ_GAP : PL_SEQ_DUPLICATE;
}
