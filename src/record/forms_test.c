/* SPDX-License-Identifier: BSD-2-Clause */
/* The text forms: JSON, CSV, golden text, table. tests/net/read_listen.py has other programs read
 * them. */
#include "base/num.h"
#include "base/rng.h"
#include "base/test.h"
#include "record/json.h"
#include "record/put.h"
#include "record/table.h"
#include "record/text.h"

static struct pl_addr addr(const char *text)
{
	struct pl_addr a = { 0 };

	if (pl_parse_addr(text, &a) < 0)
		abort();
	return a;
}

static struct pl_path small_path(void)
{
	return (struct pl_path){ .ts_ns = 1700000000123456789u,
		.mode = PL_MODE_XD,
		.record_version = 1,
		.report_id = 0xab };
}

static struct pl_path full_path(void)
{
	return (struct pl_path){
		.ts_ns = 1700000000123456789u,
		.exporter = addr("10.0.0.1"),
		.exporter_port = 40000,
		.report_version = 2,
		.dialect = 0,
		.mode = PL_MODE_MD,
		.hw_id = 0,
		.drop_reason = 7,
		.hop_count = 2,
		.seq = UINT32_MAX,
		.flags = PL_FLAG_DROPPED | PL_FLAG_PARTIAL,
		.int_version = 2,
		.record_version = 1,
		.node = UINT64_MAX,
		.src = addr("fd00::1"),
		.dst = addr("fd00::2"),
		.sport = 1,
		.dport = 443,
		.proto = 6,
		.dscp = 0,
		.vlan = 100,
		.vni = 5000,
		/* All but the other meanings of bytes. */
		.present = UINT32_MAX &
			   ~(uint32_t)(PL_PATH_HAS_lost_count | PL_PATH_HAS_ioam_namespace |
				       PL_PATH_HAS_e2e_ts_ns | PL_PATH_HAS_pot_packet_id |
				       PL_PATH_HAS_pot_cumulative),
		.path_id = 0x123456789abcdef0u,
		.latency_ns = UINT64_MAX,
		.flow_seq = 1,
		.flow_id = 2,
		.report_id = 1,
	};
}

static const struct pl_hop two_hops[2] = {
	{ .ingress_ts_ns = UINT64_MAX,
		.node = 1,
		.queue_depth = 0,
		.index = 0,
		.record_version = 1,
		.present = PL_HOP_HAS_ingress_ts_ns | PL_HOP_HAS_node | PL_HOP_HAS_queue_depth },
	{ .node = 2,
		.link_latency_ns = -5,
		.index = 1,
		.record_version = 1,
		.ts_ns = 9,
		.report_id = 10,
		.path_id = 11,
		.clock = PL_CLOCK_SKEWED,
		.present = PL_HOP_HAS_node | PL_HOP_HAS_link_latency_ns | PL_HOP_HAS_clock |
			   PL_HOP_HAS_path_id },
};

/* Numbers against the C library: every lane of the digit arithmetic, and every length. */
static void test_numbers(void)
{
	unsigned int wrong = 0;
	uint64_t seed = 19, v;
	struct pl_rng rng;
	char got[PUT_VALUE_MAX], want[32];

	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	for (uint32_t i = 0; i < 10000; i++) {
		for (int half = 0; half < 2; half++) {
			*put_8_digits(got, half ? i : i * 10000) = '\0';
			sprintf(want, "%08u", half ? i : i * 10000);
			wrong += strcmp(got, want) != 0;
		}
	}
	eq(wrong, 0, "all quarters of eight digits");
	for (int round = 0; round < 200000; round++) {
		v = pl_rng_u64(&rng) >> pl_rng_below(&rng, 64);
		if (round % 4 == 0) {
			v = 1;
			for (uint64_t n = pl_rng_below(&rng, 20); n > 0; n--)
				v *= 10;
			v -= (uint64_t)round / 4 % 2;
		}
		*put_u64(got, v) = '\0';
		sprintf(want, "%" PRIu64, v);
		wrong += strcmp(got, want) != 0;
		*put_i64(got, (int64_t)v) = '\0';
		sprintf(want, "%" PRId64, (int64_t)v);
		wrong += strcmp(got, want) != 0;
		*put_hex64(got, v) = '\0';
		sprintf(want, "%016" PRIx64, v);
		wrong += strcmp(got, want) != 0;
	}
	eq(wrong, 0, "decimal, signed and hexadecimal as printf writes them");
	*put_u64(got, UINT64_MAX) = '\0';
	streq(got, "18446744073709551615");
	*put_i64(got, INT64_MIN) = '\0';
	streq(got, "-9223372036854775808");
	*put_u64(got, 0) = '\0';
	streq(got, "0");
}

