/* SPDX-License-Identifier: BSD-2-Clause */
/* DTA reports and NACKs: the published layouts byte by byte, what is refused, and both ways
 * round. */
#include <errno.h>

#include "wire/dta.h"
#include "wire/test_hex.h"

static void published(void)
{
	struct pl_cursor c = from_hex("01 80 02 0a000001 0000002a");
	struct pl_dta_report r;

	eq(pl_dta_next(&c, PL_DTA_PLAIN, &r), PL_DTA_OK, "plain key-write");
	eq(r.op, PL_DTA_KEY_WRITE);
	ok(r.immediate && !r.sequenced);
	eq(r.copies, 2);
	eq(r.key_bytes, 4);
	memeq(r.key, "\x0a\0\0\x01", 4);
	eq(r.data_bytes, 4);
	memeq(r.data, "\0\0\0\x2a", 4);
	eq(pl_cursor_left(&c), 0, "UDP length 19 less 8: all is read");

	c = from_hex("01 07 40 04 00000001 000102030405060708090a0b");
	eq(pl_dta_next(&c, PL_DTA_TRACKING, &r), PL_DTA_OK,
		"tracking key-write, 12 bytes of value");
	eq(r.seq, 7);
	ok(r.sequenced && !r.immediate);
	eq(r.data_bytes, 12);

	c = from_hex("02 ff 00 00000003 deadbeef");
	eq(pl_dta_next(&c, PL_DTA_TRACKING, &r), PL_DTA_OK, "append");
	eq(r.list, 3);
	eq(r.seq, 255);
	ok(!r.sequenced, "does not take part in tracking");
	memeq(r.data, "\xde\xad\xbe\xef", 4);

	c = from_hex("03 00 02 00000001 0000000100000002");
	eq(pl_dta_next(&c, PL_DTA_PLAIN, &r), PL_DTA_OK, "increment");
	eq(r.increment, UINT64_C(0x100000002));

	c = from_hex("04 01 80 0a000001 05 00000007");
	eq(pl_dta_next(&c, PL_DTA_TRACKING, &r), PL_DTA_OK, "postcard");
	eq(r.hop, 5);
	eq(r.value, 7);
	ok(r.immediate);
}

static void refused(void)
{
	static const struct {
		const char *hex;
		enum pl_dta_form form;
		enum pl_dta_verdict verdict;
	} rows[] = {
		{ "", PL_DTA_PLAIN, PL_DTA_SHORT },
		{ "01", PL_DTA_PLAIN, PL_DTA_SHORT },
		{ "01 00 02 000000", PL_DTA_PLAIN, PL_DTA_SHORT },
		{ "01 00 02 00000001", PL_DTA_PLAIN, PL_DTA_EMPTY },
		{ "01 00 00 00000001 01", PL_DTA_PLAIN, PL_DTA_COPIES },
		{ "00 00 00", PL_DTA_PLAIN, PL_DTA_OPCODE },
		{ "05 00 00000000 00000000 01", PL_DTA_PLAIN, PL_DTA_OPCODE },
		{ "ff 00 00", PL_DTA_TRACKING, PL_DTA_OPCODE },
		{ "02 00 00000001", PL_DTA_PLAIN, PL_DTA_EMPTY },
		{ "03 00 01 00000001 00000000000000", PL_DTA_PLAIN, PL_DTA_SHORT },
		{ "03 00 00 00000001 0000000000000001", PL_DTA_PLAIN, PL_DTA_COPIES },
		{ "03 00 01 00000001 0000000000000001 00", PL_DTA_PLAIN, PL_DTA_TRAILING },
		{ "04 00 00000001 00 00000001", PL_DTA_PLAIN, PL_DTA_HOP },
		{ "04 00 00000001 01 000000", PL_DTA_PLAIN, PL_DTA_SHORT },
		{ "04 00 00000001 01 00000001 00", PL_DTA_PLAIN, PL_DTA_TRAILING },
		{ "01 00 02 00000001 01", PL_DTA_PATHLINE, PL_DTA_OPCODE },
		{ "d1 01 00 00 0000 0003 00000001", PL_DTA_PLAIN, PL_DTA_SHORT },
		{ "d1 01 00 00 0000 0002 00000001 00 01", PL_DTA_PLAIN, PL_DTA_KEY },
		{ "d1 01 00 00 0000 0003 00000001 02 01 02", PL_DTA_PLAIN, PL_DTA_EMPTY },
		{ "d1 01 00 00 0000 0003 00000001 03 01 02 03", PL_DTA_PLAIN, PL_DTA_SHORT },
		{ "d1 03 00 00 0000 0008 00000001 0000000000000001", PL_DTA_PLAIN, PL_DTA_KEY },
		{ "d1 04 00 00 0000 0007 00000001 04 03 00000001 aa", PL_DTA_PLAIN, PL_DTA_HOP },
		{ "d1 04 00 00 0000 0006 00000001 01 03 00000001", PL_DTA_PLAIN, PL_DTA_KEY },
		{ "d1 05 00 00 0000 0008 00000001 00000001 00000002", PL_DTA_PLAIN, PL_DTA_EMPTY },
		{ "d1 80 00 00 0000 0000 00000001", PL_DTA_PLAIN, PL_DTA_OPCODE },
	};
	struct pl_dta_report r;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_cursor c = from_hex(rows[i].hex);

		eq(pl_dta_next(&c, rows[i].form, &r), rows[i].verdict, "%s: %s", rows[i].hex,
			pl_dta_verdict_name(rows[i].verdict));
		eq(pl_cursor_left(&c), 0, "and the datagram ends there");
	}
}

