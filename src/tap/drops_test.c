/* SPDX-License-Identifier: BSD-2-Clause */
/* URIs of drops, places out of the kernel's text, and the record's forms. */
#include "tap/drops.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/test.h"
#include "record/clickhouse.h"
#include "record/json.h"
#include "record/protobuf.h"
#include "tap/drops_uri.h"

static void test_uris(void)
{
	static const struct {
		const char *uri, *said; /* NULL: it is good */
		const char *interface;
		uint64_t rate;
	} cases[] = {
		{ "drops:", NULL, "", 10000 },
		{ "drops:eth0", NULL, "eth0", 10000 },
		{ "drops:eth0?rate=1", NULL, "eth0", 1 },
		{ "drops:?rate=10000000&ring=1MiB", NULL, "", 10000000 },
		{ "drops:?rate=0", "'rate=0'", "", 0 },
		{ "drops:?rate=10000001", "'rate=10000001'", "", 0 },
		{ "drops:?rate=-1", "'rate=-1'", "", 0 },
		{ "drops:?ring=1", "ring", "", 0 },
		{ "drops:?mode=native", "mode", "", 0 },
		{ "drops:interface-of-16b", "cannot be the name", "", 0 },
		{ "drops:a/b", "cannot be the name", "", 0 },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pl_diag diag = { .text = "" };
		struct pl_uri *uri = malloc(sizeof(*uri));
		struct pl_tap_drops_settings set;
		const int r = pl_tap_drops_settings(&set, cases[i].uri, uri, &diag);

		free(uri);
		if (cases[i].said != NULL) {
			ok(r < 0 && strstr(diag.text, cases[i].said) != NULL, "%s: %s",
				cases[i].uri, diag.text);
			continue;
		}
		ok(r == 0 && set.rate == cases[i].rate &&
				strcmp(set.interface, cases[i].interface) == 0,
			"%s: %s", cases[i].uri, diag.text);
	}
	ok(pl_tap_drops_is("drops:") && !pl_tap_drops_is("drop:") && !pl_tap_drops_is("tc:drops:"),
		"what is a source of drops");
}