static void test_json(void)
{
	struct pl_path small = small_path(), full = full_path();
	struct pl_event event = { .ts_ns = 5,
		.event = PL_EVENT_QUEUE_DEPTH,
		.phase = PL_PHASE_BEGIN,
		.queue = 3,
		.value = 1u << 20,
		.src = addr("10.0.0.1"),
		.dst = addr("10.0.0.2"),
		.proto = 17,
		.present = PL_EVENT_HAS_queue | PL_EVENT_HAS_value | PL_EVENT_HAS_src };
	struct pl_buf b;

	pl_buf_init(&b);
	pl_path_json(&b, &small, NULL, 0);
	streq(b.data,
		"{\"kind\":\"path\",\"ts_ns\":1700000000123456789,\"mode\":\"xd\",\"hop_count\":0,"
		"\"flags\":{\"dropped\":false,\"congested\":false,\"tracked\":false,\"partial\":false,"
		"\"copy\":false,\"intermediate\":false,\"instrumented\":false,\"unproven\":false},"
		"\"report_id\":\"00000000000000ab\",\"hops\":[]}",
		"absent values have no keys, and no empty flow");
	pl_buf_reset(&b);
	pl_path_json(&b, &full, two_hops, 2);
	streq(b.data,
		"{\"kind\":\"path\",\"ts_ns\":1700000000123456789,\"exporter\":\"10.0.0.1\","
		"\"exporter_port\":40000,\"report_version\":\"2.0\",\"dialect\":\"spec\",\"mode\":\"md\","
		"\"hw_id\":0,\"drop_reason\":7,\"hop_count\":2,\"seq\":4294967295,"
		"\"flags\":{\"dropped\":true,\"congested\":false,\"tracked\":false,\"partial\":true,"
		"\"copy\":false,\"intermediate\":false,\"instrumented\":false,\"unproven\":false},\"int_version\":\"2.1\","
		"\"node\":18446744073709551615,\"flow\":{\"src\":\"fd00::1\",\"dst\":\"fd00::2\","
		"\"sport\":1,\"dport\":443,\"proto\":6,\"dscp\":0,\"vlan\":100,\"vni\":5000},"
		"\"path_id\":\"123456789abcdef0\",\"latency_ns\":18446744073709551615,\"flow_seq\":1,"
		"\"flow_id\":2,\"report_id\":\"0000000000000001\",\"hops\":["
		"{\"ingress_ts_ns\":18446744073709551615,\"node\":1,\"queue_depth\":0,"
		"\"index\":0},"
		"{\"node\":2,\"index\":1,\"link_latency_ns\":-5,\"clock\":\"skewed\"}]}",
		"all digits, order of the list");
	ok(b.len <= pl_path_json_max(2));
	pl_buf_reset(&b);
	pl_hop_json(&b, &two_hops[1]);
	streq(b.data,
		"{\"kind\":\"hop\",\"ts_ns\":9,\"report_id\":\"000000000000000a\","
		"\"path_id\":\"000000000000000b\",\"node\":2,\"index\":1,\"link_latency_ns\":-5,"
		"\"clock\":\"skewed\"}");
	pl_buf_reset(&b);
	pl_event_json(&b, &event);
	streq(b.data,
		"{\"kind\":\"event\",\"ts_ns\":5,\"event\":\"queue_depth\",\"phase\":\"begin\",\"queue\":3,"
		"\"value\":1048576,\"flow\":{\"src\":\"10.0.0.1\",\"dst\":\"10.0.0.2\",\"proto\":17}}");
	pl_buf_reset(&b);
	small.mode = 200;
	pl_path_json(&b, &small, NULL, 0);
	ok(strstr(b.data, "\"mode\":200,") != NULL, "a value without a word is a number");
	pl_buf_reset(&b);
	b.limit = b.cap;
	pl_path_json(&b, &full, two_hops, 2);
	pl_path_json(&b, &full, two_hops, 2);
	pl_path_json(&b, &full, two_hops, 2);
	ok(b.len <= b.limit);
	pl_buf_done(&b);
}

