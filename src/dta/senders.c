/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps the sequence numbers and rates of reporters. */
#include "dta/senders.h"

#include <errno.h>
#include <stddef.h>

#include "base/hash.h"

#define KEY_BYTES offsetof(struct pl_sender, share)

int pl_senders_init(struct pl_senders *s, uint32_t n, uint64_t idle_ns, double rate, double burst)
{
	*s = (struct pl_senders){
		.idle_ns = idle_ns,
		.rate = rate,
		.burst = burst,
		.seed = pl_hash_seed(),
	};
	if (pl_cells_init(&s->table, n, sizeof(struct pl_sender)) < 0)
		return -ENOMEM;
	return pl_shares_init(&s->shares, n);
}

void pl_senders_done(struct pl_senders *s)
{
	pl_cells_done(&s->table);
	pl_shares_done(&s->shares);
}

static bool is_silent(const struct pl_senders *s, const struct pl_sender *x)
{
	return s->now_ns - x->seen_ns > s->idle_ns;
}

static struct pl_share_entry entry_of(const void *arg, const void *cell)
{
	const struct pl_senders *s = arg;
	const struct pl_sender *x = cell;

	return (struct pl_share_entry){
		.share = x->share, .seen_ns = x->seen_ns, .idle = !x->again || is_silent(s, x)
	};
}

static bool free_one(struct pl_senders *s, const struct pl_addr *source)
{
	const struct pl_sender *x;
	uint32_t victim;

	if (pl_cells_count(&s->table) < s->table.cap)
		return true;
	victim = pl_shares_choose(&s->shares, &s->table, &s->hand,
		pl_shares_held(&s->shares, source), false, entry_of, s);
	if (victim == PL_CELL_NONE)
		return false;
	x = pl_cells_at(&s->table, victim);
	s->displaced += !is_silent(s, x);
	pl_shares_give(&s->shares, x->share);
	pl_cells_remove(&s->table, victim);
	return true;
}

struct pl_sender *pl_senders_find(struct pl_senders *s, const struct pl_addr *addr, uint16_t port,
	enum pl_dta_form form, uint64_t now_ns)
{
	const struct pl_sender key = { .addr = *addr, .port = port, .form = (uint8_t)form };
	const uint64_t hash = pl_hash(&key, KEY_BYTES, s->seed);
	const struct pl_addr source = pl_addr_source(addr);
	uint32_t cell = pl_cells_find(&s->table, hash, &key, KEY_BYTES);
	struct pl_sender *x;

	if (cell != PL_CELL_NONE) {
		x = pl_cells_at(&s->table, cell);
		x->pause_ns = now_ns - x->seen_ns;
		x->seen_ns = now_ns;
		x->again = true;
		return x;
	}
	s->now_ns = now_ns;
	if (!free_one(s, &source))
		return NULL;
	x = pl_cells_at(&s->table, pl_cells_insert(&s->table, hash, &key, KEY_BYTES));
	x->share = pl_shares_take(&s->shares, &source);
	x->seen_ns = now_ns;
	pl_bucket_init(&x->bucket, s->rate, s->burst, now_ns);
	return x;
}

static void begin(struct pl_sender *s, uint32_t seq, bool asks, struct pl_seq_seen *ret)
{
	s->expected = seq < PL_SEQ_BEGIN ? 0 : seq;
	s->joining = asks && seq >= PL_SEQ_BEGIN && s->form != PL_DTA_TRACKING;
	if (s->joining) {
		s->joined = seq;
		s->expected -= seq < PL_SEQ_BACK ? seq : PL_SEQ_BACK;
	}
	ret->taken_up = seq >= PL_SEQ_BEGIN && !s->joining;
	s->numbered = true;
	s->gap = false;
	s->tries = 0;
	s->lost = 0;
	s->refused = 0;
}

/* Distance of a number from the expected one. */
static int32_t ahead_of(const struct pl_sender *s, uint32_t seq)
{
	int32_t ahead;

	if (s->form != PL_DTA_TRACKING)
		return (int32_t)(seq - s->expected);
	ahead = (uint8_t)(seq - s->expected);
	return ahead > INT8_MAX ? ahead - (UINT8_MAX + 1) : ahead;
}

/* Returns true when the number may have been sent again because of a NACK. 8-bit
 * numbers do not tell which were asked for, so any of them may have been. */
static bool was_asked_for(const struct pl_sender *s, uint32_t seq, uint64_t now_ns)
{
	return s->nacked && now_ns - s->nack_ns < PL_SEQ_NACK_NS &&
	       (s->form == PL_DTA_TRACKING || (int32_t)(seq - s->nack_low) >= 0);
}

/* Returns true when a number behind the expected one is of a stream that starts again, with its
 * first number. */
static bool began_anew(
	struct pl_sender *s, uint32_t seq, uint64_t datagram, uint64_t now_ns, uint32_t *ret_first)
{
	if (was_asked_for(s, seq, now_ns)) {
		s->run = 0;
		return false;
	}
	*ret_first = 0;
	/* The last report of a stream may be sent once more, late. */
	if (s->pause_ns >= PL_SEQ_PAUSE_NS && seq < PL_SEQ_BEGIN &&
		(seq == 0 || ahead_of(s, seq) < -1))
		return true;
	if (s->run == 0 || seq != s->run_next) {
		s->run_first = seq;
		s->run = 0;
	}
	if (s->run == 0 || datagram != s->run_datagram)
		s->run++;
	s->run_next = s->form == PL_DTA_TRACKING ? (uint8_t)(seq + 1) : seq + 1;
	s->run_datagram = datagram;
	*ret_first = s->run_first;
	return s->run >= PL_SEQ_RUN;
}

enum pl_seq pl_sender_look(struct pl_sender *s, uint32_t seq, uint64_t datagram, uint64_t now_ns,
	bool asks, struct pl_seq_seen *ret)
{
	uint32_t first;
	int32_t ahead;

	*ret = (struct pl_seq_seen){ 0 };
	if (!s->numbered) {
		begin(s, seq, asks, ret);
	} else if (s->joining && ((int32_t)(seq - s->joined) <= 0 ||
					 (int32_t)(seq - s->joined) > PL_SEQ_WINDOW)) {
		/* The answer to a NACK, or another stream. */
		s->expected = seq;
		s->joining = false;
		ret->taken_up = seq != 0;
	}
	ahead = ahead_of(s, seq);
	if (ahead > PL_SEQ_WINDOW || ahead < -PL_SEQ_WINDOW) {
		begin(s, seq, asks, ret);
		ret->restarted = true;
	} else if (ahead < 0 && began_anew(s, seq, datagram, now_ns, &first)) {
		/* The numbers that were taken for repeats are missing. */
		begin(s, 0, asks, ret);
		s->expected = first;
		ret->restarted = true;
	}
	ahead = ahead_of(s, seq);
	if (ahead >= 0)
		s->run = 0;
	ret->missing = ahead <= 0 ? 0 : s->joining ? seq - s->joined : (uint32_t)ahead;
	return ahead == 0 ? PL_SEQ_NEXT : ahead > 0 ? PL_SEQ_GAP : PL_SEQ_DUPLICATE;
}

void pl_sender_nacked(struct pl_sender *s, uint64_t now_ns)
{
	if (!s->nacked || now_ns - s->nack_ns >= PL_SEQ_NACK_NS ||
		(int32_t)(s->expected - s->nack_low) < 0)
		s->nack_low = s->expected;
	s->nacked = true;
	s->nack_ns = now_ns;
	s->tries++;
}
