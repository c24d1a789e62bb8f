/* SPDX-License-Identifier: BSD-2-Clause */
/* Exchange between a marker and a meter: bytes, terms, and records over a network that loses. */
#include "base/rng.h"
#include "base/test.h"
#include "mark/packet.h"
#include "mark/pair.h"

#define PERIOD UINT64_C(1000000000)
#define MS     UINT64_C(1000000)

static const struct pl_mark_terms usual = { .period_ns = PERIOD,
	.colour = 4,
	.method = PL_MARK_MULTIPLEXED,
	.by = PL_MARK_BY_FLOW,
	.place = PL_MARK_IN_HEADER,
	.versions = PL_MARK_IP4 | PL_MARK_IP6 };

/* As docs/protocols/mkpair.md has it. */
static void bytes(void)
{
	static const uint8_t want[] = { 0x4d, 0x4b, 0x50, 0x31, 1, 1, 0, 0, 4, 3, 2, 1, 7, 0, 0, 0,
		5, 0, 0, 0, 0, 0, 0, 0, 0, 0xca, 0x9a, 0x3b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4,
		0, 0, 0, 0, 0, 0, 0, PL_MARK_MULTIPLEXED, 0, 0, 3, 0, 0, 0, 0 };
	const struct pl_mark_pair header = { .what = PL_MARK_PAIR_RECORDS_OF,
		.run = 0x01020304,
		.seq = 7,
		.oldest = 5,
		.terms = usual };
	uint8_t got[PL_MARK_PAIR_BYTES + 1] = { 0 };
	struct pl_mark_pair back;
	const uint8_t *records;

	pl_mark_pair_put(got, &header);
	ok(memcmp(got, want, sizeof(want)) == 0, "the header's bytes are those of the document");
	ok(pl_mark_pair_parse(&back, &records, got, sizeof(want)) && back.what == header.what &&
			back.count == 0 && back.run == header.run && back.seq == header.seq &&
			back.oldest == header.oldest && back.terms.rules == 0 &&
			pl_mark_terms_fit(&back.terms, &usual),
		"and read as what was written");
	for (size_t n = 0; n < sizeof(got); n++) {
		if (n != sizeof(want) && pl_mark_pair_parse(&back, &records, got, n))
			ok(false, "%zu bytes are none", n);
	}
	got[6] = 9;
	ok(pl_mark_pair_parse(&back, &records, got, PL_MARK_PAIR_BYTES), "nine records");
	got[6] = 10;
	ok(!pl_mark_pair_parse(&back, &records, got, PL_MARK_PAIR_BYTES + 128), "and no more");
	got[4] = 2;
	ok(!pl_mark_pair_parse(&back, &records, got, PL_MARK_PAIR_BYTES), "another version");
}

static const char *text_of(const struct pl_mark_terms *t)
{
	static char text[PL_MARK_TERMS_TEXT_MAX];

	pl_mark_terms_format(text, t);
	return text;
}

static void terms(void)
{
	struct pl_mark_terms t = usual;

	streq(text_of(&usual), "--method multiplexed --bit dscp:0 --by flow --period 1s");
	ok(pl_mark_terms_fit(&usual, &t), "the same terms fit");
	t.rules = 5;
	ok(pl_mark_terms_fit(&usual, &t), "rules are not looked at");
	t.colour = 0x80;
	t.versions = PL_MARK_IP4;
	t.second = PL_MARK_RESERVED;
	t.method = PL_MARK_DOUBLE;
	t.by = PL_MARK_BY_HOSTS;
	streq(text_of(&t),
		"--method double --bit tos:7 --bit ipv4-reserved --by hosts --period 1s");
	for (unsigned int i = 0; i < 6; i++) {
		t = usual;
		*(i == 0         ? &t.method
			: i == 1 ? &t.by
			: i == 2 ? &t.place
			: i == 3 ? &t.versions
			: i == 4 ? (uint8_t *)&t.colour
				 : (uint8_t *)&t.period_ns) ^= 1;
		ok(!pl_mark_terms_fit(&usual, &t), "%s does not fit", text_of(&t));
	}
	unsigned int same = 0;

	for (unsigned int i = 0; i < 27; i++) {
		/* dscp:0 to 5 by flow, hosts, none; and against them tos, tclass, ecn, the flag, the option. */
		t = usual;
		t.colour = 4u << i % 6;
		t.by = (uint8_t)(i / 6 % 3);
		t.versions = i < 18 ? 3 : 1;
		t.colour = i == 18 ? 1 : i == 19 ? 2 : i == 20 ? PL_MARK_RESERVED : t.colour;
		t.place = i == 21 ? PL_MARK_IN_HOP : PL_MARK_IN_HEADER;
		same += i > 0 && pl_mark_terms_flags(&t) == pl_mark_terms_flags(&usual);
		same += (pl_mark_terms_flags(&t) & ~PL_MARK_TERMS_MASK) != 0 ||
			pl_mark_terms_flags(&t) == 0;
	}
	eq(same, 0, "no other usual terms have the number of those that are the default");
	t = usual;
	t.colour = 0;
	t.place = PL_MARK_IN_HOP;
	struct pl_mark_terms dst = t;
	dst.place = PL_MARK_IN_DST;
	ok(pl_mark_terms_fit(&t, &dst), "the option is read in both places");
	memset(&t, 0xff, sizeof(t));
	ok(strstr(text_of(&t), "--method ? ") != NULL, "what cannot be is shown all the same: %s",
		text_of(&t));
}

