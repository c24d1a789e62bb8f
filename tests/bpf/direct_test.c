/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The parser that the kernel program has, held against decode/ in user space: on random forms of
 * telemetry with and without damage, and on those packets with bytes changed and cut anywhere.
 * Whatever it settles, decode/ must have decoded to the same values with the same notes; what
 * decode/ rejects it must not settle.
 *
 * direct_test [REPORTS [SEED]]
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/test.h"
#include "detect/layouts.h"
#include "direct_check.h"
#include "forms.h"

static struct pl_decode *decode;
static struct pl_direct direct;
static struct pl_record_batch records;
static struct pl_core_scratch scratch;

static struct {
	uint64_t packets, settled, rejected, escalated[PL_ESCALATION_MAX];
} account;

static void no_flush(struct pl_record_batch *b, void *arg)
{
	(void)arg;
	pl_record_batch_clear(b);
}

static bool hold(const struct pl_packet *pkt, const char *form)
{
	static struct pl_batch one = { .n = 1 };
	const char *differs = NULL;
	uint32_t escalate;

	one.pkts[0] = *pkt;
	pl_record_batch_clear(&records);
	pl_decode_batch(decode, &one, &records);
	escalate = pl_direct_report(&direct, &scratch, pkt, 1);
	account.packets++;
	account.escalated[escalate]++;
	account.rejected += pl_decode_outcomes(decode)[0].verdict != PL_V_OK;
	if (escalate != PL_ESCALATION_NONE)
		return true;
	account.settled++;
	if (pl_decode_outcomes(decode)[0].verdict != PL_V_OK)
		differs = pl_verdict_name(pl_decode_outcomes(decode)[0].verdict);
	else if (records.n_paths != 1)
		differs = "number of records";
	else if (pl_decode_outcomes(decode)[0].notes != scratch.notes)
		differs = "notes";
	else
		differs = direct_differs(
			&scratch, &records.paths[0], records.hops + records.first_hop[0]);
	if (differs == NULL)
		return true;
	printf("# %s: differs in %s; notes %" PRIx64 " and %" PRIx64 "; packet:\n# ", form, differs,
		scratch.notes, pl_decode_outcomes(decode)[0].notes);
	for (uint32_t i = 0; i < pkt->len; i++)
		printf("%02x", pkt->data[i]);
	printf("\n");
	return false;
}

/* The packet with some bytes changed, or cut; in a buffer of exactly its size, for the
 * sanitizer. */
static bool hold_damaged(const struct pl_packet *pkt, struct pl_rng *rng)
{
	struct pl_packet p = *pkt;
	uint8_t *copy = malloc(pkt->len);
	bool good;

	if (copy == NULL)
		abort();
	memcpy(copy, pkt->data, pkt->len);
	p.data = copy;
	if (form_pick(rng, 3) == 0) {
		p.len = form_pick(rng, pkt->len) + 1;
		p.wire_len = form_pick(rng, 2) ? p.len : pkt->wire_len;
		p.data = realloc(copy, p.len);
		if (p.data == NULL)
			abort();
		copy = (uint8_t *)(uintptr_t)p.data;
	}
	for (uint32_t n = form_pick(rng, 3); n > 0; n--)
		copy[form_pick(rng, p.len)] = (uint8_t)pl_rng_u64(rng);
	good = hold(&p, "damaged");
	free(copy);
	return good;
}

static bool run_form(const struct pl_gen_cfg *cfg, struct pl_rng *rng, uint64_t *left)
{
	static struct pl_batch batch;
	struct pl_diag diag = { 0 };
	struct pl_gen *gen;
	bool good = true;
	int n;

	if (pl_gen_new(&gen, cfg, &diag) < 0)
		return true;
	for (int i = 0; good && i < 4 && *left > 0; i++) {
		n = pl_gen_next(gen, UINT64_MAX, &batch);
		for (int k = 0; good && k < n; k++) {
			good = hold(&batch.pkts[k], "generated") &&
			       (form_pick(rng, 2) != 0 || hold_damaged(&batch.pkts[k], rng));
			*left -= *left > 0;
		}
		if (n <= 0)
			break;
	}
	pl_gen_free(gen);
	return good;
}

static uint64_t number(int argc, char **argv, int i, uint64_t def)
{
	return argc > i ? strtoull(argv[i], NULL, 0) : def;
}

/* Decoder and parser by the same options, then the account at zero. */
static void use(const struct pl_decode_options *options)
{
	pl_decode_free(decode);
	pl_direct_done(&direct);
	memset(&account, 0, sizeof(account));
	if (pl_decode_new(&decode, options) < 0 || pl_direct_init(&direct, options) < 0)
		abort();
	pl_layouts_follow(&direct.layouts, options->n_profiles > 0);
}

