/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Entries and actions of a switch's tables: the first byte picks a table, each line behind it is a
 * change (its first byte says which kind), and all of them are tried one by one, then as a set. What
 * is refused has words and changes nothing; what is accepted is dumped, and the dump makes the same
 * table. A packet that passes the tables ends in one place.
 */
#include "base/buf.h"
#include "dataplane/pipeline.h"
#include "fuzz.h"

#define CHANGES_MAX 64
#define PORTS       3

static const char *const keys[][3] = {
	{ "ip.dst prefix" },
	{ "ip.src ternary", "ip.dst ternary" },
	{ "eth.dst exact", "vlan.id ternary", "l4.dst range" },
	{ "time window", "time range" },
	{ "ip.dst ternary", "ip.dst prefix" },
	{ "ip.proto exact", "l4.src ternary", "time window" },
	{ "eth.src prefix", "length range", "mark exact" },
};

#define KEYS (sizeof(keys) / sizeof(keys[0]))

static struct pl_dp_pool *pool;
static uint64_t sent;

static void out(void *arg, struct pl_dp_packet *pkt, enum pl_dp_stage stage)
{
	(void)arg;
	(void)stage;
	must(pkt->out_port >= 1 && pkt->out_port <= PORTS);
	sent++;
	pl_dp_packet_free(pkt);
}

static struct pl_dp_pipeline *make(unsigned int key)
{
	static const struct pl_dp_meter_cfg one = { 8, 64, 0, 0 }, two = { 1000000000000, 1 << 30,
		1000000000000, 1 << 30 };
	const struct pl_dp_pipeline_options o = {
		.name = "s", .node_id = 1, .pool = pool, .ops = { .out = out }
	};
	struct pl_dp_pipeline *p;
	size_t n = 0, bad;

	while (n < 3 && keys[key][n] != NULL)
		n++;
	must(pl_dp_pipeline_new(&p, &o) == 0);
	for (unsigned int i = 1; i <= PORTS; i++)
		must(pl_dp_pipeline_port(p, i, 0x020000000000 + i, i == 3 ? 68 : 1500, NULL) == 0);
	must(pl_dp_pipeline_counter(p, "c", 4, NULL) == 0);
	must(pl_dp_pipeline_register(p, "r", 4, NULL) == 0);
	must(pl_dp_pipeline_meter(p, "m", 1, &one, NULL) == 0);
	must(pl_dp_pipeline_meter(p, "n", 4, &two, NULL) == 0);
	must(pl_dp_pipeline_group(p, "g", NULL) == 0);
	must(pl_dp_pipeline_member(p, "g", "forward 1", NULL) == 0);
	must(pl_dp_pipeline_member(p, "g", "set ip.ttl 1; forward 2", NULL) == 0);
	must(pl_dp_pipeline_table(p, "t", PL_DP_INGRESS, 16, keys[key], n, &bad, NULL) == 0);
	must(pl_dp_pipeline_table(p, "u", PL_DP_INGRESS, 16, keys[0], 1, &bad, NULL) == 0);
	must(pl_dp_pipeline_table(p, "e", PL_DP_EGRESS, 16, keys[key], n, &bad, NULL) == 0);
	return p;
}

/* Entries in lines. */
static void put(void *arg, const char *entry, uint64_t packets, uint64_t bytes)
{
	struct pl_buf *text = arg;

	(void)packets;
	(void)bytes;
	must(strchr(entry, '\n') == NULL);
	pl_buf_printf(text, "%s\n", entry);
}

static void dump(const struct pl_dp_pipeline *p, const char *table, struct pl_buf *ret)
{
	pl_buf_reset(ret);
	pl_buf_str(ret, "");
	must(pl_dp_pipeline_dump(p, table, put, ret, NULL) == 0);
	must(!ret->failed);
}

