/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which profile is proposed for what generated exporters send: the right one where the decoder does
 * not know their dialect, and none where it reads them right, whatever version and form they have,
 * or where packets are damaged.
 */
#include "decode/advise.h"

#include "base/test.h"
#include "gen/malform.h"
#include "gen/preset.h"

#define PACKETS 400

static struct pl_batch batch;
static struct pl_record_batch out;

static struct pl_decode_options options_of(
	const struct pl_gen_cfg *cfg, const struct pl_profile *profile)
{
	struct pl_decode_options o = { .any_port = true,
		.report_ports = { cfg->report_port != 0 ? cfg->report_port : 32766 },
		.max_exporters = 256,
		.max_paths = 1024,
		.n_report_ports = 1,
		.profiles = profile,
		.n_profiles = profile != NULL };

	return o;
}

/* Decodes what cfg makes with a decoder that has the profile (NULL: none), and returns the first
 * advice in words; "" when there is none. *ret_ok: packets that decode. */
static const char *advice_for(const struct pl_gen_cfg *cfg, const struct pl_profile *profile,
	unsigned int *ret_ok, unsigned int *ret_n)
{
	static char text[600];
	struct pl_diag diag = { .text = "" };
	struct pl_decode_options options;
	const struct pl_advice *advice;
	unsigned int pos = 0;
	struct pl_advise *a;
	struct pl_decode *d;
	struct pl_gen *g;
	struct pl_buf buf;

	text[0] = '\0';
	*ret_ok = *ret_n = 0;
	if (pl_gen_new(&g, cfg, &diag) < 0) {
		snprintf(text, sizeof(text), "cannot be had: %s", diag.text);
		return text;
	}
	options = options_of(pl_gen_cfg(g), profile);
	if (pl_decode_new(&d, &options) < 0 || pl_advise_new(&a, &options, 0) < 0)
		exit(1);
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		pl_record_batch_clear(&out);
		pl_decode_batch(d, &batch, &out);
		pl_advise_batch(a, &batch, pl_decode_outcomes(d), 1000);
		for (uint32_t i = 0; i < batch.n; i++)
			*ret_ok += pl_decode_outcomes(d)[i].verdict == PL_V_OK;
		*ret_n += batch.n;
	}
	pl_advise_end(a);
	advice = pl_advise_next(a, &pos);
	pl_buf_init(&buf);
	if (advice != NULL) {
		pl_advice_options(advice, &buf);
		snprintf(text, sizeof(text), "%s", buf.data);
		pl_buf_reset(&buf);
		pl_advice_reason(advice, &buf);
		printf("# %s\n", buf.data);
		pl_buf_reset(&buf);
		pl_advice_entry(advice, &buf);
		printf("# %s\n", buf.data);
	}
	pl_buf_done(&buf);
	pl_advise_free(a);
	pl_decode_free(d);
	pl_gen_free(g);
	return text;
}

/* ---- proposals ---- */