static void test_random(const struct pl_decode_options *options, uint64_t reports, uint64_t seed)
{
	struct pl_rng rng;
	uint64_t left = reports;
	struct pl_gen_cfg cfg;
	bool good = true;

	use(options);
	pl_rng_seed(&rng, seed);
	printf("# seed %" PRIu64 "\n", seed);
	while (good && left > 0) {
		struct pl_diag diag = { 0 };

		form_random(&cfg, &rng);
		cfg.udp = form_pick(&rng, 4) == 0;
		if (form_pick(&rng, 4) == 0)
			(void)pl_malform_add_all(&cfg, 0.5, &diag);
		good = run_form(&cfg, &rng, &left);
	}
	ok(good, "settled reports have the values of decode/");
	printf("# %" PRIu64 " packets, %" PRIu64 " settled, %" PRIu64 " not ok for decode\n",
		account.packets, account.settled, account.rejected);
	for (unsigned int i = 1; i < PL_ESCALATION_MAX; i++)
		printf("# escalated, %s: %" PRIu64 "\n", pl_escalation_name(i),
			account.escalated[i]);
	/* It would be no test if nearly all were escalated. */
	ok(account.settled > account.packets / 8, "enough is settled");
	for (unsigned int i = 1; i < PL_ESCALATION_MAX; i++)
		ok(account.escalated[i] > 0 || i == PL_ESCALATION_HOPS || i == PL_ESCALATION_TURN ||
				((i == PL_ESCALATION_PROFILE || i == PL_ESCALATION_NUMBERED) &&
					options->n_profiles == 0),
			"some are escalated for %s", pl_escalation_name(i));
}

/* Whatever is set for the exporters. */
static void test_profiles(uint64_t reports, uint64_t seed)
{
	uint64_t settled = 0, packets = 0, only = 0;
	const unsigned int rounds = 60;
	struct pl_rng rng;

	pl_rng_seed(&rng, seed);
	for (unsigned int i = 0; i < rounds; i++) {
		const struct pl_profile profile = form_profile(&rng);
		const struct pl_decode_options options = { .profiles = &profile, .n_profiles = 1 };
		uint64_t left = reports / rounds;
		bool good = true;

		use(&options);
		while (good && left > 0) {
			struct pl_diag diag = { 0 };
			struct pl_gen_cfg cfg;

			form_random(&cfg, &rng);
			if (form_pick(&rng, 4) == 0)
				(void)pl_malform_add_all(&cfg, 0.5, &diag);
			good = run_form(&cfg, &rng, &left);
		}
		settled += account.settled;
		packets += account.packets;
		only += account.escalated[PL_ESCALATION_PROFILE] == 0;
		if (!ok(good,
			    "seed %" PRIu64
			    ", profile %u: report %d dialect %u%s tcp %u units %u%u "
			    "embedded %u dscp %d int port %u marker %d",
			    seed, i, profile.report_version, profile.hints.dialect,
			    profile.hints.dialect_pinned ? " pinned" : "", profile.tcp_placement,
			    profile.timestamp_unit, profile.latency_unit, profile.embedded,
			    profile.dscp_set, profile.int_port, profile.marker_set))
			break;
	}
	ok(only > rounds * 3 / 4, "of %u profiles %" PRIu64 " forced nothing up", rounds, only);
	ok(settled > packets / 5, "%" PRIu64 " of %" PRIu64 " settled", settled, packets);
}

/* The streams of INTCollector's own generator, its outer DSCP 0x17 included, once their dialect is
 * set. */
static void test_intcollector(void)
{
	const struct pl_profile dialect = { .hints.dialect = PL_DIALECT_INTCOLLECTOR };
	const struct pl_decode_options options = { .profiles = &dialect,
		.n_profiles = 1,
		.report_ports = { 54321, 1234 },
		.n_report_ports = 2 };
	static struct pl_batch batch;

	for (int r = PL_GEN_REPLAY_INTCOLLECTOR_1; r < PL_GEN_REPLAY_MAX; r++) {
		struct pl_gen_cfg cfg = { .replay = (enum pl_gen_replay)r, .count = 1000 };
		struct pl_diag diag = { 0 };
		struct pl_gen *gen;
		bool good = true;
		int n;

		use(&options);
		if (!ok(pl_gen_new(&gen, &cfg, &diag) == 0, "%s", diag.text))
			continue;
		while ((n = pl_gen_next(gen, UINT64_MAX, &batch)) > 0) {
			for (int k = 0; k < n; k++)
				good &= hold(&batch.pkts[k], "INTCollector");
		}
		ok(good && account.packets == 1000,
			"INTCollector test %d has the values of decode/", r);
		eq(account.settled, 1000, "all of it is settled");
		pl_gen_free(gen);
	}
}

/* A report of a packet to a port that announces a tunnel is left to decode/, which goes inside; to any
 * other it is settled. */
