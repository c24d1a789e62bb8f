/* SPDX-License-Identifier: BSD-2-Clause */
/* Datagrams of QUIC, whole, cut and wrong, and what an observer keeps of connections. */
#include "base/test.h"
#include "mark/observer.h"

#define MS UINT64_C(1000000)
/* First byte, version, connection ids of 4 and 2 bytes. */
#define IDS                                                                                        \
	"\x04"                                                                                     \
	"dddd"                                                                                     \
	"\x02"                                                                                     \
	"ss"

static const struct {
	const char *name, *bytes;
	unsigned int n, missing;
	enum pl_quic_read read;
	bool has_long, has_short, known, initial;
	uint8_t scid_len;
} rows[] = {
	{ "initial",
		"\xc0\0\0\0\x01" IDS "\0\x05"
		"ppppp",
		20, 0, PL_QUIC_OK, true, false, true, true, 2 },
	{ "initial with a token", "\xc0\0\0\0\x01" IDS "\x03ttt\x40\x05ppppp", 24, 0, PL_QUIC_OK,
		true, false, true, true, 2 },
	{ "handshake, version 1", "\xe0\0\0\0\x01" IDS "\x05ppppp", 19, 0, PL_QUIC_OK, true, false,
		true, false, 2 },
	{ "initial, version 2", "\xd0\x6b\x33\x43\xcf" IDS "\0\x05ppppp", 20, 0, PL_QUIC_OK, true,
		false, true, true, 2 },
	{ "draft 29", "\xc0\xff\0\0\x1d" IDS "\0\x05ppppp", 20, 0, PL_QUIC_OK, true, false, true,
		true, 2 },
	{ "retry", "\xf0\0\0\0\x01" IDS "whatever", 21, 0, PL_QUIC_OK, true, false, true, false,
		2 },
	{ "version negotiation", "\x80\0\0\0\0" IDS "\0\0\0\x01", 17, 0, PL_QUIC_OK, true, false,
		false, false, 0 },
	{ "unknown version", "\xc0\x0a\x1a\x2a\x3a" IDS "rest", 17, 0, PL_QUIC_OK, true, false,
		false, false, 0 },
	{ "handshake and short",
		"\xe0\0\0\0\x01" IDS "\x02pp\x60"
		"dddd0123456789abcdefgh",
		39, 0, PL_QUIC_OK, true, true, true, false, 2 },
	{ "what is behind goes elsewhere",
		"\xe0\0\0\0\x01" IDS "\x02pp\x60"
		"xddd0123456789abcdefgh",
		39, 0, PL_QUIC_OK, true, false, true, false, 2 },
	{ "padding behind",
		"\xe0\0\0\0\x01" IDS "\x02pp\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 39, 0,
		PL_QUIC_OK, true, false, true, false, 2 },
	{ "two long ones",
		"\xc0\0\0\0\x01" IDS "\0\x01p\xe0\0\0\0\x01\x04"
		"dddd\x05ssss!\x01p",
		34, 0, PL_QUIC_OK, true, false, true, true, 2 },
	{ "a second one that is cut", "\xc0\0\0\0\x01" IDS "\0\x01p\xe0\0\0", 19, 0, PL_QUIC_OK,
		true, false, true, true, 2 },
	{ "short",
		"\x40"
		"01234567890123456789",
		21, 0, PL_QUIC_OK, false, true, false, false, 0 },
	{ "short, cut by the capture",
		"\x60"
		"0123",
		5, 16, PL_QUIC_OK, false, true, false, false, 0 },
	{ "too short",
		"\x40"
		"0123456789012345678",
		20, 0, PL_QUIC_NOT, false, false, false, false, 0 },
	{ "the fixed bit is 0",
		"\0"
		"x1234567890123456789",
		21, 0, PL_QUIC_NOT, false, false, false, false, 0 },
	{ "nothing", "", 0, 0, PL_QUIC_NOT, false, false, false, false, 0 },
	{ "long, fixed bit 0", "\x80\0\0\0\x01" IDS "\0\x05ppppp", 20, 0, PL_QUIC_BROKEN, false,
		false, false, false, 0 },
	{ "an id of 21 bytes",
		"\xc0\0\0\0\x01\x15"
		"ddddddddddddddddddddd\0\0\0",
		30, 0, PL_QUIC_BROKEN, false, false, false, false, 0 },
	{ "the id is cut",
		"\xc0\0\0\0\x01\x04"
		"dd",
		8, 0, PL_QUIC_BROKEN, false, false, false, false, 0 },
	{ "the id is cut by the capture",
		"\xc0\0\0\0\x01\x04"
		"dd",
		8, 90, PL_QUIC_OK, true, false, false, false, 0 },
	{ "an unknown version's id is cut",
		"\xc0zzzz\x04"
		"dd",
		8, 0, PL_QUIC_NOT, false, false, false, false, 0 },
	{ "a token longer than the datagram", "\xc0\0\0\0\x01" IDS "\x7f\xffppppp", 20, 0,
		PL_QUIC_BROKEN, false, false, true, true, 2 },
	{ "a length of 62 bits", "\xe0\0\0\0\x01" IDS "\xff\xff\xff\xff\xff\xff\xff\xffpp", 23, 0,
		PL_QUIC_BROKEN, false, false, true, false, 2 },
};