static bool same(const struct pl_buf *a, const struct pl_buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static void pass(struct pl_dp_pipeline *p, enum pl_dp_stage stage, uint64_t now_ns)
{
	/* IPv4 and UDP behind a tag, checksums left wrong and absent. */
	static const uint8_t bytes[] = { 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 0x81, 0, 0, 5, 8, 0,
		0x45, 0, 0, 36, 0, 0, 0, 0, 64, 17, 0x66, 0xc7, 10, 0, 0, 1, 10, 0, 0, 2, 0x13,
		0x88, 0x13, 0x89, 0, 16, 0, 0, 1, 2, 3, 4, 5, 6, 7, 8 };
	struct pl_dp_packet *pkt = pl_dp_packet_of(pool, bytes, sizeof(bytes));
	const struct pl_dp_account *k = pl_dp_pipeline_account(p, stage);
	uint64_t ends = 0;

	must(pkt != NULL);
	pkt->in_port = 1;
	pkt->in_ns = pkt->out_ns = now_ns;
	if (stage == PL_DP_INGRESS) {
		pl_dp_pipeline_ingress(p, &pkt, 1);
	} else {
		pkt->out_port = 2;
		pkt->headers.l3 = pkt->headers.l4 = pkt->headers.payload = PL_DP_NONE;
		pkt->headers.vlan = 12;
		pl_dp_pipeline_egress(p, &pkt, 1);
	}
	for (unsigned int i = 1; i < PL_DP_DROP_MAX; i++)
		ends += k->dropped[i];
	must(k->in + k->made == k->out + k->consumed + ends);
	must(pl_dp_pool_alive(pool) == 0);
}

/* The lines of a dump as entries of another pipeline, which says the same of them. */
static void read_again(const struct pl_dp_pipeline *p, unsigned int key)
{
	struct pl_dp_pipeline *again = make(key);
	struct pl_buf first, second;

	pl_buf_init(&first);
	pl_buf_init(&second);
	for (unsigned int t = 0; t < 3; t++) {
		const char *name = t == 0 ? "t" : t == 1 ? "u" : "e";
		char *save = NULL, *lines;
		size_t bad;

		dump(p, name, &first);
		lines = strdup(first.len > 0 ? first.data : "");
		must(lines != NULL);
		for (char *l = strtok_r(lines, "\n", &save); l != NULL;
			l = strtok_r(NULL, "\n", &save)) {
			const struct pl_dp_change x = { PL_DP_ADD, name, l };

			must(pl_dp_pipeline_change(again, &x, 1, &bad, NULL) == 0);
		}
		free(lines);
		dump(again, name, &second);
		must(same(&first, &second));
	}
	pl_buf_done(&first);
	pl_buf_done(&second);
	pl_dp_pipeline_free(again);
}

static void change(struct pl_dp_pipeline *p, const struct pl_dp_change *changes, size_t n,
	struct pl_buf bufs[2])
{
	struct pl_diag diag = { .text = "" };
	size_t bad = SIZE_MAX;
	int r;

	dump(p, "t", &bufs[0]);
	r = pl_dp_pipeline_change(p, changes, n, &bad, &diag);
	if (r == 0)
		return;
	must(diag.text[0] != '\0' && bad < n);
	dump(p, "t", &bufs[1]);
	must(same(&bufs[0], &bufs[1]));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_dp_change changes[CHANGES_MAX];
	struct pl_buf bufs[2];
	unsigned int key;
	struct pl_dp_pipeline *p;
	char *text, *save = NULL;
	size_t n = 0;

	if (size == 0 || memchr(data, '\0', size) != NULL)
		return 0;
	if (pool == NULL)
		must(pl_dp_pool_new(&pool, PL_DP_HEADROOM + 2048, 256) == 0);
	key = data[0] % KEYS;
	/* Not by strndup: the input has no zero behind its end, for which strict checks look. */
	text = malloc(size);
	must(text != NULL);
	memcpy(text, data + 1, size - 1);
	text[size - 1] = '\0';
	for (char *l = strtok_r(text, "\n", &save); l != NULL && n < CHANGES_MAX;
		l = strtok_r(NULL, "\n", &save))
		changes[n++] = (struct pl_dp_change){ (enum pl_dp_change_kind)(l[0] & 3),
			(l[0] & 12) == 4    ? "u"
			: (l[0] & 12) == 12 ? "e"
					    : "t",
			l + 1 };
	pl_buf_init(&bufs[0]);
	pl_buf_init(&bufs[1]);
	for (unsigned int whole = 0; whole < 2 && n > 0; whole++) {
		p = make(key);
		for (size_t i = 0; i < (whole ? 1 : n); i++) {
			change(p, changes + i, whole ? n : 1, bufs);
			pass(p, PL_DP_INGRESS, i * UINT64_C(86399999999999));
			pass(p, PL_DP_EGRESS, i);
		}
		read_again(p, key);
		pl_dp_pipeline_free(p);
	}
	pl_buf_done(&bufs[0]);
	pl_buf_done(&bufs[1]);
	free(text);
	return 0;
}