static void test_proposed(void)
{
	static const struct {
		const char *preset, *want;
		struct pl_gen_cfg cfg;
		struct pl_profile has;
	} rows[] = {
		/* shims of length 0 */
		{ "intcollector-test1", " --dialect intcollector" },
		{ "intcollector-test2", " --dialect intcollector" },
		{ "intcollector-test3", " --dialect intcollector" },
		{ "intcollector-test4", " --dialect intcollector" },
		{ "intcollector-test5", " --dialect intcollector" },
		{ "intcollector-test6", " --dialect intcollector" },
		{ "intcollector-test7", " --dialect intcollector" },
		/* an exporter with a profile that lacks the dialect: the rest of it stays */
		{ "intcollector-test2", " --dialect intcollector",
			.has = { .timestamp_unit = PL_UNIT_US,
				.dscp_set = true,
				.dscp_mask = 0x3f } },
		/* queue words of 16 + 16 bits whose blocks are as long as the specification's */
		{ NULL, " --dialect intcollector",
			.cfg = { .dialect = PL_DIALECT_INTCOLLECTOR,
				.version = PL_GEN_INT_V05,
				.topology = "chain:3" } },
		{ NULL, " --dialect intcollector",
			.cfg = { .dialect = PL_DIALECT_INTCOLLECTOR,
				.version = PL_GEN_INT_V10,
				.bitmap = 0xfc00,
				.topology = "chain:3",
				.outer_ip = 6 } },
		{ NULL, " --dialect intcollector",
			.cfg = { .dialect = PL_DIALECT_INTCOLLECTOR,
				.version = PL_GEN_INT_V10,
				.bitmap = 0x9000,
				.topology = "leaf-spine:4x2",
				.udp = true } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_gen_cfg cfg = rows[i].cfg;
		struct pl_diag diag;
		unsigned int good, n;

		if (rows[i].preset != NULL)
			eq(pl_gen_preset_set(&cfg, rows[i].preset, &diag), 0);
		cfg.count = PACKETS;
		cfg.seed = 5;
		streq(advice_for(&cfg, &rows[i].has, &good, &n), rows[i].want, "row %zu", i);
	}
}

/* A proposed profile decodes all, and then nothing more is proposed. */
static void test_taken(void)
{
	static const struct {
		const char *preset;
		struct pl_profile profile;
	} rows[] = {
		{ "intcollector-test1", { .hints = { .dialect = PL_DIALECT_INTCOLLECTOR } } },
		{ "intcollector-test2", { .hints = { .dialect = PL_DIALECT_INTCOLLECTOR } } },
		{ "intcollector-test3", { .hints = { .dialect = PL_DIALECT_INTCOLLECTOR } } },
		{ "intcollector-test8", { .hints = { .dialect = PL_DIALECT_INTCOLLECTOR } } },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_gen_cfg cfg = { 0 };
		struct pl_diag diag;
		unsigned int good, n;

		eq(pl_gen_preset_set(&cfg, rows[i].preset, &diag), 0);
		cfg.count = PACKETS;
		streq(advice_for(&cfg, &rows[i].profile, &good, &n), "", "%s", rows[i].preset);
		eq(good, n, "%s decodes", rows[i].preset);
	}
}

/* ---- none ---- */

static void check(
	struct pl_gen_cfg cfg, const struct pl_profile *has, const char *what, const char *want)
{
	const char *text;
	unsigned int good, n;

	cfg.count = PACKETS;
	text = advice_for(&cfg, has, &good, &n);
	if (strncmp(text, "cannot", 6) != 0)
		streq(text, want, "%s: report %d, INT %d, mode %d, carrier %d, dialect %d", what,
			(int)cfg.report, (int)cfg.version, (int)cfg.mode, (int)cfg.carrier,
			(int)cfg.dialect);
}

static void check_none(struct pl_gen_cfg cfg, const struct pl_profile *has, const char *what)
{
	check(cfg, has, what, "");
}

static void test_right(void)
{
	static const struct pl_dist queues[] = { { PL_DIST_DEFAULT, 0, 0 },
		/* bytes: above and below 16 bits */
		{ PL_DIST_EXP, 60000, 0 }, { PL_DIST_EXP, 300000, 0 },
		{ PL_DIST_UNIFORM, 65536, 400000 }, { PL_DIST_NORMAL, 5000000, 200000 } };

	for (int report = PL_GEN_REPORT_V05; report <= PL_GEN_REPORT_V20; report++)
		for (int version = PL_GEN_INT_V05; version <= PL_GEN_INT_V21; version++)
			for (int mode = PL_GEN_MD; mode <= PL_GEN_XD; mode++)
				for (int carrier = PL_GEN_UDP; carrier <= PL_GEN_GENEVE; carrier++)
					for (size_t q = 0; q < 5; q++)
						check_none((struct pl_gen_cfg){ .report = report,
								   .version = version,
								   .mode = mode,
								   .carrier = carrier,
								   .queue = queues[q],
								   .seed = 1 + q,
								   .topology = "leaf-spine:4x2" },
							NULL, "right");
}

static void test_dialects(void)
{
	size_t n;
	const struct pl_gen_preset *presets = pl_gen_presets(&n);

	for (size_t i = 0; i < n; i++) {
		const struct pl_profile p = { .hints = { .dialect = presets[i].cfg.dialect } };

		if (presets[i].cfg.replay == PL_GEN_REPLAY_NONE) {
			check_none(presets[i].cfg, NULL, presets[i].name);
			check_none(presets[i].cfg, &p, presets[i].name);
		}
	}
	check_none((struct pl_gen_cfg){ .dialect = PL_DIALECT_V04,
			   .queue = { PL_DIST_CONST, 5, 0 },
			   .start_ns = 1000000000 },
		&(struct pl_profile){
			.hints = { .dialect = PL_DIALECT_V04, .dialect_pinned = true } },
		"v0.4");
	/* Whoever says 8+24 is not doubted. */
	check_none((struct pl_gen_cfg){ .dialect = PL_DIALECT_INTCOLLECTOR,
			   .version = PL_GEN_INT_V10,
			   .bitmap = 0xfc00 },
		&(struct pl_profile){ .hints = { .queue_word = PL_QUEUE_WORD_8_24 } }, "8+24");
}

/* Damage, alone and among good packets. A wrong version in the report's header is what
 * report_version of a profile is for. */
static void test_damage(void)
{
	size_t n;
	const struct pl_malform *kinds = pl_malforms(&n);

	for (size_t i = 0; i < n; i++) {
		for (unsigned int share = 0; share < 2; share++) {
			struct pl_gen_cfg cfg = { .seed = 3, .topology = "leaf-spine:4x2" };
			struct pl_diag diag = { .text = "" };

			if (pl_malform_add(&cfg, &kinds[i], share == 0 ? 1 : 0.3, &diag) == 0)
				check(cfg, NULL, kinds[i].name,
					strcmp(kinds[i].name, "report_version") == 0
						? " --report-version 1.0"
						: "");
		}
	}
}

/* ---- what becomes of an advice ---- */

struct story {
	struct pl_advise *a;
	struct pl_decode *d;
	uint64_t now_ns;
};

static unsigned int advices(const struct story *s)
{
	unsigned int pos = 0, n = 0;

	while (pl_advise_next(s->a, &pos) != NULL)
		n++;
	return n;
}

/* count packets of cfg, a batch of them at a time; true: the advices changed. */
static bool send(struct story *s, struct pl_gen_cfg cfg, uint64_t count)
{
	struct pl_diag diag = { .text = "" };
	bool changed = false;
	struct pl_gen *g;

	cfg.count = count;
	cfg.udp = true;
	if (pl_gen_new(&g, &cfg, &diag) < 0)
		exit(1);
	while (pl_gen_next(g, UINT64_MAX, &batch) > 0) {
		pl_record_batch_clear(&out);
		pl_decode_batch(s->d, &batch, &out);
		changed |= pl_advise_batch(s->a, &batch, pl_decode_outcomes(s->d), s->now_ns);
	}
	pl_gen_free(g);
	return changed;
}

static void story_begin(struct story *s, uint64_t look_ns)
{
	const struct pl_decode_options options = {
		.any_port = true, .max_exporters = 256, .max_paths = 1024, .exporter_idle_ns = 5000
	};

	s->now_ns = 100;
	if (pl_decode_new(&s->d, &options) < 0 || pl_advise_new(&s->a, &options, look_ns) < 0)
		exit(1);
}

static void story_end(struct story *s)
{
	pl_advise_free(s->a);
	pl_decode_free(s->d);
}

static void test_taken_back(void)
{
	const struct pl_gen_cfg wrong = { .replay = PL_GEN_REPLAY_INTCOLLECTOR_2 };
	const struct pl_gen_cfg doubtful = {
		.dialect = PL_DIALECT_INTCOLLECTOR, .version = PL_GEN_INT_V05, .topology = "chain:3"
	};
	const struct pl_gen_cfg right = { .topology = "chain:3" };
	struct story s;

	story_begin(&s, 0);
	ok(!send(&s, wrong, 7), "seven packets are no sample");
	ok(send(&s, wrong, 1) && advices(&s) == 1, "eight are");
	ok(!send(&s, wrong, 100) && advices(&s) == 1, "told once");
	send(&s, right, 30);
	send(&s, wrong, 1);
	send(&s, right, 30);
	eq(advices(&s), 1, "it stays while some fail");
	for (int i = 0; i < 10; i++)
		send(&s, right, 10);
	eq(advices(&s), 0, "all decode: it is taken back");
	ok(send(&s, wrong, 20) && advices(&s) == 1, "it comes back");
	s.now_ns += 5001;
	ok(send(&s, right, 1) && advices(&s) == 0, "silence takes it back");
	story_end(&s);

	story_begin(&s, 0);
	ok(send(&s, doubtful, 100) && advices(&s) == 1, "a depth is doubted");
	ok(send(&s,
		   (struct pl_gen_cfg){ .topology = "chain:3", .queue = { PL_DIST_EXP, 60000, 0 } },
		   100) &&
			advices(&s) == 0,
		"until others are seen");
	story_end(&s);

	story_begin(&s, 1000);
	send(&s, wrong, 4);
	send(&s, wrong, 100);
	eq(advices(&s), 0, "a batch too soon is not looked at");
	s.now_ns += 1000;
	ok(send(&s, wrong, 100) && advices(&s) == 1, "the next one is");
	story_end(&s);
}

int main(void)
{
	eq(pl_record_batch_init(&out, 16384, 65536), 0, "room for records");
	test_proposed();
	test_taken();
	test_right();
	test_dialects();
	test_damage();
	test_taken_back();
	return pl_test_done();
}
