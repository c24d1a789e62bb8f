/* SPDX-License-Identifier: BSD-2-Clause */
/* Makes records of packets, DTA reports and RDMA WRITEs in the data plane. */
#include "dataplane/telemetry/exports.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "tap/tap.h"
#include "wire/layers.h"
#include "wire/roce.h"

#define ROCE_FRAME(bytes) (PL_ROCE_OVERHEAD + (bytes) + 3)

/* ---- records of this node's hop ---- */

/* Fills in path and hop records of a packet at this node; the path has this hop only. */
static void fill_records(struct pl_path *path, struct pl_hop *hop, const struct pl_dp_node *node,
	const struct pl_dp_packet *pkt)
{
	struct pl_int_hop own;
	struct pl_layers l;

	pl_dp_node_hop(&own, node, pkt);
	*path = (struct pl_path){
		.ts_ns = pkt->in_ns,
		.record_version = PL_RECORD_VERSION,
		.hop_count = 1,
		.node = node->id,
		.present = PL_PATH_HAS_node,
	};
	if (pl_layers_walk(&l, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET, true) == PL_V_OK) {
		path->src = l.flow.src;
		path->dst = l.flow.dst;
		path->proto = l.flow.proto;
		path->dscp = l.flow.dscp;
		path->present |= PL_PATH_HAS_src;
		if ((l.flow.have & PL_FLOW_PORTS) != 0) {
			path->sport = l.flow.sport;
			path->dport = l.flow.dport;
			path->present |= PL_PATH_HAS_sport;
		}
		if ((l.flow.have & PL_FLOW_VLAN) != 0) {
			path->vlan = l.flow.vlan;
			path->present |= PL_PATH_HAS_vlan;
		}
	}
	*hop = (struct pl_hop){
		.ts_ns = pkt->in_ns,
		.record_version = PL_RECORD_VERSION,
		.time_bits = 64,
		.node = own.node,
		.ingress_port = own.ingress_port,
		.egress_port = own.egress_port,
		.ingress_port2 = own.ingress_port2,
		.egress_port2 = own.egress_port2,
		.queue = (uint16_t)own.queue,
		.queue_depth = own.queue_depth,
		.ingress_ts_ns = own.ingress_ts,
		.egress_ts_ns = own.egress_ts,
		.hop_latency_ns = own.latency,
		.tx_util = own.tx_util,
		.present = PL_HOP_HAS_node | PL_HOP_HAS_ingress_port | PL_HOP_HAS_ingress_port2 |
			   PL_HOP_HAS_ingress_ts_ns,
	};
	if (pl_dp_chose_port(pkt))
		hop->present |= PL_HOP_HAS_egress_port | PL_HOP_HAS_egress_port2;
	if ((own.have & PL_INT_HAS(PL_INT_F_QUEUE)) != 0)
		hop->present |= PL_HOP_HAS_queue | PL_HOP_HAS_queue_depth;
	if ((own.have & PL_INT_HAS(PL_INT_F_EGRESS_TS)) != 0)
		hop->present |= PL_HOP_HAS_egress_ts_ns | PL_HOP_HAS_tx_util;
	if ((own.have & PL_INT_HAS(PL_INT_F_LATENCY)) != 0)
		hop->present |= PL_HOP_HAS_hop_latency_ns;
}

/* ---- records of packets ---- */

struct pl_dp_recorder {
	struct pl_dp_datagram to;
	struct pl_dp_pool *pool;
	struct pl_tmpkt_sender *sender;
	uint64_t *shared_seq;
	struct pl_dp_packet *ready; /* datagram made by the sender */
	struct pl_dp_recorder_counts counts;
	struct pl_tap tap;
	struct pl_batch batch;
};

static void take_datagram(
	void *arg, uint32_t lane, const void *datagram, uint32_t len, uint32_t records)
{
	struct pl_dp_recorder *r = arg;
	uint8_t numbered[PL_TMPKT_DATAGRAM_BYTES];
	const uint8_t *behind;
	struct pl_tmpkt head;

	(void)lane; /* there is one */
	r->counts.waiting -= records;
	if (r->shared_seq != NULL && len <= sizeof(numbered) &&
		pl_tmpkt_parse(&head, &behind, datagram, len) == PL_TMPKT_OK) {
		head.seq = (uint32_t)(*r->shared_seq)++;
		pl_tmpkt_put(numbered, &head);
		memcpy(numbered + PL_TMPKT_HEADER_BYTES, behind, len - PL_TMPKT_HEADER_BYTES);
		datagram = numbered;
	}
	r->ready = pl_dp_datagram_make(&r->to, r->pool, datagram, len);
	if (r->ready == NULL)
		r->counts.no_packet += records;
}

