/* SPDX-License-Identifier: BSD-2-Clause */
/* Community IDs by the specification's own examples (its baseline file, seed 0), in both directions. */
#include "record/community_id.h"

#include <arpa/inet.h>

#include "base/test.h"

static const struct {
	const char *src, *dst, *id;
	uint16_t sport, dport;
	uint8_t proto;
} rows[] = {
	{ "128.232.110.120", "66.35.250.204", "1:LQU9qZlK+B5F3KDmev6m5PMibrg=", 34855, 80, 6 },
	{ "192.168.1.52", "8.8.8.8", "1:d/FP5EW3wiY1vCndhwleRRKHowQ=", 54585, 53, 17 },
	{ "192.168.0.89", "192.168.0.1", "1:X0snYXpgwiv9TZtqg64sgzUn6Dk=", 8, 0, 1 },
};

static struct pl_addr addr(const char *text)
{
	uint8_t b[4];

	if (inet_pton(AF_INET, text, b) != 1)
		abort();
	return pl_addr_v4(b);
}

int main(void)
{
	char id[PL_COMMUNITY_ID_MAX];
	struct pl_pkt96 fragment = { .proto = 17, .obs = PL_OBS_FRAGMENT, .frag_off = 5 };

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pl_flow128 f = { .src = addr(rows[i].src),
			.dst = addr(rows[i].dst),
			.sport = rows[i].sport,
			.dport = rows[i].dport,
			.proto = rows[i].proto };
		struct pl_pkt96 p = { .src = f.dst,
			.dst = f.src,
			.sport = f.proto == 1 ? 0 : f.dport,
			.dport = f.proto == 1 ? 0 : f.sport,
			.proto = f.proto };

		ok(pl_community_id(id, PL_FLAT_FLOW128, &f) && strcmp(id, rows[i].id) == 0,
			"row %zu: %s", i, id);
		ok(pl_community_id(id, PL_FLAT_PKT96, &p) && strcmp(id, rows[i].id) == 0,
			"row %zu, the other way: %s", i, id);
	}
	ok(!pl_community_id(id, PL_FLAT_PKT64, &fragment), "a later fragment has none");
	ok(!pl_community_id_of_kind(PL_FLAT_DNS64) && pl_community_id_of_kind(PL_FLAT_FLOW288),
		"of packets and flows");
	return pl_test_done();
}
