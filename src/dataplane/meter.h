/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Meters of one rate (RFC 2697) and of two (RFC 2698), colour-blind. Tokens are counted in 1e-9
 * bits, as integers: nanoseconds times bits per second are exact in this unit.
 */
#pragma once

#include "dataplane/pipeline.h"

enum pl_dp_colour { PL_DP_GREEN, PL_DP_YELLOW, PL_DP_RED, PL_DP_COLOURS };

/* Tokens of a byte; sums of two bursts of up to PL_DP_BURST_BYTES_MAX fit in 64 bits. */
#define PL_DP_TOKENS_BYTE     UINT64_C(8000000000)
#define PL_DP_BURST_BYTES_MAX (UINT64_C(1) << 30)

struct pl_dp_meter {
	uint64_t committed, excess; /* tokens; excess: the peak bucket with two rates */
	uint64_t at_ns;
	bool begun;
	uint64_t packets[PL_DP_COLOURS];
};

/* Returns the tokens that accrue in `ns`, at most `cap`. */
static inline uint64_t pl_dp_tokens(uint64_t ns, uint64_t bps, uint64_t cap)
{
	return bps == 0 ? 0 : ns > cap / bps ? cap : ns * bps;
}

static inline void pl_dp_meter_fill(
	struct pl_dp_meter *m, const struct pl_dp_meter_cfg *cfg, uint64_t now_ns)
{
	const uint64_t cbs = cfg->burst * PL_DP_TOKENS_BYTE,
		       ebs = cfg->peak_burst * PL_DP_TOKENS_BYTE;
	uint64_t ns, left;

	if (!m->begun) {
		*m = (struct pl_dp_meter){
			.committed = cbs, .excess = ebs, .at_ns = now_ns, .begun = true
		};
		return;
	}
	if (now_ns <= m->at_ns)
		return;
	ns = now_ns - m->at_ns;
	m->at_ns = now_ns;
	left = pl_dp_tokens(ns, cfg->rate_bps, cbs + ebs);
	if (cfg->peak_bps != 0) {
		const uint64_t peak = pl_dp_tokens(ns, cfg->peak_bps, ebs);

		m->excess = peak > ebs - m->excess ? ebs : m->excess + peak;
	}
	/* With one rate, tokens that overflow the committed bucket go into the other one. */
	if (left <= cbs - m->committed) {
		m->committed += left;
		return;
	}
	left -= cbs - m->committed;
	m->committed = cbs;
	if (cfg->peak_bps == 0)
		m->excess = left > ebs - m->excess ? ebs : m->excess + left;
}

static inline enum pl_dp_colour pl_dp_meter_colour(
	struct pl_dp_meter *m, const struct pl_dp_meter_cfg *cfg, uint32_t bytes, uint64_t now_ns)
{
	const uint64_t tokens = bytes * PL_DP_TOKENS_BYTE;
	enum pl_dp_colour colour = PL_DP_RED;

	pl_dp_meter_fill(m, cfg, now_ns);
	if (cfg->peak_bps == 0) {
		if (m->committed >= tokens) {
			m->committed -= tokens;
			colour = PL_DP_GREEN;
		} else if (m->excess >= tokens) {
			m->excess -= tokens;
			colour = PL_DP_YELLOW;
		}
	} else if (m->excess >= tokens) {
		m->excess -= tokens;
		colour = PL_DP_YELLOW;
		if (m->committed >= tokens) {
			m->committed -= tokens;
			colour = PL_DP_GREEN;
		}
	}
	m->packets[colour]++;
	return colour;
}
