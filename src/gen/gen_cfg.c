/* SPDX-License-Identifier: BSD-2-Clause */
/* Checks the configuration of a generator, and fills in its defaults. */
#include "gen/gen_cfg.h"

#include <errno.h>

#include "gen/int_form.h"
#include "gen/ioam_gen.h"
#include "gen/replay.h"

#define DEFAULT_START_NS UINT64_C(1700000000000000000)

static bool share(double p)
{
	return p >= 0 && p <= 1;
}

/* Gives kinds of damage without a ratio equal parts of the rest. */
static int resolve_damage(struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	unsigned int without = 0;
	double sum = 0;

	for (unsigned int i = 0; i < cfg->n_malform; i++) {
		sum += cfg->malform[i].ratio;
		without += cfg->malform[i].ratio == 0;
	}
	if (sum > 1 + 1e-9 || (without > 0 && sum >= 1)) {
		pl_diag_set(diag, "the sum of the shares of damaged packets is above 1");
		return -EINVAL;
	}
	for (unsigned int i = 0; i < cfg->n_malform; i++) {
		if (cfg->malform[i].ratio == 0)
			cfg->malform[i].ratio = (1 - sum) / without;
	}
	/* the last kind takes the rounding error, when every packet is to be damaged */
	if (cfg->n_malform > 0 && (without > 0 || sum > 1 - 1e-9))
		cfg->malform[cfg->n_malform - 1].ratio = 1;
	return 0;
}

int pl_gen_resolve(struct pl_gen_cfg *cfg, struct pl_diag *diag)
{
	static const uint8_t v4[4] = { 10, 255, 255, 254 };
	static const uint8_t v6[16] = { 0xfd, 0, 0, 0xff, [14] = 0xff, 0xfe };
	int r;

	if (!share(cfg->drop) || !share(cfg->loss) || !share(cfg->duplicate) ||
		!share(cfg->reorder) || !share(cfg->missing) || cfg->rate < 0) {
		pl_diag_set(diag, "a share is between 0 and 1, and a rate is not negative");
		return -EINVAL;
	}
	if (cfg->replay != PL_GEN_REPLAY_NONE)
		pl_replay_resolve(cfg);
	if (cfg->topology == NULL)
		cfg->topology = "leaf-spine:4x2";
	if (cfg->flows == 0)
		cfg->flows = 100;
	if (cfg->rate == 0)
		cfg->rate = 1000;
	if (cfg->start_ns == 0)
		cfg->start_ns = DEFAULT_START_NS;
	if (cfg->reports_per_datagram == 0)
		cfg->reports_per_datagram = 1;
	if (cfg->payload == 0)
		cfg->payload = 16;
	if (cfg->report_port == 0)
		cfg->report_port = 32766;
	if (cfg->latency.kind == PL_DIST_DEFAULT)
		cfg->latency = (struct pl_dist){ PL_DIST_EXP, 2000, 0 };
	if (cfg->link.kind == PL_DIST_DEFAULT)
		cfg->link = (struct pl_dist){ PL_DIST_CONST, 1000, 0 };
	if (cfg->queue.kind == PL_DIST_DEFAULT)
		cfg->queue = (struct pl_dist){ PL_DIST_EXP, 20, 0 };
	if (cfg->util.kind == PL_DIST_DEFAULT)
		cfg->util = (struct pl_dist){ PL_DIST_UNIFORM, 0, 100 };
	if (cfg->flows > PL_GEN_FLOWS_MAX || cfg->reports_per_datagram > PL_GEN_REPORTS_MAX ||
		cfg->replay_hops > 31 || cfg->n_events > PL_GEN_EVENTS_MAX ||
		cfg->n_malform > PL_GEN_MALFORMS_MAX) {
		pl_diag_set(diag,
			"at most %u flows, %d reports per datagram, 31 hops, %d events, %d kinds "
			"of damage",
			PL_GEN_FLOWS_MAX, PL_GEN_REPORTS_MAX, PL_GEN_EVENTS_MAX,
			PL_GEN_MALFORMS_MAX);
		return -EINVAL;
	}
	if (resolve_damage(cfg, diag) < 0)
		return -EINVAL;
	r = cfg->ioam.options != 0 ? pl_ioam_gen_resolve(cfg, diag) : pl_int_gen_resolve(cfg, diag);
	if (pl_addr_is_unspecified(&cfg->collector))
		cfg->collector = cfg->outer_ip == 6 ? pl_addr_v6(v6) : pl_addr_v4(v4);
	return r;
}