/* Reports of form `form` of every kind, written and read. */
static void round_trip(enum pl_dta_form form, uint8_t key_bytes)
{
	static const uint8_t key[255] = { 1, 2, 3, 4, 5 }, data[64] = { 9, 8, 7 };
	static const enum pl_dta_op ops[] = { PL_DTA_KEY_WRITE, PL_DTA_APPEND, PL_DTA_INCREMENT,
		PL_DTA_POSTCARD, PL_DTA_SKETCH };

	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++) {
		struct pl_dta_report w = { .form = form, .op = ops[i], .immediate = i & 1 }, r;
		uint8_t out[512];
		struct pl_build b = pl_build(out, sizeof(out));
		struct pl_cursor c;
		int put;

		if (form != PL_DTA_PLAIN) {
			w.seq = form == PL_DTA_PATHLINE ? 0x01020304 : 200;
			w.sequenced = true;
		}
		w.asks = form == PL_DTA_PATHLINE && (i & 2) != 0;
		if (form == PL_DTA_PATHLINE)
			w.store = 12;
		if (ops[i] == PL_DTA_KEY_WRITE || ops[i] == PL_DTA_INCREMENT)
			w.copies = 3;
		if (ops[i] != PL_DTA_APPEND && ops[i] != PL_DTA_SKETCH) {
			w.key = key;
			w.key_bytes = key_bytes;
		}
		if (ops[i] == PL_DTA_KEY_WRITE || ops[i] == PL_DTA_APPEND ||
			ops[i] == PL_DTA_SKETCH) {
			w.data = data;
			w.data_bytes = 24;
		}
		w.increment = ops[i] == PL_DTA_INCREMENT ? UINT64_MAX : 0;
		w.list = ops[i] == PL_DTA_APPEND ? 77 : 0;
		w.hop = ops[i] == PL_DTA_POSTCARD ? 4 : 0;
		w.value = ops[i] == PL_DTA_POSTCARD ? 0xfffffffe : 0;
		w.path_length = ops[i] == PL_DTA_POSTCARD && form == PL_DTA_PATHLINE ? 6 : 0;
		w.first_column = ops[i] == PL_DTA_SKETCH ? 5 : 0;
		put = pl_dta_put(&b, &w);
		if (form != PL_DTA_PATHLINE && ops[i] == PL_DTA_SKETCH) {
			eq(put, -EINVAL, "the published forms have no sketches");
			continue;
		}
		eq(put, 0, "form %d op %d is written", form, ops[i]);
		c = pl_cursor(out, b.len);
		eq(pl_dta_next(&c, form, &r), PL_DTA_OK);
		eq(pl_cursor_left(&c), 0);
		ok(r.form == w.form && r.op == w.op && r.immediate == w.immediate &&
			r.sequenced == w.sequenced && r.asks == w.asks);
		ok(r.seq == w.seq && r.store == w.store && r.copies == w.copies && r.hop == w.hop);
		ok(r.path_length == w.path_length && r.increment == w.increment &&
			r.list == w.list);
		ok(r.value == w.value && r.epoch == w.epoch && r.first_column == w.first_column);
		eq(r.key_bytes, w.key_bytes);
		ok(w.key_bytes == 0 || memcmp(r.key, w.key, w.key_bytes) == 0);
		eq(r.data_bytes, w.data_bytes);
		ok(w.data_bytes == 0 || memcmp(r.data, w.data, w.data_bytes) == 0);
		/* Too little room is said, at every size. */
		for (size_t cap = 0; cap < b.len; cap++) {
			struct pl_build small = pl_build(out, cap);

			if (pl_dta_put(&small, &w) != -ENOBUFS)
				ok(false, "room of %zu bytes", cap);
		}
	}
}

static void several(void)
{
	struct pl_cursor c = from_hex("d1 03 40 00 0001 000a 00000005 0000000000000001 abcd"
				      "d1 04 00 00 0002 0008 00000006 01 00 00000009 abcd");
	struct pl_dta_report r;

	eq(pl_dta_next(&c, PL_DTA_TRACKING, &r), PL_DTA_OK, "the first of a datagram");
	eq(r.form, PL_DTA_PATHLINE, "told by its first byte");
	eq(r.seq, 5);
	eq(r.store, 1);
	eq(pl_dta_next(&c, PL_DTA_TRACKING, &r), PL_DTA_OK, "the second");
	eq(r.value, 9);
	eq(pl_cursor_left(&c), 0);
}

