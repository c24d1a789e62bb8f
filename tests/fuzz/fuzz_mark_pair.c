/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Datagrams of mkpair/1 (a length of two bytes each) to a meter that heard others, and as answers to a marker
 * that has sent some. What is read is written as the same bytes, and every datagram is accounted for.
 */
#include "fuzz.h"
#include "mark/pair.h"

static bool send_nowhere(void *arg, const void *datagram, size_t len)
{
	struct pl_mark_pair header;
	const uint8_t *records;

	(void)arg;
	must(pl_mark_pair_parse(&header, &records, datagram, len));
	return true;
}

static void read_one(
	struct pl_mark_heard *heard, struct pl_mark_sender *sender, const uint8_t *data, size_t len)
{
	static uint8_t zero[24];
	struct pl_mark_terms theirs;
	struct pl_mark_pair header;
	const uint8_t *records;
	char text[PL_MARK_TERMS_TEXT_MAX];
	uint8_t again[PL_MARK_PAIR_HEADER_BYTES];
	bool torn;

	if (!pl_mark_pair_parse(&header, &records, data, len))
		return;
	pl_mark_pair_put(again, &header);
	must(memcmp(again, data, 20) == 0 && memcmp(again + 24, data + 24, 28) == 0);
	must(memcmp(again + 52, zero, 4) == 0);
	must(records + header.count * sizeof(struct pl_mark128) == data + len);
	pl_mark_terms_format(text, &header.terms);
	must(strlen(text) < sizeof(text) - 1);
	must(pl_mark_terms_fit(&header.terms, &header.terms));
	if (header.what == PL_MARK_PAIR_RECORDS_OF)
		(void)pl_mark_heard(heard, &header, &torn);
	else
		(void)pl_mark_sender_answered(sender, data, len, &theirs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct pl_mark_sender_config config = {
		.run = 7, .kept_max = 4, .terms = { .period_ns = 8000 }, .send = send_nowhere
	};
	static struct pl_mark_heard heard;
	const struct pl_mark_sender_stats *s;
	struct pl_mark_sender *sender;
	uint64_t now = 0;

	memset(&heard, 0, sizeof(heard));
	if (pl_mark_sender_new(&sender, &config) < 0)
		return 0;
	s = pl_mark_sender_stats(sender);
	while (size > 2) {
		const size_t wanted = data[0] | (size_t)data[1] << 8,
			     len = wanted < size - 2 ? wanted : size - 2;
		const uint64_t before = heard.stats.accepted + heard.stats.duplicates;

		pl_mark_sender_flush(sender, true, now);
		read_one(&heard, sender, data + 2, len);
		must(heard.stats.accepted + heard.stats.duplicates <= before + 1);
		(void)pl_mark_sender_turn(sender, now += 900);
		must(s->datagrams == s->answered + s->given_up + pl_mark_sender_open(sender));
		data += 2 + len;
		size -= 2 + len;
	}
	pl_mark_sender_free(sender);
	return 0;
}