/* ---- over a network ---- */

static struct {
	struct pl_rng rng;
	double loss; /* of each direction */
	struct pl_mark_sender *sender;
	struct pl_mark_heard heard;
	uint32_t got[100000]; /* by the record's number: how often it came */
	unsigned int torn;
} net;

static bool carry(void *arg, const void *datagram, size_t len)
{
	struct pl_mark_pair header, answer;
	uint8_t bytes[PL_MARK_PAIR_HEADER_BYTES];
	struct pl_mark_terms theirs;
	const uint8_t *records;
	bool torn;

	(void)arg;
	if (pl_rng_unit(&net.rng) < net.loss)
		return true;
	if (!pl_mark_pair_parse(&header, &records, datagram, len))
		abort();
	if (pl_mark_heard(&net.heard, &header, &torn)) {
		for (uint32_t i = 0; i < header.count; i++) {
			struct pl_mark128 r;

			memcpy(&r, records + i * sizeof(r), sizeof(r));
			net.got[r.block]++;
		}
	}
	net.torn += torn;
	answer = (struct pl_mark_pair){
		.what = PL_MARK_PAIR_ANSWER, .run = header.run, .seq = header.seq, .terms = usual
	};
	pl_mark_pair_put(bytes, &answer);
	if (pl_rng_unit(&net.rng) >= net.loss &&
		!pl_mark_sender_answered(net.sender, bytes, sizeof(bytes), &theirs))
		abort();
	return true;
}

static void open_net(uint32_t kept, uint64_t seed, double loss)
{
	const struct pl_mark_sender_config config = {
		.run = 77, .kept_max = kept, .terms = usual, .send = carry
	};

	memset(&net, 0, sizeof(net));
	pl_rng_seed(&net.rng, seed);
	net.loss = loss;
	if (pl_mark_sender_new(&net.sender, &config) < 0)
		abort();
}

/* Blocks of so many records each; time goes on in steps. */
static void run_net(unsigned int blocks, unsigned int each)
{
	uint64_t now = 5 * PERIOD;

	for (unsigned int k = 0; k < blocks; k++) {
		const uint64_t end = now + PERIOD;

		for (unsigned int i = 0; i < each; i++) {
			const struct pl_mark128 r = { .block = k * each + i };

			pl_mark_sender_put(net.sender, &r, 1, now);
		}
		pl_mark_sender_flush(net.sender, false, now);
		while (now < end) {
			(void)pl_mark_sender_turn(net.sender, now);
			now += 5 * MS;
		}
	}
	(void)pl_mark_sender_turn(net.sender, now + PERIOD);
}

static unsigned int came(unsigned int n, unsigned int times)
{
	unsigned int sum = 0;

	for (unsigned int i = 0; i < n; i++)
		sum += net.got[i] == times;
	return sum;
}

static bool accounts_close(void)
{
	const struct pl_mark_sender_stats *s = pl_mark_sender_stats(net.sender);

	return s->datagrams == s->answered + s->given_up + pl_mark_sender_open(net.sender);
}

static void lossless(void)
{
	open_net(64, 1, 0);
	run_net(10, 100);
	eq(came(1000, 1), 1000, "each record comes once");
	eq(pl_mark_sender_stats(net.sender)->again, 0, "and is sent once");
	eq(pl_mark_sender_stats(net.sender)->answered, 120);
	eq(pl_mark_sender_turn(net.sender, 0), UINT64_MAX, "then nothing is left to do");
	eq(net.torn, 1, "only the begin may lack something");
	ok(accounts_close(), "the accounts close");
	pl_mark_sender_free(net.sender);
}