static void test_tunnels(void)
{
	static const struct {
		uint64_t vxlan_ports;
		uint16_t port;
		bool tunnel;
	} rows[] = {
		{ 0, PL_PORT_GTPU, true },
		{ 0, PL_PORT_VXLAN, true },
		{ 0, PL_PORT_VXLAN_GPE, true },
		{ 0, PL_PORT_GENEVE, true },
		{ 0, PL_PORT_VXLAN_OLD, true },
		{ 0, 8473, false },
		{ 0, 53, false },
		{ PL_PORTS(PL_PORT_VXLAN, 8473, 8473, 8473), 8473, true },
		{ PL_PORTS(PL_PORT_VXLAN, 8473, 8473, 8473), PL_PORT_VXLAN_OLD, false },
		{ PL_PORTS(PL_PORT_VXLAN, 8473, 8473, 8473), PL_PORT_GTPU, true },
	};
	/* A report 1.0 with the node's metadata; its packet is to 198.51.100.2 by UDP. */
	static const char hex[] = "02000000000202000000000108004500009700010000401100"
				  "00c0000201c00002029c407ffe00830000181e0041000000070000000100"
				  "0003e80003000400000384050000110000"
				  "07d002000000000202000000000108004500004d00010000401100"
				  "00c6336401c63364020868086800390000"
				  "30ff00290000123445000029000100004006000"
				  "0cb00710acb007114c73801bb1111222233334444501002000000000078";
	uint8_t bytes[sizeof(hex) / 2];

	(void)pl_test_hex(bytes, sizeof(bytes), hex);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct pl_decode_options options = { .vxlan_ports = rows[i].vxlan_ports };
		const struct pl_packet pkt = { .data = bytes,
			.len = sizeof(bytes),
			.wire_len = sizeof(bytes),
			.ts_ns = 1,
			.link = PL_LINK_ETHERNET };

		use(&options);
		bytes[0x6e] = (uint8_t)(rows[i].port >> 8);
		bytes[0x6f] = (uint8_t)rows[i].port;
		ok(hold(&pkt, "tunnel"), "to port %u: the values of decode/", rows[i].port);
		eq(account.escalated[PL_ESCALATION_INNER], rows[i].tunnel,
			"to port %u: left to decode/", rows[i].port);
		eq(account.settled, !rows[i].tunnel, "to port %u: settled", rows[i].port);
	}
}

/* Paths of 32 hops are settled, longer ones are not. */
static void test_long(void)
{
	static const struct pl_decode_options options;
	struct pl_gen_cfg cfg = { .topology = "ring:90",
		.bitmap = 0x8000,
		.flows = 2000,
		.report = PL_GEN_REPORT_V10,
		.version = PL_GEN_INT_V10,
		.max_hops = 64 };
	struct pl_diag diag = { 0 };
	struct pl_batch *batch = calloc(1, sizeof(*batch));
	struct pl_gen *gen;
	bool good = true;
	uint32_t longest = 0;

	use(&options);
	if (batch == NULL || !ok(pl_gen_new(&gen, &cfg, &diag) == 0, "%s", diag.text))
		return;
	for (int i = 0; i < 20; i++) {
		int n = pl_gen_next(gen, UINT64_MAX, batch);

		for (int k = 0; k < n; k++) {
			good &= hold(&batch->pkts[k], "long");
			if (records.n_paths == 1 && records.paths[0].hop_count > longest)
				longest = records.paths[0].hop_count;
		}
	}
	ok(good, "long paths have the values of decode/");
	ok(longest > PL_CORE_HOPS_MAX && account.escalated[PL_ESCALATION_HOPS] > 0,
		"too long is escalated");
	ok(account.settled > 0 &&
			account.settled + account.escalated[PL_ESCALATION_HOPS] == account.packets,
		"and nothing else");
	pl_gen_free(gen);
	free(batch);
}

int main(int argc, char **argv)
{
	/* Half of the generator's exporters have something set for them. */
	const struct pl_profile profiles[] = {
		{ .prefix_bits = 0, .dscp_set = true, .dscp_value = 0x17, .dscp_mask = 0x3f },
		{ .prefix = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10 } },
			.prefix_bits = 104,
			.hints = { .dialect = PL_DIALECT_INTCOLLECTOR,
				.queue_word = PL_QUEUE_WORD_16_16 } },
		{ .prefix = { { 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 255, 0, 2 } },
			.prefix_bits = 127,
			.hints = { .dialect = PL_DIALECT_V04, .dialect_pinned = true } },
		{ .prefix = { { 0xfd } }, .prefix_bits = 8, .int_port = 33122 },
	};
	const struct pl_decode_options plain = { .max_exporters = 4096 };
	const struct pl_decode_options set = {
		.profiles = profiles, .n_profiles = 4, .any_port = true
	};
	uint64_t reports = number(argc, argv, 1, 300000), seed = number(argc, argv, 2, 20261121);

	if (pl_record_batch_init(&records, 256, 4096) < 0)
		return 1;
	records.flush = no_flush;
	test_random(&plain, reports, seed);
	test_random(&set, reports, seed + 1);
	test_profiles(reports, seed + 2);
	test_intcollector();
	test_tunnels();
	test_long();
	pl_record_batch_done(&records);
	pl_direct_done(&direct);
	pl_decode_free(decode);
	return pl_test_done();
}