static void test_places(void)
{
	static const struct {
		const char *at, *place;
	} cases[] = {
		{ "tcp_v4_rcv+0x1a2/0xf10", "tcp_v4_rcv+0x1a2" },
		{ "ip_vs_in+0x1/0x20 [ip_vs]", "ip_vs_in+0x1[ip_vs]" },
		{ "", "" },
		{ "0xffffffffc0a81234", "" },
		{ "no_offset", "" },
		/* 39 characters, and one more. */
		{ "a23456789012345678901234567890123+0x123/0x9",
			"a23456789012345678901234567890123+0x123" },
		{ "a234567890123456789012345678901234+0x123/0x9",
			"a2345678901234567890123456789012~+0x123" },
		{ "a234567890123456789012345678901234+0x123/0x9 [module]",
			"a23456789012345678901234~+0x123[module]" },
		/* A module's name that leaves no room for the function's. */
		{ "f+0x12/0x9 [a_module_of_a_very_long_name]", "f+0x12" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char at[PL_DROPS_AT_BYTES];
		struct pl_text40 place;

		memset(at, 0, sizeof(at));
		strncpy(at, cases[i].at, sizeof(at) - 1);
		pl_tap_drops_place(&place, at);
		streq(place.c, cases[i].place);
	}
	/* Not ended, as nothing ends it. */
	char at[PL_DROPS_AT_BYTES];
	struct pl_text40 place;

	memset(at, 'a', sizeof(at));
	pl_tap_drops_place(&place, at);
	streq(place.c, "");
	at[100] = '+';
	at[101] = '0';
	at[102] = '/';
	pl_tap_drops_place(&place, at);
	eq(strlen(place.c), PL_TEXT_TOLD);
}

static void test_slots(void)
{
	eq(pl_drops_slot(2), 2);
	eq(pl_drops_slot(PL_DROPS_CORE - 1), PL_DROPS_CORE - 1);
	eq(pl_drops_slot(PL_DROPS_CORE), PL_DROPS_REASONS - 1);
	eq(pl_drops_slot(1u << 16), PL_DROPS_CORE);
	eq(pl_drops_slot(2u << 16 | 3), PL_DROPS_CORE + PL_DROPS_EACH + 3);
	eq(pl_drops_slot(3u << 16 | 127), PL_DROPS_REASONS - 2);
	eq(pl_drops_slot(4u << 16), PL_DROPS_REASONS - 1);
	eq(pl_drops_slot(UINT32_MAX), PL_DROPS_REASONS - 1);
}

static struct pl_drop168 sample(void)
{
	struct pl_drop168 r = { .ts_ns = 5,
		.sport = 1000,
		.dport = 9,
		.proto = 17,
		.reason = PL_DROP_NO_SOCKET,
		.kernel_reason = 77,
		.ethertype = 0x800,
		.ifindex = 3,
		.skb_len = 60,
		.interface = { "eth0" },
		.place = { "__udp4_lib_rcv+0x5ab" } };

	r.src = pl_addr_v4("\x0a\0\0\1");
	r.dst = pl_addr_v4("\x0a\0\0\2");
	return r;
}

static void test_forms(void)
{
	const struct pl_flat *flat = pl_flat(PL_FLAT_DROP168);
	struct pl_drop168 r = sample();
	uint8_t row[PL_PROTOBUF_ROW_MAX], made[PL_PROTOBUF_ROW_MAX];
	uint32_t bytes = 0;
	struct pl_buf text;

	pl_buf_init(&text);
	pl_flat_json(&text, PL_FLAT_DROP168, &r);
	pl_buf_chr(&text, '\0');
	ok(strstr(text.data, "\"reason\":\"NO_SOCKET\",\"ethertype\":2048,\"kernel_reason\":77,") !=
				NULL &&
			strstr(text.data,
				"\"interface\":\"eth0\",\"place\":\"__udp4_lib_rcv+0x5ab\"}") !=
				NULL,
		"as JSON: %s", text.data);
	/* From elsewhere: texts that nothing ends, and a reason that nobody knows. */
	memset(&r.interface, '"', sizeof(r.interface));
	memset(&r.place, 'x', sizeof(r.place));
	r.reason = UINT16_MAX;
	text.len = 0;
	pl_flat_json(&text, PL_FLAT_DROP168, &r);
	pl_buf_chr(&text, '\0');
	ok(strstr(text.data, "\"reason\":65535,") != NULL &&
			strstr(text.data, "\"interface\":\"???????????????\",\"place\":\"xxx") !=
				NULL,
		"and of any bytes: %s", text.data);
	pl_buf_done(&text);

	for (uint32_t i = 0; i < flat->n_fields; i++)
		bytes += pl_field_width(&flat->fields[i]);
	eq(bytes, flat->size);

	pl_buf_init(&text);
	pl_clickhouse_tables(&text, PL_FLAT_DROP168, "drops", NULL);
	pl_buf_chr(&text, '\0');
	ok(strstr(text.data, "    reason UInt16 ") != NULL &&
			strstr(text.data, "    interface FixedString(16) ") != NULL &&
			strstr(text.data, "    place FixedString(40) ") != NULL,
		"a table of ClickHouse has its columns");
	text.len = 0;
	pl_clickhouse_header(&text, PL_FLAT_DROP168);
	ok(!text.failed && text.len <= PL_CLICKHOUSE_HEADER_MAX, "its header fits: %zu", text.len);
	pl_buf_done(&text);

	r = sample();
	pl_protobuf_template(PL_FLAT_DROP168, row);
	pl_protobuf_put(PL_FLAT_DROP168, row, &r, made);
	ok(memmem(made, sizeof(made), &r.place, sizeof(r.place)) != NULL &&
			memmem(made, sizeof(made), &r.interface, sizeof(r.interface)) != NULL,
		"a row of Protocol Buffers has its texts");

	ok(memcmp(pl_flat(PL_FLAT_PKT96)->fields, flat->fields, 0) == 0 &&
			offsetof(struct pl_drop168, reason) == sizeof(struct pl_pkt96),
		"it begins with pkt96");
	ok(PL_DROP_REASONS <= 256 && pl_form_word(PL_FORM_DROP_REASON, PL_DROP_REASONS) == NULL,
		"the language finds each word");
	for (unsigned int v = 0; v < PL_DROP_REASONS; v++) {
		if (pl_form_word(PL_FORM_DROP_REASON, v) == NULL)
			ok(false, "reason %u has no word", v);
	}
}

int main(void)
{
	test_uris();
	test_places();
	test_slots();
	test_forms();
	return pl_test_done();
}
