/* SPDX-License-Identifier: BSD-2-Clause */
/* Sends records of blocks until they are answered. A datagram without an answer is sent again every
 * eighth of the period, for one period: by then the meter, which waits as long, has reported the
 * block as missing. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mark/pair.h"

#define TURNS 8u /* parts of a period; a datagram is sent again in each */

const struct pl_stats pl_mark_sender_stats_list = {
	.rows =
		(const struct pl_stat[]){
#define PL_STAT(...) PL_STAT_ROW(struct pl_mark_sender_stats, __VA_ARGS__)
#include "mark/pair_sender_stats.def"
#undef PL_STAT
		},
	.n = sizeof(struct pl_mark_sender_stats) / sizeof(uint64_t),
};

struct kept {
	uint64_t first_ns, last_ns; /* times of the first and last sending */
	uint16_t count;
	bool answered;
	uint8_t bytes[PL_MARK_PAIR_BYTES];
};

struct pl_mark_sender {
	struct pl_mark_sender_config config;
	struct pl_mark_sender_stats stats;
	uint32_t oldest, next; /* number of the oldest kept datagram, and of the next one */
	uint32_t open;         /* kept datagrams without an answer */
	struct pl_mark128 waiting[PL_MARK_PAIR_RECORDS];
	uint16_t n_waiting;
	struct kept *kept;
};

int pl_mark_sender_new(struct pl_mark_sender **ret, const struct pl_mark_sender_config *config)
{
	struct pl_mark_sender *s = calloc(1, sizeof(*s));

	if (s == NULL)
		return -ENOMEM;
	s->config = *config;
	s->kept = calloc(config->kept_max, sizeof(*s->kept));
	if (s->kept == NULL) {
		free(s);
		return -ENOMEM;
	}
	*ret = s;
	return 0;
}

void pl_mark_sender_free(struct pl_mark_sender *s)
{
	if (s == NULL)
		return;
	free(s->kept);
	free(s);
}

static struct kept *kept_at(struct pl_mark_sender *s, uint32_t seq)
{
	return &s->kept[seq % s->config.kept_max];
}

/* Drops the oldest datagrams as far as they were answered. */
static void forget_answered(struct pl_mark_sender *s)
{
	while (s->oldest != s->next && kept_at(s, s->oldest)->answered)
		s->oldest++;
}

static void give_up(struct pl_mark_sender *s)
{
	struct kept *k = kept_at(s, s->oldest);

	if (!k->answered) {
		s->stats.given_up++;
		s->open--;
	}
	s->oldest++;
	forget_answered(s);
}

/* Sends a datagram, with the number before which datagrams are given up. */
static void transmit(struct pl_mark_sender *s, uint32_t seq, uint64_t now_ns)
{
	struct kept *k = kept_at(s, seq);
	const struct pl_mark_pair header = { .what = PL_MARK_PAIR_RECORDS_OF,
		.count = k->count,
		.run = s->config.run,
		.seq = seq,
		.oldest = s->oldest,
		.terms = s->config.terms };

	pl_mark_pair_put(k->bytes, &header);
	k->last_ns = now_ns;
	if (!s->config.send(s->config.arg, k->bytes,
		    PL_MARK_PAIR_HEADER_BYTES + k->count * sizeof(struct pl_mark128)))
		s->stats.not_taken++;
}

void pl_mark_sender_flush(struct pl_mark_sender *s, bool hello, uint64_t now_ns)
{
	struct kept *k;

	if (s->n_waiting == 0 && !hello)
		return;
	if (s->next - s->oldest == s->config.kept_max)
		give_up(s);
	k = kept_at(s, s->next);
	k->first_ns = now_ns;
	k->count = s->n_waiting;
	k->answered = false;
	memcpy(k->bytes + PL_MARK_PAIR_HEADER_BYTES, s->waiting,
		s->n_waiting * sizeof(s->waiting[0]));
	s->n_waiting = 0;
	s->open++;
	s->stats.datagrams++;
	transmit(s, s->next++, now_ns);
}

void pl_mark_sender_put(
	struct pl_mark_sender *s, const struct pl_mark128 *records, uint32_t n, uint64_t now_ns)
{
	s->stats.records += n;
	for (uint32_t i = 0; i < n; i++) {
		s->waiting[s->n_waiting++] = records[i];
		if (s->n_waiting == PL_MARK_PAIR_RECORDS)
			pl_mark_sender_flush(s, false, now_ns);
	}
}

uint64_t pl_mark_sender_turn(struct pl_mark_sender *s, uint64_t now_ns)
{
	const uint64_t period = s->config.terms.period_ns, gap = period / TURNS;
	uint64_t due = UINT64_MAX;

	while (s->oldest != s->next && now_ns - kept_at(s, s->oldest)->first_ns >= period)
		give_up(s);
	for (uint32_t seq = s->oldest; seq != s->next; seq++) {
		struct kept *k = kept_at(s, seq);

		if (k->answered)
			continue;
		if (now_ns - k->last_ns >= gap) {
			s->stats.again++;
			transmit(s, seq, now_ns);
		}
		if (k->last_ns + gap < due)
			due = k->last_ns + gap;
	}
	return due;
}

void pl_mark_sender_again(struct pl_mark_sender *s, uint64_t now_ns)
{
	for (uint32_t seq = s->oldest; seq != s->next; seq++) {
		if (kept_at(s, seq)->answered)
			continue;
		s->stats.again++;
		transmit(s, seq, now_ns);
	}
}

bool pl_mark_sender_answered(
	struct pl_mark_sender *s, const void *data, size_t len, struct pl_mark_terms *ret_terms)
{
	struct pl_mark_pair header;
	const uint8_t *records;
	struct kept *k;

	if (!pl_mark_pair_parse(&header, &records, data, len) ||
		header.what != PL_MARK_PAIR_ANSWER || header.run != s->config.run)
		return false;
	*ret_terms = header.terms;
	if (header.seq - s->oldest >= s->next - s->oldest)
		return true;
	k = kept_at(s, header.seq);
	if (!k->answered) {
		k->answered = true;
		s->stats.answered++;
		s->open--;
	}
	forget_answered(s);
	return true;
}

uint32_t pl_mark_sender_open(const struct pl_mark_sender *s)
{
	return s->open;
}

const struct pl_mark_sender_stats *pl_mark_sender_stats(const struct pl_mark_sender *s)
{
	return &s->stats;
}
