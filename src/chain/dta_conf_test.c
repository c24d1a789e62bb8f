/* SPDX-License-Identifier: BSD-2-Clause */
#include <stddef.h>

#include "base/test.h"
#include "chain/dta_check.h"
#include "chain/dta_conf.h"

#define HEAD "lab: true\nstores:\n"
#define REAL                                                                                       \
	"folder: /x\ntranslator: {interface: \"packet:t0\"}\nstores: [{name: a}]\n"                \
	"collectors:\n"
#define C1                                                                                         \
	"  - {name: c1, interface: \"packet:e0\", listen: \"10.0.0.2:7471\", "                     \
	"allow: [10.0.0.5/32]}\n"

static int parse(const char *text, struct pl_dta_conf *c, struct pl_diag *diag)
{
	int r;

	*diag = (struct pl_diag){ .text = "" };
	memset(c, 0, sizeof(*c));
	r = pl_conf_parse(pl_dta_conf_rows, "chain.yaml", text, strlen(text), c, diag);
	if (r == 0) {
		r = pl_dta_conf_check(c, diag);
		if (r < 0)
			pl_conf_done(pl_dta_conf_rows, c);
	}
	return r;
}

/* What is refused, where, and how it is said. Line 0: the whole file's relations. */
static void test_refused(void)
{
	static const struct {
		const char *text;
		unsigned int line, column;
		const char *says;
	} cases[] = {
		{ "", 1, 1, "\"stores\"" },
		{ "lab: true\n", 1, 1, "\"stores\"" },
		{ "lab: true\nstores: []\n", 2, 9, "\"stores\"" },
		{ "lab: true\nstore: []\n", 2, 1,
			"unknown key \"store\", did you mean \"stores\"?" },
		{ "lab: maybe\n", 1, 6, "\"lab\"" },
		{ HEAD "  - {slots: 5}\n", 3, 5, "\"stores[0]\": key \"name\" is missing" },
		{ HEAD "  - {name: a, slot: 5}\n", 3, 15,
			"unknown key \"slot\" in \"stores[0]\", did you mean \"slots\"?" },
		{ HEAD "  - {name: a, reporter: 2}\n", 3, 15, "did you mean \"reporters\"?" },
		{ HEAD "  - {name: a, primitive: sketches}\n", 3, 26, "did you mean \"sketch\"?" },
		{ HEAD "  - {name: a, hash: crc}\n", 3, 21, "pathline, dta" },
		{ HEAD "  - {name: a, slots: 0}\n", 3, 22, "\"stores[0].slots\"" },
		{ HEAD "  - {name: a, copies: 9}\n", 3, 23, "\"stores[0].copies\"" },
		{ HEAD "  - {name: a, rows: 17}\n", 3, 21, "\"stores[0].rows\"" },
		{ HEAD "  - {name: a, reporters: 5}\n", 3, 26, "\"stores[0].reporters\"" },
		{ HEAD "  - {name: a, rate: 0}\n", 3, 21, "\"stores[0].rate\"" },
		{ HEAD "  - {name: \"a,b\"}\n", 3, 12, "letters, digits" },
		{ HEAD "  - {name: \"a/b\"}\n", 3, 12, "letters, digits" },
		{ HEAD "  - {name: \"\"}\n", 3, 12, "letters, digits" },
		{ HEAD "  - {name: abcdefghijklmnopqrstuvwxyz}\n", 3, 12, "1 to 24" },
		{ HEAD "  - {name: a}\n  - {name: b}\n  - {name: a}\n", 0, 0,
			"\"stores[2].name\": 'a' is the name of \"stores[0]\" already" },
		{ HEAD "  - {name: a, hash: dta, slots: 1000}\n", 0, 0, "\"stores[0]\" ('a')" },
		{ HEAD "  - {name: a, primitive: postcards, hash: dta, slots: 1024}\n", 0, 0,
			"5 hops and one copy" },
		{ HEAD "  - {name: a, primitive: sketch, hash: dta}\n", 0, 0,
			"need the hash pathline" },
		{ HEAD "  - {name: a, primitive: sketch, cell_bytes: 6}\n", 0, 0, "4 or 8 bytes" },
		{ HEAD "  - {name: a, primitive: sketch, kind: hyperloglog, slots: 8}\n", 0, 0,
			"16 registers" },
		{ HEAD "  - {name: a, primitive: append, slots: 17}\n", 0, 0,
			"multiple of the largest batch" },
		{ HEAD "  - {name: a, reporters: 2}\n", 0, 0, "only a sketch" },
		{ HEAD "  - {name: a, primitive: sketch, reporters: 2}\n"
		       "  - {name: b, primitive: sketch}\n",
			0, 0, "\"stores[1].reporters\": must be equal" },
		{ HEAD "  - {name: a}\ncollectors:\n" C1, 0, 0, "\"lab\"" },
		{ HEAD "  - {name: a}\ntranslator: {interface: \"packet:e\"}\n", 0, 0, "\"lab\"" },
		{ HEAD "  - {name: a}\ntranslator: {service: ud}\n", 4, 23, "uc, rc" },
		{ HEAD "  - {name: a}\ntranslator: {dscp: 64}\n", 4, 20, "63" },
		{ HEAD "  - {name: a}\nepoch: soon\n", 4, 8, "\"epoch\"" },
		{ "stores: [{name: a}]\n", 0, 0, "lab: true" },
		{ "stores: [{name: a}]\nfolder: /x\ncollectors:\n" C1, 0, 0,
			"\"translator.interface\"" },
		{ REAL C1 C1, 0, 0,
			"\"collectors[1].name\": 'c1' is the name of \"collectors[0]\" already" },
		{ REAL "  - {name: c1, interface: \"packet:e0\", listen: \"10.0.0.2:7471\"}\n", 0,
			0, "\"collectors[0].allow\": no peer may write to 'c1'" },
		{ REAL "  - {name: c1, interface: e0, listen: \"10.0.0.2:1\", allow: [x]}\n", 0, 0,
			"'x' is not a prefix" },
		{ REAL "  - {name: c1, interface: e0, listen: \":7471\"}\n", 5, 39,
			"not an address and port" },
		{ REAL "  - {name: c1, interface: e0, listen: \"10.0.0.2\"}\n", 5, 39,
			"not an address and port" },
		{ REAL "  - {name: c1, interface: e0, listen: \"10.0.0.2:0\"}\n", 5, 39,
			"not an address and port" },
		{ REAL "  - {name: c1, listen: \"10.0.0.2:1\"}\n", 5, 5,
			"\"collectors[0]\": key \"interface\" is missing" },
		{ REAL "  - {name: c1, interface: e0, lisen: \"10.0.0.2:1\"}\n", 5, 31,
			"did you mean \"listen\"?" },
	};
	struct pl_dta_conf c;
	struct pl_diag diag;

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const bool refused = parse(cases[i].text, &c, &diag) < 0;

		ok(refused && strstr(diag.text, cases[i].says) != NULL, "%zu: %s", i, diag.text);
		eq(diag.line, cases[i].line, "%zu: line", i);
		eq(diag.column, cases[i].column, "%zu: column", i);
		if (cases[i].line != 0)
			streq(diag.file, "chain.yaml");
		if (!refused)
			pl_conf_done(pl_dta_conf_rows, &c);
	}
}

