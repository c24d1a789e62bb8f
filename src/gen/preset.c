/* SPDX-License-Identifier: BSD-2-Clause */
/* The named configurations of the generator. */
#include "gen/preset.h"

#include <errno.h>
#include <string.h>

#include "base/num.h"
#include "gen/event.h"

/* clang-format off */
static const struct pl_gen_preset presets[] = {
	{ "demo", "a small fabric; a path change, a queue build-up and lost reports every minute",
		{ .topology = "leaf-spine:4x2", .flows = 200, .rate = 5000 }, true },
	{ "intcollector", "INT-MD 1.0 as INTCollector reads it: all eight fields, hop length 8",
		{ .dialect = PL_DIALECT_INTCOLLECTOR, .report = PL_GEN_REPORT_V10, .topology = "chain:6", .report_port = 54321 }, false },
	{ "geant", "INT-MD 1.0 of GEANT's BMv2 and Tofino programs: 64-bit times, flow sequence numbers",
		{ .dialect = PL_DIALECT_GEANT, .report = PL_GEN_REPORT_V10, .topology = "chain:3", .report_port = 8090, .dscp = 0x20 }, false },
	{ "amlight", "INT-MD 1.0 of NoviFlow switches: six fields, VLANs, INT before the TCP options",
		{ .dialect = PL_DIALECT_NOVIFLOW, .report = PL_GEN_REPORT_V10, .topology = "ring:8", .carrier = PL_GEN_TCP, .tcp_options = 3, .tcp_before_options = true, .inner = PL_GEN_VLAN, .report_port = 5900 }, false },
	{ "host-int", "Intel Host-INT: v0.5 with shim type 3 and flow sequence numbers",
		{ .dialect = PL_DIALECT_HOST_INT, .topology = "chain:2", .dscp = 0x01 }, false },
	{ "postcards", "INT-XD 2.1: every node reports for itself",
		{ .mode = PL_GEN_XD, .report = PL_GEN_REPORT_V20 }, false },
#define INTCOLLECTOR(n, text) { "intcollector-test" #n, text, { .replay = PL_GEN_REPLAY_INTCOLLECTOR_##n }, false }
	INTCOLLECTOR(1, "INTCollector's own test 1: 6 hops, ids only, 10 flows"),
	INTCOLLECTOR(2, "its test 2: 100 flows, all fields (--hops, --fields choose the case)"),
	INTCOLLECTOR(3, "its test 3: 100 flows, queue ids by hop"),
	INTCOLLECTOR(4, "its test 4: 100 flows, 3 hops, a deviating utilization now and then"),
	INTCOLLECTOR(5, "its test 5: two packets in turn, one every 5 s"),
	INTCOLLECTOR(6, "its test 6: for the ONOS collector, port 1234, 5 hops"),
	INTCOLLECTOR(7, "its test 7: a hop latency that wanders, one packet a second"),
	INTCOLLECTOR(8, "its test 8: test 5 in INT 1.0, one every 2 s"),
#undef INTCOLLECTOR
};
/* clang-format on */

#define N_PRESETS (sizeof(presets) / sizeof(presets[0]))

const struct pl_gen_preset *pl_gen_presets(size_t *ret_n)
{
	*ret_n = N_PRESETS;
	return presets;
}

int pl_gen_preset_set(struct pl_gen_cfg *cfg, const char *name, struct pl_diag *diag)
{
	const char *names[N_PRESETS], *near;

	for (size_t i = 0; i < N_PRESETS; i++) {
		if (strcmp(presets[i].name, name) == 0) {
			*cfg = presets[i].cfg;
			if (presets[i].story)
				pl_gen_story(cfg);
			return 0;
		}
		names[i] = presets[i].name;
	}
	near = pl_nearest(name, names, N_PRESETS);
	if (near != NULL)
		pl_diag_set(diag, "no preset \"%s\"; did you mean \"%s\"?", name, near);
	else
		pl_diag_set(diag, "no preset \"%s\" (\"--preset list\" shows them)", name);
	return -EINVAL;
}