static void unsayable(void)
{
	const uint8_t key[8] = { 0 };
	struct pl_dta_report r = { .form = PL_DTA_PLAIN,
		.op = PL_DTA_INCREMENT,
		.copies = 2,
		.key = key,
		.key_bytes = 8,
		.increment = 1 };
	uint8_t out[64];
	struct pl_build b = pl_build(out, sizeof(out));

	eq(pl_dta_put(&b, &r), -EINVAL, "a key of eight bytes");
	r.key_bytes = 4;
	r.store = 1;
	eq(pl_dta_put(&b, &r), -EINVAL, "a store");
	r.store = 0;
	r.sequenced = true;
	eq(pl_dta_put(&b, &r), -EINVAL, "a sequence in the plain form");
	r.form = PL_DTA_TRACKING;
	r.seq = 256;
	eq(pl_dta_put(&b, &r), -EINVAL, "a sequence number of nine bits");
	r.seq = 255;
	r.copies = 0;
	eq(pl_dta_put(&b, &r), -EINVAL, "the store's own number of copies");
	r.copies = 1;
	r.asks = true;
	eq(pl_dta_put(&b, &r), -EINVAL, "nobody is asked in the published forms");
	eq(b.len, 0, "nothing was written");
}

static void nacks(void)
{
	struct pl_cursor c = from_hex("fe 80");
	struct pl_dta_nack n;
	uint8_t out[PL_DTA_NACK_BYTES_MAX];
	struct pl_build b = pl_build(out, sizeof(out));

	eq(pl_dta_nack_read(&c, &n), PL_DTA_OK);
	eq(n.last, 254);
	c = from_hex("d1 80");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_OK, "a number that looks like the magic");
	eq(n.last, 0xd1);
	c = from_hex("01 00");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_OPCODE, "not a NACK");
	c = from_hex("01 80 00");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_TRAILING);
	c = from_hex("01");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_SHORT);
	n = (struct pl_dta_nack){ PL_DTA_PATHLINE, 0xfffffffe, false };
	eq(pl_dta_nack_put(&b, &n), 0);
	eq(b.len, 12);
	c = pl_cursor(out, b.len);
	eq(pl_dta_nack_read(&c, &n), PL_DTA_OK);
	ok(n.form == PL_DTA_PATHLINE && n.last == 0xfffffffe && !n.answer);
	c = pl_cursor(out, 11);
	eq(pl_dta_nack_read(&c, &n), PL_DTA_SHORT);
	c = from_hex("d1 80 20 00 0000 0000 00000001");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_OK);
	ok(n.answer && n.last == 1, "an answer to a report that asked");
	ok(!n.tells_lost, "without a count of what was lost");
	c = from_hex("d1 80 20 00 0000 0004 00000001 00000102");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_OK);
	ok(n.answer && n.last == 1 && n.tells_lost && n.lost == 0x102, "and with it");
	b = pl_build(out, sizeof(out));
	eq(pl_dta_nack_put(&b, &n), 0);
	ok(b.len == 16 && memcmp(out, "\xd1\x80\x20\0\0\0\0\4\0\0\0\1\0\0\1\2", 16) == 0,
		"the same bytes");
	c = from_hex("d1 80 20 00 0000 0008 00000001 00000102 00000304");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_OK);
	ok(n.tells_lost && n.lost == 0x102 && n.tells_refused && n.refused == 0x304,
		"with a count of what was refused");
	b = pl_build(out, sizeof(out));
	eq(pl_dta_nack_put(&b, &n), 0);
	ok(b.len == 20 && memcmp(out + 12, "\0\0\1\2\0\0\3\4", 8) == 0, "the same bytes");
	c = from_hex("d1 80 20 00 0000 0007 00000001 00000102 000003");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_OK);
	ok(n.tells_lost && !n.tells_refused, "a body that is too short for it");
	c = from_hex("d1 80 20 00 0000 0003 00000001 000001");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_OK);
	ok(!n.tells_lost, "too short a body tells nothing");
	c = from_hex("d1 80 20 00 0000 0004 00000001 000001");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_SHORT);
	c = from_hex("d1 01 00 00 0000 0000 00000001");
	eq(pl_dta_nack_read(&c, &n), PL_DTA_OPCODE, "a report is no NACK");
	n = (struct pl_dta_nack){ PL_DTA_PLAIN, 1, false };
	eq(pl_dta_nack_put(&b, &n), -EINVAL, "the plain form has no NACK");
}

int main(void)
{
	published();
	refused();
	round_trip(PL_DTA_PLAIN, 4);
	round_trip(PL_DTA_TRACKING, 4);
	round_trip(PL_DTA_PATHLINE, 13);
	round_trip(PL_DTA_PATHLINE, 255);
	several();
	unsayable();
	nacks();
	return pl_test_done();
}