static void test_demo(void)
{
	bool there[PL_SKETCH + 1] = { false };
	struct pl_dta_conf c;
	struct pl_diag diag;

	if (!ok(parse(pl_dta_conf_demo, &c, &diag) == 0, "%s", diag.text))
		return;
	for (size_t i = 0; i < c.stores.n; i++) {
		const struct pl_dta_conf_store *s = (struct pl_dta_conf_store *)c.stores.items + i;
		struct pl_store_params p;

		pl_dta_conf_params(&c, s, &p);
		there[p.primitive] = true;
		ok(s->reports > 0, "%s is generated", s->name);
	}
	for (int i = PL_KEY_WRITE; i <= PL_SKETCH; i++)
		ok(there[i], "it shows %s", pl_primitive_name((uint32_t)i));
	eq(c.epoch_ns + c.restarts, 0);
	pl_conf_done(pl_dta_conf_rows, &c);
}

static const char text[] =
	"lab: true\nseed: 77\nepoch: 5s\nstores:\n"
	"  - {name: kw, hash: dta, slots: 1024, copies: 3, value_bytes: 8}\n"
	"  - {name: sums, primitive: counters, hash: dta, slots: 64, rows: 2}\n"
	"  - {name: cm, primitive: sketch, slots: 100, rows: 3, cell_bytes: 4, reporters: 2}\n"
	"  - {name: hll, primitive: sketch, slots: 64, kind: hyperloglog, rows: 3, reporters: 2}\n"
	"  - {name: l, primitive: append, slots: 64}\n";