static void datagrams(void)
{
	for (unsigned int i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_quic_datagram d;
		/* Of its own, for a sanitizer to see its end. */
		uint8_t *bytes = malloc(rows[i].n + 1);
		unsigned int wrong = 0;

		memcpy(bytes, rows[i].bytes, rows[i].n);
		eq(pl_quic_read(&d, pl_cursor(bytes, rows[i].n), rows[i].missing), rows[i].read,
			"%s", rows[i].name);
		ok(d.has_long == rows[i].has_long && d.has_short == rows[i].has_short,
			"%s: headers", rows[i].name);
		ok(d.known == rows[i].known && d.initial == rows[i].initial &&
				d.scid_len == rows[i].scid_len,
			"%s: what is known", rows[i].name);
		free(bytes);
		/* Cut at any byte: never more than was there. */
		for (unsigned int n = 0; n < rows[i].n; n++) {
			uint8_t *part = malloc(n + 1);

			memcpy(part, rows[i].bytes, n);
			if (pl_quic_read(&d, pl_cursor(part, n), 0) == PL_QUIC_OK)
				wrong += d.has_short && pl_cursor_left(&d.behind) >= n;
			free(part);
		}
		eq(wrong, 0);
	}
}

/* ---- connections ---- */

static struct pl_observed told[8];
static unsigned int n_told;

static void tell(void *arg, const struct pl_observed *one)
{
	(void)arg;
	if (n_told < 8)
		told[n_told++] = *one;
}

static struct pl_mark_flow between(unsigned int way, uint16_t client, uint16_t server)
{
	struct pl_mark_flow f = { .sport = way == 0 ? client : server,
		.dport = way == 0 ? server : client,
		.proto = 17 };

	f.src.b[15] = way == 0 ? 1 : 2;
	f.dst.b[15] = way == 0 ? 2 : 1;
	return f;
}

static bool give(struct pl_observer *o, unsigned int way, uint16_t client, uint16_t server,
	uint64_t at, const char *bytes, size_t n)
{
	const struct pl_mark_flow f = between(way, client, server);

	return pl_observer_take(o, &f, at, 0, pl_cursor(bytes, n), 0);
}

static const char initial[] = "\xc0\0\0\0\x01" IDS "\0\x05"
			      "ppppp";
static const char answer[] = "\xe0\0\0\0\x01\x02"
			     "ss\x04"
			     "dddd\x05"
			     "ppppp";
static char packet[] = "\x40"
		       "dddd0123456789abcdefgh";

static void followed(void)
{
	struct pl_observer_config config = { .efm = { .masks = { 0x20 }, .threshold = 16 },
		.flows_max = 2 };
	const struct pl_observer_stats *s;
	struct pl_observer *o = NULL;
	uint64_t at = 1000 * MS;

	eq(pl_observer_new(&o, &config, NULL), 0);
	s = pl_observer_stats(o);
	ok(!give(o, 0, 1000, 2000, at, packet, 23), "a short header of any port is not taken");
	ok(give(o, 0, 1000, 2000, at, initial, 20), "behind a handshake it is");
	ok(give(o, 1, 1000, 2000, at += 30 * MS, answer, 19), "the answer is of the same one");
	for (unsigned int i = 0; i < 60; i++) {
		/* A connection id that changes begins the spin bit anew. */
		packet[1] = i < 33 ? 'd' : 'e';
		packet[0] = (char)((i < 33 ? i : i - 33) / 10 & 1 ? 0x60 : 0x40);
		give(o, 1, 1000, 2000, at += 4 * MS, packet, 23);
		packet[0] = 0x40;
		give(o, 0, 1000, 2000, at, packet, 23);
	}
	ok(give(o, 1, 3000, 443, at, packet, 23), "port 443 is");
	ok(!give(o, 0, 3001, 443, at, packet, 23), "no room");
	ok(!give(o, 0, 3001, 443, at, "GET / HTTP/1.0\r\n\r\n01234", 23), "no QUIC");
	ok(!give(o, 0, 3001, 443, at, initial, 19), "broken");
	eq(s->datagrams, s->observed + s->handshake + s->other_short + s->not_quic + s->broken +
				 s->without_room);
	ok(s->observed == 121 && s->handshake == 2 && s->other_short == 1 && s->without_room == 2 &&
			s->broken == 1,
		"and all are accounted for");
	pl_observer_finish(o, tell, NULL);
	eq(n_told, 3, "directions");
	ok(told[0].efm.is_client && told[0].flow.sport == 1000 && told[1].efm.is_server,
		"the client is who sent the first Initial");
	eq(told[0].handshake_ns, 34 * MS, "the handshake's round-trip time");
	eq(told[0].efm.spins, PL_EFM_CONSTANT);
	eq(told[1].cids, 1, "the other connection id is seen");
	eq(told[1].efm.rtt.n, 2 + 1, "no interval over it");
	eq(told[1].efm.rtt.most, 40 * MS);
	eq(told[2].efm.spins, PL_EFM_FEW);
	pl_observer_free(o);
}

static void refused(void)
{
	static const struct {
		uint32_t square, threshold;
		bool good;
	} settings[] = { { 0, 16, true }, { 64, 0, true }, { 32768, 31, true }, { 32, 16, false },
		{ 65, 16, false }, { 65536, 16, false }, { 64, 32, false } };
	struct pl_diag diag;

	for (unsigned int i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		const struct pl_observer_config config = {
			.efm = { .square = settings[i].square, .threshold = settings[i].threshold },
			.flows_max = 4
		};
		struct pl_observer *o = NULL;

		diag.text[0] = '\0';
		eq(pl_observer_new(&o, &config, &diag) == 0, settings[i].good, "N %u, X %u",
			settings[i].square, settings[i].threshold);
		eq(diag.text[0] == '\0', settings[i].good);
		pl_observer_free(o);
	}
}

int main(void)
{
	datagrams();
	followed();
	refused();
	return pl_test_done();
}