/* Any bytes in a record: the room asked for suffices and the braces pair. */
static void test_json_random(void)
{
	uint64_t seed = 20261120;
	struct pl_path path;
	struct pl_hop hops[255];
	struct pl_event event;
	struct pl_rng rng;
	struct pl_buf b;
	bool fits = true, closed = true;

	printf("# seed %" PRIu64 "\n", seed);
	pl_rng_seed(&rng, seed);
	pl_buf_init(&b);
	for (int round = 0; round < 300; round++) {
		size_t n = pl_rng_below(&rng, 256);

		for (size_t i = 0; i < sizeof(path) / 8; i++) {
			uint64_t v = pl_rng_u64(&rng) | (round % 3 == 0 ? UINT64_MAX : 0);

			memcpy((uint8_t *)&path + i * 8, &v, 8);
			v = pl_rng_u64(&rng) | (round % 3 == 0 ? UINT64_MAX : 0);
			memcpy((uint8_t *)&event + i * 8, &v, 8);
		}
		for (size_t i = 0; i < sizeof(hops) / 8; i++) {
			uint64_t v = pl_rng_u64(&rng) | (round % 3 == 0 ? UINT64_MAX : 0);

			memcpy((uint8_t *)hops + i * 8, &v, 8);
		}
		pl_buf_reset(&b);
		pl_path_json(&b, &path, hops, n);
		fits &= !b.failed && b.len <= pl_path_json_max(n);
		closed &= b.len > 2 && memcmp(b.data + b.len - 2, "]}", 2) == 0 &&
			  strlen(b.data) == b.len;
		pl_buf_reset(&b);
		pl_event_json(&b, &event);
		closed &= strlen(b.data) == b.len && b.data[b.len - 1] == '}';
		pl_buf_reset(&b);
		pl_path_text(&b, &path, hops, n);
		pl_path_table(&b, &path, hops, n, false);
		pl_path_table(&b, &path, hops, n, true);
		pl_event_table(&b, &event);
		pl_hop_table(&b, &hops[0]);
		pl_hop_csv(&b, &hops[0]);
		pl_path_csv(&b, &path, hops, n);
		closed &= !b.failed && strlen(b.data) == b.len;
	}
	ok(fits, "pl_path_json_max holds for any bytes");
	ok(closed, "every form ends as it should for any bytes");
	pl_buf_done(&b);
}

static void test_text(void)
{
	struct pl_path small = small_path(), full = full_path();
	struct pl_buf b;

	pl_buf_init(&b);
	pl_path_text(&b, &small, NULL, 0);
	streq(b.data, "path ts_ns=1700000000123456789 mode=xd hop_count=0 flags=none "
		      "report_id=00000000000000ab\n");
	pl_buf_reset(&b);
	pl_path_text(&b, &full, two_hops, 2);
	streq(b.data,
		"path ts_ns=1700000000123456789 exporter=10.0.0.1 exporter_port=40000 report_version=2.0 "
		"dialect=spec mode=md hw_id=0 drop_reason=7 hop_count=2 seq=4294967295 "
		"flags=dropped,partial int_version=2.1 node=18446744073709551615 flow.src=fd00::1 "
		"flow.dst=fd00::2 flow.sport=1 flow.dport=443 flow.proto=6 flow.dscp=0 flow.vlan=100 "
		"flow.vni=5000 path_id=123456789abcdef0 latency_ns=18446744073709551615 flow_seq=1 "
		"flow_id=2 report_id=0000000000000001\n"
		"\thop ingress_ts_ns=18446744073709551615 node=1 queue_depth=0 index=0\n"
		"\thop node=2 index=1 link_latency_ns=-5 clock=skewed\n");
	pl_buf_done(&b);
}