/* A store's keys become its parameters; nothing of another's. */
static void test_parameters(void)
{
	struct pl_store_params p;
	const struct pl_dta_conf_store *s;
	struct pl_dta_conf c;
	struct pl_diag diag;

	if (!ok(parse(text, &c, &diag) == 0, "%s", diag.text))
		return;
	s = c.stores.items;
	pl_dta_conf_params(&c, &s[0], &p);
	ok(p.primitive == PL_KEY_WRITE && p.hash == PL_HASH_DTA && p.seed == 0 &&
			p.key_write.slots == 1024 && p.key_write.copies == 3 &&
			p.key_write.value_bytes == 8,
		"the published hash has no seed");
	pl_dta_conf_params(&c, &s[1], &p);
	ok(p.primitive == PL_COUNTERS && p.counters.shared == 1 && p.counters.rows == 2);
	pl_dta_conf_params(&c, &s[2], &p);
	ok(p.primitive == PL_SKETCH && p.hash == PL_HASH_PATHLINE && p.seed == 77 &&
		p.sketch.kind == PL_SKETCH_COUNT_MIN && p.sketch.rows == 3 &&
		p.sketch.cell_bytes == 4 && p.sketch.columns == 100);
	pl_dta_conf_params(&c, &s[3], &p);
	ok(p.sketch.kind == PL_SKETCH_HYPERLOGLOG && p.sketch.rows == 1 &&
		p.sketch.cell_bytes == 1);
	eq(pl_dta_conf_reporters(&c), 2);
	ok(pl_dta_conf_turns(&c, &s[0]) && pl_dta_conf_turns(&c, &s[1]), "last values, sums");
	ok(!pl_dta_conf_turns(&c, &s[2]) && !pl_dta_conf_turns(&c, &s[4]), "no sketches, no lists");
	c.epoch_ns = 0;
	ok(!pl_dta_conf_turns(&c, &s[0]), "and none without epochs");
	pl_conf_done(pl_dta_conf_rows, &c);
}

/* The generator's words say what the check asks for. */
static void test_stream(void)
{
	static const char *const wants[] = {
		"gen dta --stream key-write --store 7 -n 0 --rate 20000 --value-of-key --value-bytes 8 udp://x:1",
		"gen dta --stream increment --store 7 -n 0 --rate 20000 --value-of-key --keys 1 udp://x:1",
		"gen dta --stream sketch --store 7 -n 0 --rate 20000 --value-of-key --columns 100 --rows 3 "
		"--cell-bytes 4 udp://x:1",
		"gen dta --stream sketch --store 7 -n 0 --rate 20000 --value-of-key --columns 64 --rows 1 "
		"--cell-bytes 1 udp://x:1",
		"gen dta --stream append --store 7 -n 0 --rate 20000 --lists 4 --value-bytes 4 udp://x:1",
	};
	struct pl_dta_conf c;
	struct pl_diag diag;

	if (!ok(parse(text, &c, &diag) == 0, "%s", diag.text))
		return;
	for (size_t i = 0; i < c.stores.n; i++) {
		const char *argv[24];
		char words[24][24], line[512] = "";

		pl_dta_check_stream((struct pl_dta_conf_store *)c.stores.items + i, 7, "udp://x:1",
			argv, words);
		for (size_t k = 0; argv[k] != NULL; k++) {
			strcat(line, k > 0 ? " " : "");
			strcat(line, argv[k]);
		}
		streq(line, wants[i]);
	}
	pl_conf_done(pl_dta_conf_rows, &c);
}

int main(void)
{
	test_refused();
	test_demo();
	test_parameters();
	test_stream();
	return pl_test_done();
}
