/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the counters of links, queues and flows, as JSON and as records. */
#include "lab/truth_account.h"

#include <errno.h>
#include <stdio.h>

#include "base/json.h"
#include "base/num.h"
#include "record/packet.h"

static const struct pl_stat wire_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_lab_wire_account, __VA_ARGS__)
#include "lab/wire_stats.def"
#undef PL_STAT
};
static const struct pl_stats wire_stats = { wire_rows, sizeof(wire_rows) / sizeof(wire_rows[0]) };

static void settings(struct pl_json *j, const struct pl_lab_truth_link *of)
{
	const struct pl_dp_port_cfg *p = pl_dp_port_get(of->port);
	const struct pl_dp_link_cfg *l = pl_dp_link_get(of->dp);

	pl_json_key(j, "set");
	pl_json_object(j);
	pl_json_number(j, "rate_bps", p->rate_bps);
	pl_json_number(j, "queue_bytes", p->classes[0].limit_bytes);
	pl_json_number(j, "delay_ns", l->delay_ns);
	pl_json_key(j, "loss");
	pl_json_double(j, l->loss);
	pl_json_key(j, "down");
	pl_json_bool(j, l->down);
	pl_json_object_end(j);
}

static void accounts(
	struct pl_json *j, const char *key, const struct pl_stats *stats, const void *object)
{
	pl_json_key(j, key);
	pl_json_object(j);
	pl_stats_json(stats, object, NULL, j);
	pl_json_object_end(j);
}

static void link_json(const struct pl_lab_topology *t, const struct pl_lab_truth_link *of,
	uint64_t now_ns, struct pl_buf *out)
{
	const struct pl_lab_link *l = &t->links[of->link];
	char name[PL_LAB_LINK_TEXT_MAX];
	struct pl_json j;

	pl_lab_link_text(t, l, name);
	pl_json_init(&j, out);
	pl_json_object(&j);
	pl_json_text(&j, "kind", "link");
	pl_json_number(&j, "ts_ns", now_ns);
	pl_json_text(&j, "link", name);
	pl_json_text(&j, "from", t->nodes[l->end[of->from].node].name);
	pl_json_number(&j, "from_port", l->end[of->from].port);
	pl_json_text(&j, "to", t->nodes[l->end[!of->from].node].name);
	pl_json_number(&j, "to_port", l->end[!of->from].port);
	settings(&j, of);
	if (of->wire != NULL)
		accounts(&j, "wire", &wire_stats, of->wire);
	accounts(&j, "queue", &pl_dp_queue_stats, pl_dp_port_account(of->port, 0));
	accounts(&j, "line", &pl_dp_link_stats, pl_dp_link_account(of->dp));
	pl_json_object_end(&j);
	pl_buf_chr(out, '\n');
}

static void flow_json(const struct pl_flow *flow, uint32_t number,
	const struct pl_dp_flow_account *account, uint64_t now_ns, struct pl_buf *out)
{
	char text[PL_ADDR_TEXT_MAX];
	struct pl_json j;

	pl_json_init(&j, out);
	pl_json_object(&j);
	pl_json_text(&j, "kind", "flow");
	pl_json_number(&j, "ts_ns", now_ns);
	pl_json_number(&j, "flow_id", number);
	pl_format_addr(text, &flow->src);
	pl_json_text(&j, "src", text);
	pl_format_addr(text, &flow->dst);
	pl_json_text(&j, "dst", text);
	pl_json_number(&j, "sport", flow->sport);
	pl_json_number(&j, "dport", flow->dport);
	pl_json_number(&j, "proto", flow->proto);
	accounts(&j, "packets", &pl_dp_flow_stats, account);
	pl_json_object_end(&j);
	pl_buf_chr(out, '\n');
}

/* ---- as records ---- */