static size_t count_char(const char *text, size_t len, char c)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		n += text[i] == c;
	return n;
}

static void test_csv(void)
{
	struct pl_path small = small_path(), full = full_path();
	size_t columns, header;
	struct pl_buf b;

	pl_buf_init(&b);
	pl_path_csv_header(&b);
	header = b.len;
	columns = count_char(b.data, header, ',');
	eq(count_char(b.data, header, '\n'), 1);
	ok(strncmp(b.data, "ts_ns,exporter,exporter_port,", 29) == 0);
	ok(strstr(b.data, ",flags.dropped,flags.congested,") != NULL);
	ok(strstr(b.data, ",hops.node,") != NULL);
	pl_path_csv(&b, &small, NULL, 0);
	eq(count_char(b.data + header, b.len - header, '\n'), 1, "a path without hops is a row");
	eq(count_char(b.data + header, b.len - header, ','), columns);
	ok(strncmp(b.data + header, "1700000000123456789,,,,,xd,,,0,,false,", 38) == 0,
		"missing is empty");
	header = b.len;
	pl_path_csv(&b, &full, two_hops, 2);
	eq(count_char(b.data + header, b.len - header, '\n'), 2, "a row per hop");
	eq(count_char(b.data + header, b.len - header, ','), 2 * columns);
	ok(b.data[b.len - 1] == '\n' && b.data[b.len - 2] == ',');
	pl_buf_reset(&b);
	pl_event_csv_header(&b);
	columns = count_char(b.data, b.len, ',');
	pl_event_csv(&b, &(struct pl_event){ 0 });
	eq(count_char(b.data, b.len, ','), 2 * columns);
	eq(count_char(b.data, b.len, '\n'), 2);
	pl_buf_reset(&b);
	pl_hop_csv_header(&b);
	columns = count_char(b.data, b.len, ',');
	pl_hop_csv(&b, &(struct pl_hop){ .ts_ns = 5, .node = 7, .present = PL_HOP_HAS_node });
	eq(count_char(b.data, b.len, ','), 2 * columns, "a hop on its own");
	eq(count_char(b.data, b.len, '\n'), 2);
	ok(strncmp(b.data, "ts_ns,report_id,path_id,ingress_ts_ns,egress_ts_ns,node,", 56) == 0 &&
			strstr(b.data, "\n5,0000000000000000,,,,7,") != NULL,
		"says when, whose and where: %s", b.data);
	pl_buf_done(&b);
}

/* A packet whose capture told no time has none in any form. */
static void test_no_time(void)
{
	const struct pl_path path = { .mode = PL_MODE_XD };
	const struct pl_hop hop = { .node = 7, .present = PL_HOP_HAS_node };
	const struct pl_event event = { .event = PL_EVENT_LOOP };
	struct pl_buf b;

	pl_buf_init(&b);
	pl_path_text(&b, &path, &hop, 1);
	pl_event_text(&b, &event);
	pl_path_json(&b, &path, &hop, 1);
	pl_hop_json(&b, &hop);
	pl_event_json(&b, &event);
	pl_path_table(&b, &path, &hop, 1, false);
	pl_path_table(&b, &path, &hop, 1, true);
	ok(strstr(b.data, "ts_ns") == NULL && strstr(b.data, "1970") == NULL &&
			strstr(b.data, "00:00:00") == NULL,
		"no time: %s", b.data);
	pl_buf_reset(&b);
	pl_path_csv(&b, &path, &hop, 1);
	ok(b.data[0] == ',', "no time: an empty column");
	pl_buf_done(&b);
}

