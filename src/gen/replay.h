/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The streams that INTCollector's own benchmark generator sends (tests 1 to 8), so that both
 * collectors can be fed the same packets. Its quirks are kept: outer DSCP 0x17 and no DSCP in the
 * inner packet; sequence number and report time constant; tests 1 to 7 are report v0.5 with version
 * nibble 1 around INT v0.5 whose shim length and tail protocol are 0; test 8 is report v1.0 with
 * Length 1 around INT v1.0 with hop length 8. Test 7's latencies are random, not the recorded ones.
 */
#pragma once

#include "gen/gen.h"
#include "wire/build.h"

/* Fills in the flow count, port and rate of the test when the configuration leaves them open. */
void pl_replay_resolve(struct pl_gen_cfg *cfg);

/* Writes packet number i of the stream: whole frame, or with cfg.udp the payload. */
void pl_replay_put(
	const struct pl_gen_cfg *cfg, struct pl_build *b, uint64_t i, struct pl_rng *rng);