static void link_record(const struct pl_lab_topology *t, const struct pl_lab_truth_link *of,
	uint64_t now_ns, struct pl_buf *out)
{
	const struct pl_lab_end *from = &t->links[of->link].end[of->from];
	const struct pl_lab_end *to = &t->links[of->link].end[!of->from];
	const struct pl_dp_queue_account *queue = pl_dp_port_account(of->port, 0);
	const struct pl_dp_link_account *line = pl_dp_link_account(of->dp);
	const struct pl_link128 record = {
		.ts_ns = now_ns,
		.node = from->node + 1,
		.peer_node = to->node + 1,
		.port = (uint16_t)from->port,
		.peer_port = (uint16_t)to->port,
		.link = (uint16_t)of->link,
		.in_packets = queue->in_packets,
		.in_bytes = queue->in_bytes,
		.dropped = queue->dropped_bytes_limit + queue->dropped_packets_limit +
			   queue->dropped_port_limit + queue->flushed,
		.sent = line->in_packets,
		.lost = line->lost_random + line->lost_burst + line->lost_listed + line->lost_down +
			line->lost_full + line->lost_memory,
		.duplicated = line->duplicated,
		.out_packets = line->out_packets,
		.out_bytes = line->out_bytes,
		.corrupted = line->corrupted,
		.reordered = line->reordered,
		.peak_bytes = queue->peak_bytes,
		.wait_ns = queue->residence_ns,
		.wait_max_ns = queue->residence_max_ns,
	};

	pl_buf_add(out, &record, sizeof(record));
}

static void flow_record(const struct pl_flow *flow, uint32_t number,
	const struct pl_dp_flow_account *account, uint64_t now_ns, struct pl_buf *out)
{
	const struct pl_sent128 record = {
		.ts_ns = now_ns,
		.src = flow->src,
		.dst = flow->dst,
		.flow_id = number,
		.sport = flow->sport,
		.dport = flow->dport,
		.sent = account->sent,
		.sent_bytes = account->sent_bytes,
		.delivered = account->delivered,
		.delivered_bytes = account->delivered_bytes,
		.copied = account->copied,
		.dropped = account->dropped,
		.lost = account->lost,
		.latency_ns = account->latency_ns,
		.latency_max_ns = account->latency_max_ns,
		.reordered =
			account->reordered < UINT32_MAX ? (uint32_t)account->reordered : UINT32_MAX,
		.proto = flow->proto,
	};

	pl_buf_add(out, &record, sizeof(record));
}

/* ---- both ---- */

void pl_lab_truth_account_done(struct pl_lab_truth_account *b)
{
	pl_buf_done(&b->text);
	pl_buf_done(&b->links);
	pl_buf_done(&b->flows);
}

void pl_lab_truth_link(const struct pl_lab_topology *t, const struct pl_lab_truth_link *of,
	uint64_t now_ns, struct pl_lab_truth_account *ret)
{
	link_json(t, of, now_ns, &ret->text);
	link_record(t, of, now_ns, &ret->links);
}

void pl_lab_truth_flow(const struct pl_flow *flow, uint32_t number,
	const struct pl_dp_flow_account *account, uint64_t now_ns, struct pl_lab_truth_account *ret)
{
	flow_json(flow, number, account, now_ns, &ret->text);
	flow_record(flow, number, account, now_ns, &ret->flows);
}

static int write_records(const char *folder, const char *name, const struct pl_buf *records)
{
	char path[4096], made[4096 + 4];
	FILE *f;
	int r = 0;

	if (records->failed)
		return -ENOMEM;
	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	/* Without fsync(): a lab that carries packets cannot wait for the disk. */
	snprintf(made, sizeof(made), "%s.new", path);
	f = fopen(made, "we");
	if (f == NULL)
		return -errno;
	if (records->len > 0 && fwrite(records->data, 1, records->len, f) != records->len)
		r = -errno;
	if (fclose(f) != 0 && r == 0)
		r = -errno;
	if (r == 0 && rename(made, path) != 0)
		r = -errno;
	if (r < 0)
		(void)remove(made);
	return r;
}

int pl_lab_truth_account_write(const struct pl_lab_truth_account *b, const char *folder)
{
	const int r = write_records(folder, PL_LAB_TRUTH_LINKS, &b->links);

	return r == 0 ? write_records(folder, PL_LAB_TRUTH_FLOWS, &b->flows) : r;
}