static void test_hop_table(void)
{
	const struct pl_hop hop = { .ts_ns = 1700000000123456789u,
		.node = 5,
		.ingress_port = 1,
		.egress_port = 4,
		.queue = 2,
		.hop_latency_ns = 6889,
		.queue_depth = 60,
		.present = PL_HOP_HAS_node | PL_HOP_HAS_ingress_port | PL_HOP_HAS_egress_port |
			   PL_HOP_HAS_queue | PL_HOP_HAS_hop_latency_ns | PL_HOP_HAS_queue_depth };
	struct pl_buf b;

	pl_buf_init(&b);
	pl_hop_table_header(&b);
	pl_hop_table(&b, &hop);
	pl_hop_table(&b, &(struct pl_hop){ .ts_ns = 0 });
	streq(b.data, "TIME         NODE    IN     OUT    QUEUE LATENCY  DEPTH     UTIL      LINK\n"
		      "22:13:20.123 5       1      4      2     6.89us   60        -         -\n"
		      "-            -       -      -      -     -        -         -         -\n");
	pl_buf_done(&b);
}

static void test_table(void)
{
	struct pl_path path = {
		.ts_ns = 1700000000123456789u,
		.exporter = addr("10.0.0.1"),
		.src = addr("10.0.1.1"),
		.dst = addr("10.0.2.2"),
		.sport = 40000,
		.dport = 443,
		.latency_ns = 4500,
		.flags = PL_FLAG_CONGESTED | PL_FLAG_PARTIAL,
		.present = PL_PATH_HAS_exporter | PL_PATH_HAS_src | PL_PATH_HAS_sport |
			   PL_PATH_HAS_latency_ns,
	};
	struct pl_hop hops[3] = { { .node = 1, .present = PL_HOP_HAS_node }, { .node = 9 },
		{ .node = 3, .present = PL_HOP_HAS_node } };
	char latency[32], want[256];
	struct pl_buf b;

	pl_format_duration(latency, sizeof(latency), 4500);
	snprintf(want, sizeof(want),
		"22:13:20.123 10.0.0.1      10.0.1.1:40000>10.0.2.2:443 "
		"1>?>3       %-7s QP\n",
		latency);
	pl_buf_init(&b);
	pl_path_table(&b, &path, hops, 3, false);
	streq(b.data, want);
	pl_buf_reset(&b);
	pl_path_table_header(&b, false);
	ok(b.len == 81, "80 columns");
	pl_buf_reset(&b);
	path = small_path();
	pl_path_table(&b, &path, NULL, 0, false);
	streq(b.data,
		"22:13:20.123 -             -                           -           -       -\n",
		"a dash for each missing value");
	pl_buf_reset(&b);
	path = full_path();
	pl_path_table(&b, &path, two_hops, 2, true);
	ok(strncmp(b.data, "2023-11-14T22:13:20.123456789Z 10.0.0.1:40000 ", 46) == 0);
	ok(strstr(b.data, " [fd00::1]:1>[fd00::2]:443 tcp vlan 100 vni 5000 ") != NULL);
	ok(strstr(b.data, " dropped,partial ") != NULL);
	pl_buf_done(&b);
}

static void test_doc(void)
{
	struct pl_buf b;
	size_t n;

	pl_buf_init(&b);
	pl_fields_doc(&b, true);
	for (int kind = 0; kind < PL_KIND_MAX; kind++) {
		const struct pl_field *f = pl_fields((enum pl_record_kind)kind, &n);

		for (size_t i = 0; i < n; i++) {
			char want[64];

			if (f[i].name[0] == '\0' || f[i].form == PL_FORM_FLAGS)
				continue;
			snprintf(want, sizeof(want), "| `%s%s` |",
				kind == PL_KIND_HOP ? "hops." : "", f[i].name);
			ok(strstr(b.data, want) != NULL, "documented: %s", f[i].name);
		}
	}
	ok(strstr(b.data, "| `flags.copy` |") != NULL);
	pl_buf_reset(&b);
	pl_fields_doc(&b, false);
	ok(!b.failed && b.data[b.len - 1] == '\n');
	pl_buf_done(&b);
}

int main(void)
{
	test_numbers();
	test_json();
	test_json_random();
	test_text();
	test_csv();
	test_table();
	test_no_time();
	test_hop_table();
	test_doc();
	return pl_test_done();
}