int pl_dp_recorder_new(struct pl_dp_recorder **ret, const struct pl_dp_recorder_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag)
{
	struct pl_dp_recorder *r;
	struct pl_tmpkt_sender_config sender = {
		.kind = config->kind,
		.records = config->records != 0 ? config->records : 1,
		.lanes = 1,
		.exporter = config->exporter,
		.send = take_datagram,
	};
	int e = pl_dp_datagram_check(&config->to, diag);

	if (e < 0)
		return e;
	if ((config->kind != PL_FLAT_PKT64 && config->kind != PL_FLAT_PKT96) ||
		config->point > PL_OBS_POINT_MASK ||
		sender.records > pl_tmpkt_fits(config->kind, PL_TMPKT_DATAGRAM_BYTES)) {
		pl_diag_set(diag,
			"records are pkt64 or pkt96, at most %u in a datagram, of points up to %u",
			pl_tmpkt_fits(config->kind, PL_TMPKT_DATAGRAM_BYTES), PL_OBS_POINT_MASK);
		return -EINVAL;
	}
	r = calloc(1, sizeof(*r));
	if (r == NULL)
		return -ENOMEM;
	r->to = config->to;
	if (r->to.dport == 0)
		r->to.dport = PL_TMPKT_PORT;
	if (r->to.sport == 0)
		r->to.sport = PL_TMPKT_PORT;
	r->pool = pool;
	r->shared_seq = config->shared_seq;
	r->tap.point = config->point;
	sender.arg = r;
	e = pl_tmpkt_sender_new(&r->sender, &sender);
	if (e < 0) {
		free(r);
		return e;
	}
	*ret = r;
	return 0;
}

void pl_dp_recorder_free(struct pl_dp_recorder *r)
{
	if (r == NULL)
		return;
	pl_tmpkt_sender_free(r->sender);
	free(r);
}

struct pl_dp_packet *pl_dp_record(struct pl_dp_recorder *r, const struct pl_dp_packet *pkt)
{
	struct pl_pkt96 record;

	r->batch.n = 1;
	r->batch.pkts[0] = (struct pl_packet){
		.data = pkt->data,
		.len = pkt->len,
		.wire_len = pkt->len,
		.ts_ns = pkt->in_ns,
		.link = PL_LINK_ETHERNET,
	};
	r->ready = NULL;
	if (pl_tap_batch(&r->tap, &r->batch, &record, 1) == 0) {
		r->counts.none++;
		return NULL;
	}
	r->counts.waiting++;
	pl_tmpkt_sender_put(r->sender, &record, 1);
	return r->ready;
}

const struct pl_dp_recorder_counts *pl_dp_recorder_counts(const struct pl_dp_recorder *r)
{
	return &r->counts;
}

/* ---- Direct Telemetry Access ---- */

static int refuse(struct pl_diag *diag, const char *text)
{
	pl_diag_set(diag, "%s", text);
	return -EINVAL;
}

int pl_dp_dta_init(struct pl_dp_dta *d, const struct pl_dp_dta_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag)
{
	*d = (struct pl_dp_dta){ .config = *config, .pool = pool };
	if (pl_dp_datagram_check(&config->to, diag) < 0)
		return -EINVAL;
	if (config->op != PL_DTA_APPEND && config->key.n == 0)
		return refuse(diag, "key-write, increment and postcard need a key");
	if (config->op != PL_DTA_INCREMENT && config->value.n == 0)
		return refuse(diag, "key-write, append and postcard need a value");
	if (config->op < PL_DTA_KEY_WRITE || config->op > PL_DTA_POSTCARD)
		return refuse(diag, "a node sends key-write, append, increment or postcard");
	if (config->op == PL_DTA_POSTCARD &&
		(!pl_pack_is_number(&config->value, 64) || config->hop == 0))
		return refuse(diag, "a postcard has one number, and a hop from 1 on");
	if (config->op == PL_DTA_INCREMENT && config->value.n > 0 &&
		!pl_pack_is_number(&config->value, 64))
		return refuse(diag, "an increment is one number");
	if (pl_pack_bytes(&config->key) > PL_DTA_KEY_BYTES_MAX)
		return refuse(diag, "a key has at most 255 bytes");
	if (d->config.to.dport == 0)
		d->config.to.dport = PL_PORT_DTA;
	if (d->config.to.sport == 0)
		d->config.to.sport = PL_PORT_DTA;
	return 0;
}

struct pl_dp_packet *pl_dp_dta(
	struct pl_dp_dta *d, const struct pl_dp_node *node, const struct pl_dp_packet *pkt)
{
	const struct pl_dp_dta_config *c = &d->config;
	uint8_t key[PL_PACK_BYTES_MAX], value[PL_PACK_BYTES_MAX],
		bytes[PL_DTA_HEADER_BYTES + 16 + 2 * PL_PACK_BYTES_MAX];
	struct pl_build b = pl_build(bytes, sizeof(bytes));
	struct pl_dta_report r = {
		.form = PL_DTA_PATHLINE,
		.op = c->op,
		.store = c->store,
		.copies = c->copies,
		.list = c->list,
		.hop = c->hop,
		.path_length = c->path_length,
		.key = key,
		.data = value,
		.increment = 1,
	};
	struct pl_path path;
	struct pl_hop hop;
	const struct pl_pack_record record = { &hop, &path };
	size_t key_bytes = pl_pack_bytes(&c->key);
	uint64_t number = 0;
	bool good = true;

