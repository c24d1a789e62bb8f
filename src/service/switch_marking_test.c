/* SPDX-License-Identifier: BSD-2-Clause */
/* Outputs of block records: their turns run, and are waited for, with and without points. */
#include <stdlib.h>

#include "service/switch.h"

#include "base/test.h"

#define SECOND UINT64_C(1000000000)

static unsigned int turns;
static uint64_t next;

static uint64_t turn(struct pl_tap_out *out, uint64_t now_ns)
{
	(void)out;
	(void)now_ns;
	turns++;
	return next;
}

static void swallow(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	(void)arg;
	(void)stage;
	pl_dp_packet_free(pkt);
}

static void test_outs(const char *points, uint64_t points_due)
{
	static const struct pl_tap_out_driver driver = { .turn = turn };
	struct pl_tap_out out = { .driver = &driver };
	struct pl_switch *s = calloc(1, sizeof(*s));
	struct pl_dp_pipeline_options o = { .ops = { .out = swallow } };
	struct pl_dp_program program;
	struct pl_diag diag = { .text = "" };
	char text[256];
	const int n = snprintf(text, sizeof(text),
		"ports: [ { number: 1, uri: \"packet:a\" } ]\nmarking: { to: [ \"file:x\" ]%s }\n",
		points);

	if (s == NULL || pl_dp_pool_new(&o.pool, PL_DP_HEADROOM + 64, 1) < 0 ||
		pl_dp_program_parse(&program, "marking", text, (size_t)n, &diag) < 0 ||
		pl_dp_program_build(&program, &o, NULL, &s->pipeline, &diag) < 0) {
		ok(false, "%s", diag.text);
		free(s);
		return;
	}
	s->outs[s->n_outs++] = &out;
	s->now_ns = 1000 * SECOND;
	turns = 0;
	next = UINT64_MAX;
	pl_switch_marking_turn(s, SECOND);
	eq(turns, 1, "the output has its turn");
	eq(pl_switch_marking_due_ns(s, SECOND), points_due,
		"and is not waited for when nothing waits");
	next = SECOND + 5;
	pl_switch_marking_turn(s, SECOND);
	eq(pl_switch_marking_due_ns(s, SECOND), SECOND + 5, "or until what waits has to leave");
	pl_dp_pipeline_free(s->pipeline);
	pl_dp_program_done(&program);
	pl_dp_pool_free(o.pool);
	free(s);
}

int main(void)
{
	test_outs("", UINT64_MAX);
	test_outs(", points: [ { number: 1, port: 1 } ]", SECOND + SECOND / 2);
	return pl_test_done();
}