/* One in five datagrams and answers is lost: without sending again a fifth of the records would be. */
static void lossy(void)
{
	open_net(64, 2, 0.2);
	run_net(200, 100);
	eq(came(20000, 1) + came(20000, 0), 20000, "no record comes twice");
	ok(came(20000, 0) <= 20, "of 20000 records almost all come (%u do not)", came(20000, 0));
	ok(net.heard.stats.duplicates > 0,
		"those whose answer was lost are left out the second time");
	ok(net.torn > 1, "what has not come yet is known to be out");
	ok(accounts_close(), "the accounts close");
	pl_mark_sender_free(net.sender);
}

/* Nobody is there, then somebody is. */
static void deaf(void)
{
	const struct pl_mark_sender_stats *s;

	open_net(64, 3, 1);
	run_net(5, 90);
	s = pl_mark_sender_stats(net.sender);
	eq(s->given_up, 50, "what nobody answers is given up");
	eq(pl_mark_sender_open(net.sender), 0);
	ok(s->again >= 300 && s->again <= 400, "after about seven more times (%" PRIu64 ")",
		s->again);
	net.loss = 0;
	run_net(1, 90);
	eq(net.heard.stats.lost, 0, "what was before the first that is heard is not known of");
	eq(s->answered, 10);
	ok(accounts_close(), "the accounts close");
	pl_mark_sender_free(net.sender);
}

/* After an outage in the middle the meter knows how many datagrams are lost, and that blocks are
 * torn. */
static void outage(void)
{
	open_net(64, 4, 0);
	run_net(2, 90);
	net.loss = 1;
	run_net(3, 90);
	net.loss = 0;
	net.torn = 0;
	run_net(1, 90);
	eq(net.heard.stats.lost, 30, "what was given up is lost");
	eq(net.torn, 1, "and told with what comes next");
	pl_mark_sender_free(net.sender);
}

/* A datagram beyond kept_max pushes out the oldest, which is not sent again. */
static void full(void)
{
	open_net(8, 5, 1);
	run_net(1, 180);
	eq(pl_mark_sender_stats(net.sender)->given_up, 20, "all is accounted for");
	ok(pl_mark_sender_stats(net.sender)->again <= 64, "what has no place is not sent again");
	ok(accounts_close(), "the accounts close");
	pl_mark_sender_free(net.sender);
}

/* A marker that began anew, and numbers of anything. */
static void hostile(void)
{
	static struct pl_mark_heard h;
	struct pl_mark_pair header = { .run = 1 };
	struct pl_rng rng;
	uint64_t accepted = 0;
	bool torn;

	ok(pl_mark_heard(&h, &header, &torn) && torn, "the first");
	header.seq = 1;
	ok(pl_mark_heard(&h, &header, &torn) && !torn, "the next");
	ok(!pl_mark_heard(&h, &header, &torn), "the same again");
	header = (struct pl_mark_pair){ .run = 2, .seq = 900, .oldest = 900 };
	ok(pl_mark_heard(&h, &header, &torn) && torn, "another run begins anew");
	eq(h.stats.runs, 2);
	header.seq = 902;
	ok(pl_mark_heard(&h, &header, &torn), "one of two");
	header.seq = header.oldest = 900 + 3 * PL_MARK_HEARD_WINDOW;
	eq(h.stats.lost, 0);
	ok(pl_mark_heard(&h, &header, &torn) && torn, "a leap beyond the window");
	eq(h.stats.lost, 3 * PL_MARK_HEARD_WINDOW - 2, "those that came before it are not lost");
	pl_rng_seed(&rng, 9);
	for (unsigned int i = 0; i < 10000; i++) {
		header.run = (uint32_t)pl_rng_below(&rng, 2);
		header.seq = (uint32_t)pl_rng_u64(&rng);
		header.oldest =
			pl_rng_below(&rng, 2) == 0 ? header.seq : (uint32_t)pl_rng_u64(&rng);
		accepted += pl_mark_heard(&h, &header, &torn);
	}
	eq(h.stats.accepted, accepted + 5, "what comes is accounted for");
	eq(h.stats.accepted + h.stats.duplicates, 10006);
}

int main(void)
{
	bytes();
	terms();
	lossless();
	lossy();
	deaf();
	outage();
	full();
	hostile();
	return pl_test_done();
}