	fill_records(&path, &hop, node, pkt);
	if (c->key.n > 0 && c->text_key) {
		key_bytes = pl_pack_text(&c->key, &record, (char *)key);
		good = key_bytes > 0 && key_bytes <= PL_DTA_KEY_BYTES_MAX;
	} else if (c->key.n > 0) {
		good = pl_pack_put(&c->key, &record, false, key);
	}
	r.key_bytes = (uint8_t)key_bytes;
	if (c->op == PL_DTA_POSTCARD || (c->op == PL_DTA_INCREMENT && c->value.n > 0)) {
		good = good && pl_pack_number(&c->value, &record, &number) &&
		       (c->op != PL_DTA_POSTCARD || number <= UINT32_MAX);
		r.value = (uint32_t)number;
		r.increment = number;
	} else if (c->value.n > 0) {
		good = good && pl_pack_put(&c->value, &record, false, value);
		r.data_bytes = pl_pack_bytes(&c->value);
	}
	if (!good || pl_dta_put(&b, &r) < 0) {
		d->missing++;
		return NULL;
	}
	return pl_dp_datagram_make(&c->to, d->pool, bytes, (uint32_t)b.len);
}

/* ---- RDMA WRITE ---- */

int pl_dp_roce_init(struct pl_dp_roce *r, const struct pl_dp_roce_config *config,
	struct pl_dp_pool *pool, struct pl_diag *diag)
{
	uint32_t bytes = pl_pack_bytes(&config->value);

	*r = (struct pl_dp_roce){ .config = *config, .pool = pool };
	if (pl_dp_datagram_check(&config->to, diag) < 0)
		return -EINVAL;
	if (bytes == 0)
		return refuse(diag, "a WRITE needs fields to write");
	if (config->qpn > PL_ROCE_PSN_MASK || config->psn > PL_ROCE_PSN_MASK)
		return refuse(diag, "QPN and PSN have 24 bits");
	if (config->slot_bytes != 0 && config->slot_bytes < bytes) {
		pl_diag_set(diag, "the fields come to %u bytes: a slot of %u is too small", bytes,
			config->slot_bytes);
		return -EINVAL;
	}
	if (r->config.slot_bytes == 0)
		r->config.slot_bytes = bytes;
	if (r->config.slots == 0)
		r->config.slots = 1;
	if (r->config.to.sport == 0)
		r->config.to.sport = 0xc000;
	return 0;
}

struct pl_dp_packet *pl_dp_roce_write(
	struct pl_dp_roce *r, const struct pl_dp_node *node, const struct pl_dp_packet *pkt)
{
	const struct pl_dp_roce_config *c = &r->config;
	uint64_t *reg = r->shared != NULL ? r->shared : r->own;
	uint32_t bytes = pl_pack_bytes(&c->value);
	/* Other entries may share the register, also ones with more slots: never write outside the
	 * slots that the peer gave. */
	uint64_t slot = reg[1] < c->slots ? reg[1] : 0;
	struct pl_roce write = {
		.path = { .src = c->to.src,
			.dst = c->to.dst,
			.tos = (uint8_t)(c->to.dscp << 2),
			.ttl = c->to.ttl != 0 ? c->to.ttl : 64,
			.sport = c->to.sport,
			.v1 = c->v1 },
		.opcode = c->service | (c->has_imm ? PL_ROCE_WRITE_ONLY_IMM : PL_ROCE_WRITE_ONLY),
		.migrated = true,
		.ack_req = c->service == PL_ROCE_RC,
		.imm = c->imm,
		.pkey = PL_ROCE_PKEY,
		.qpn = c->qpn,
		.psn = pl_psn_add(c->psn, (uint32_t)reg[0]),
		.va = c->va + slot * c->slot_bytes,
		.rkey = c->rkey,
		.length = bytes,
	};
	uint8_t value[PL_PACK_BYTES_MAX];
	struct pl_dp_packet *frame;
	struct pl_path path;
	struct pl_hop hop;
	const struct pl_pack_record record = { &hop, &path };
	struct pl_build b;

	fill_records(&path, &hop, node, pkt);
	if (!pl_pack_put(&c->value, &record, false, value)) {
		r->missing++;
		return NULL;
	}
	frame = pl_dp_packet_new(r->pool, ROCE_FRAME(bytes));
	if (frame == NULL)
		return NULL;
	memcpy(write.path.smac, c->to.smac, 6);
	memcpy(write.path.dmac, c->to.dmac, 6);
	b = pl_build(frame->data, frame->len);
	pl_roce_put(&b, &write, value, bytes);
	frame->len = (uint32_t)b.len;
	if (b.full) {
		pl_dp_packet_free(frame);
		return NULL;
	}
	reg[0]++;
	reg[1] = slot + 1 < c->slots ? slot + 1 : 0;
	return frame;
}
