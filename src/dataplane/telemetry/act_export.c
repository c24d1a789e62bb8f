/* SPDX-License-Identifier: BSD-2-Clause */
/* The actions ioam_*, record, dta and roce_write of tables. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "dataplane/telemetry/act.h"
#include "dataplane/telemetry/exports.h"
#include "dataplane/telemetry/ioam_node.h"
#include "wire/roce.h"

static void say(struct pl_diag *diag, const char *action, const struct pl_diag *inner)
{
	pl_diag_set(diag, "action %s: %s", action, inner->text);
}

/* ---- IOAM ---- */

struct ioam {
	struct pl_dp_ioam io;
	struct pl_dp_act_node node;
	uint64_t (*outcomes[PL_DP_INT_MAX])[2];
};

static int make_ioam(const char *action, bool encapsulates, struct pl_dp_pipeline *p,
	const char *text, void **ret, struct pl_diag *diag)
{
	static const char *const times[] = { "posix", "ptp", "ntp", NULL };
	struct pl_dp_ioam_config c = { .ns = 0 };
	struct pl_diag inner = { 0 };
	uint64_t ns = 0, data = 0, wide = 0, type = 0, nodes = 0;
	unsigned int time = PL_IOAM_TIME_POSIX;
	struct pl_dp_arg rows[7] = {
		{ "ns", PL_DP_ARG_U64, &ns, UINT16_MAX, NULL, false },
		{ "data", PL_DP_ARG_U64, &data, UINT32_MAX, NULL, false },
		{ "wide", PL_DP_ARG_U64, &wide, UINT64_MAX, NULL, false },
		{ "time", PL_DP_ARG_CHOICE, &time, 0, times, false },
		{ "type", PL_DP_ARG_U64, &type, 0xffffff, NULL, false },
		{ "nodes", PL_DP_ARG_U64, &nodes, 61, NULL, false },
		{ "incremental", PL_DP_ARG_FLAG, &c.incremental, 0, NULL, false },
	};
	struct ioam *s;

	if (pl_dp_args_read(action, text, rows, encapsulates ? 7 : 4, diag) < 0)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	c.ns = (uint16_t)ns;
	c.have_data = rows[1].given;
	c.data = (uint32_t)data;
	c.have_data_wide = rows[2].given;
	c.data_wide = wide;
	c.time = (uint8_t)time;
	c.type = (uint32_t)type;
	c.nodes = (uint8_t)nodes;
	pl_dp_act_node_init(&s->node, p, NULL);
	if (pl_dp_ioam_init(&s->io, &c, &inner) < 0) {
		say(diag, action, &inner);
		free(s);
		return -EINVAL;
	}
	if (pl_dp_act_outcomes(p, action, s->outcomes, diag) < 0) {
		free(s);
		return -EINVAL;
	}
	*ret = s;
	return 0;
}

static int make_encap(struct pl_dp_pipeline *p, const char *text, void **ret, struct pl_diag *diag)
{
	return make_ioam("ioam_encap", true, p, text, ret, diag);
}

static int make_ioam_transit(
	struct pl_dp_pipeline *p, const char *text, void **ret, struct pl_diag *diag)
{
	return make_ioam("ioam_transit", false, p, text, ret, diag);
}

static int make_decap(struct pl_dp_pipeline *p, const char *text, void **ret, struct pl_diag *diag)
{
	return make_ioam("ioam_decap", false, p, text, ret, diag);
}

static enum pl_dp_run run_encap(
	void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct ioam *s = state;

	(void)call;
	pl_dp_act_count(s->outcomes[pkt->mark == PL_DP_MARK_OWN
					    ? PL_DP_INT_OWN
					    : pl_dp_ioam_encapsulate(&s->io, &s->node.node, pkt)],
		pkt);
	return PL_DP_RUN_ON;
}

static enum pl_dp_run run_ioam_transit(
	void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct ioam *s = state;

	(void)call;
	pl_dp_act_count(s->outcomes[pl_dp_ioam_transit(&s->io, &s->node.node, pkt)], pkt);
	return PL_DP_RUN_ON;
}

static enum pl_dp_run run_decap(
	void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct ioam *s = state;

	(void)call;
	pl_dp_act_count(s->outcomes[pl_dp_ioam_decapsulate(&s->io, pkt)], pkt);
	return PL_DP_RUN_ON;
}

const struct pl_dp_extern pl_dp_extern_IOAM_ENCAP = {
	.name = "ioam_encap",
	.args = "ns=NUMBER [NAME=VALUE…]",
	.help = "put an IOAM trace into IPv6 packets, and the node's own data",
	.egress = true,
	.make = make_encap,
	.free = free,
	.run = run_encap,
};

const struct pl_dp_extern pl_dp_extern_IOAM_TRANSIT = {
	.name = "ioam_transit",
	.args = "ns=NUMBER [NAME=VALUE…]",
	.help = "write the node's data into an IOAM trace of the namespace",
	.egress = true,
	.make = make_ioam_transit,
	.free = free,
	.run = run_ioam_transit,
};

const struct pl_dp_extern pl_dp_extern_IOAM_DECAP = {
	.name = "ioam_decap",
	.args = "ns=NUMBER",
	.help = "take the IOAM trace of the namespace out",
	.ingress = true,
	.egress = true,
	.make = make_decap,
	.free = free,
	.run = run_decap,
};

/* ---- record ---- */

struct record {
	struct pl_dp_recorder *recorder;
	uint16_t out;
	uint64_t (*datagrams)[2], (*none)[2], (*no_packet)[2], (*unsent)[2];
};

/* Frees the state of an entry that is replaced or deleted. Records still waiting for a full
 * datagram count as unsent; the pipeline's counters outlive its entries. */
static void free_record(void *state)
{
	struct record *s = state;

	(*s->unsent)[0] += pl_dp_recorder_counts(s->recorder)->waiting;
	pl_dp_recorder_free(s->recorder);
	free(s);
}

/* Finds or creates the three counters of an action of this kind. */
static int three(struct pl_dp_pipeline *p, const char *action, const char *const names[3],
	uint64_t (**ret[3])[2], struct pl_diag *diag)
{
	for (int i = 0; i < 3; i++) {
		*ret[i] = pl_dp_act_counter(p, action, names[i], diag);
		if (*ret[i] == NULL)
			return -EINVAL;
	}
	return 0;
}

static int make_record(struct pl_dp_pipeline *p, const char *text, void **ret, struct pl_diag *diag)
{
	static const char *const kinds[] = { "pkt64", "pkt96", NULL };
	struct pl_dp_recorder_config c = { .kind = PL_FLAT_PKT96 };
	struct pl_diag inner = { 0 };
	uint64_t records = 1, point = 0, exporter = p->node_id;
	unsigned int kind = 1;
	struct pl_dp_to_args to;
	struct pl_dp_arg rows[4 + PL_DP_TO_ARGS] = {
		{ "kind", PL_DP_ARG_CHOICE, &kind, 0, kinds, false },
		{ "records", PL_DP_ARG_U64, &records, UINT16_MAX, NULL, false },
		{ "point", PL_DP_ARG_U64, &point, PL_OBS_POINT_MASK, NULL, false },
		{ "exporter", PL_DP_ARG_U64, &exporter, UINT32_MAX, NULL, false },
	};
	size_t n = 4 + pl_dp_to_args(&to, rows + 4);
	struct record *s;
	char stream[16];

	if (pl_dp_args_read("record", text, rows, n, diag) < 0 ||
		pl_dp_to_of("record", &to, p, &c.to, diag) < 0)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	c.kind = kind == 0 ? PL_FLAT_PKT64 : PL_FLAT_PKT96;
	c.records = (uint16_t)records;
	c.point = (uint16_t)point;
	c.exporter = (uint32_t)exporter;
	snprintf(stream, sizeof(stream), "%06x", (unsigned int)(exporter & 0xffffff));
	c.shared_seq = pl_dp_act_register(p, "record", stream, &c.to, diag);
	s->out = (uint16_t)to.out;
	s->unsent = pl_dp_act_counter(p, "record", "unsent", diag);
	if (c.shared_seq == NULL || s->unsent == NULL ||
		three(p, "record", (const char *const[]){ "datagrams", "none", "no_packet" },
			(uint64_t(**[])[2]){ &s->datagrams, &s->none, &s->no_packet }, diag) < 0) {
		free(s);
		return -EINVAL;
	}
	if (pl_dp_recorder_new(&s->recorder, &c, p->pool, &inner) < 0) {
		say(diag, "record", &inner);
		free(s);
		return -EINVAL;
	}
	/* Actions share the stream, and a reload takes its number over. */
	if (*c.shared_seq == 0)
		*c.shared_seq = pl_dp_first_number(p);
	*ret = s;
	return 0;
}

static enum pl_dp_run run_record(
	void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct record *s = state;
	const struct pl_dp_recorder_counts *counts = pl_dp_recorder_counts(s->recorder);
	uint64_t none = counts->none, no_packet = counts->no_packet;
	struct pl_dp_packet *made;

	if (pkt->own)
		return PL_DP_RUN_ON;
	made = pl_dp_record(s->recorder, pkt);
	if (counts->none != none)
		pl_dp_act_count(s->none, pkt);
	/* counted in records, of which a datagram has many */
	if (counts->no_packet != no_packet) {
		pl_dp_act_count(s->no_packet, pkt);
		(*s->no_packet)[0] += counts->no_packet - no_packet - 1;
	}
	if (made != NULL) {
		pl_dp_act_count(s->datagrams, made);
		pl_dp_emit(call, made, s->out);
	}
	return PL_DP_RUN_ON;
}

const struct pl_dp_extern pl_dp_extern_RECORD = {
	.name = "record",
	.args = "to=ADDRESS from=ADDRESS out=PORT [NAME=VALUE…]",
	.help = "send a record of the packet (tmpkt/1): kind=pkt64|pkt96 records=NUMBER",
	.ingress = true,
	.egress = true,
	.make = make_record,
	.free = free_record,
	.run = run_record,
};

/* ---- dta ---- */

struct dta {
	struct pl_dp_dta dta;
	struct pl_dp_act_node node;
	uint16_t out;
	uint64_t (*reports)[2], (*missing)[2], (*no_packet)[2];
};

static int make_dta(struct pl_dp_pipeline *p, const char *text, void **ret, struct pl_diag *diag)
{
	static const char *const ops[] = { "key-write", "append", "increment", "postcard", NULL };
	struct pl_dp_dta_config c = { .key = { .kind = PL_KIND_HOP },
		.value = { .kind = PL_KIND_HOP } };
	struct pl_diag inner = { 0 };
	unsigned int op = 0;
	uint64_t store = 0, copies = 0, list = 0, hop = 1, length = 0;
	struct pl_dp_to_args to;
	struct pl_dp_arg rows[9 + PL_DP_TO_ARGS] = {
		{ "op", PL_DP_ARG_CHOICE, &op, 0, ops, false },
		{ "store", PL_DP_ARG_U64, &store, UINT16_MAX, NULL, false },
		{ "copies", PL_DP_ARG_U64, &copies, UINT8_MAX, NULL, false },
		{ "list", PL_DP_ARG_U64, &list, UINT32_MAX, NULL, false },
		{ "key", PL_DP_ARG_FIELDS, &c.key, 0, NULL, false },
		{ "value", PL_DP_ARG_FIELDS, &c.value, 0, NULL, false },
		{ "text", PL_DP_ARG_FLAG, &c.text_key, 0, NULL, false },
		{ "hop", PL_DP_ARG_U64, &hop, UINT8_MAX, NULL, false },
		{ "length", PL_DP_ARG_U64, &length, UINT8_MAX, NULL, false },
	};
	size_t n = 9 + pl_dp_to_args(&to, rows + 9);
	struct dta *s;

	if (pl_dp_args_read("dta", text, rows, n, diag) < 0 ||
		pl_dp_to_of("dta", &to, p, &c.to, diag) < 0)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	c.op = (uint8_t)(PL_DTA_KEY_WRITE + op);
	c.store = (uint16_t)store;
	c.copies = (uint8_t)copies;
	c.list = (uint32_t)list;
	c.hop = (uint8_t)hop;
	c.path_length = (uint8_t)length;
	s->out = (uint16_t)to.out;
	pl_dp_act_node_init(&s->node, p, NULL);
	if (pl_dp_dta_init(&s->dta, &c, p->pool, &inner) < 0) {
		say(diag, "dta", &inner);
		free(s);
		return -EINVAL;
	}
	if (three(p, "dta", (const char *const[]){ "reports", "missing", "no_packet" },
		    (uint64_t(**[])[2]){ &s->reports, &s->missing, &s->no_packet }, diag) < 0) {
		free(s);
		return -EINVAL;
	}
	*ret = s;
	return 0;
}

static enum pl_dp_run run_dta(void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct dta *s = state;
	uint64_t missing = s->dta.missing;
	struct pl_dp_packet *made;

	if (pkt->own)
		return PL_DP_RUN_ON;
	made = pl_dp_dta(&s->dta, &s->node.node, pkt);
	if (made == NULL) {
		pl_dp_act_count(s->dta.missing != missing ? s->missing : s->no_packet, pkt);
		return PL_DP_RUN_ON;
	}
	pl_dp_act_count(s->reports, made);
	pl_dp_emit(call, made, s->out);
	return PL_DP_RUN_ON;
}

const struct pl_dp_extern pl_dp_extern_DTA = {
	.name = "dta",
	.args = "to=ADDRESS from=ADDRESS out=PORT op=key-write|append|increment|postcard "
		"[key=FIELDS] [value=FIELDS] [NAME=VALUE…]",
	.help = "send a report of Direct Telemetry Access with fields of the node's hop",
	.ingress = true,
	.egress = true,
	.make = make_dta,
	.free = free,
	.run = run_dta,
};

/* ---- roce_write ---- */

struct roce {
	struct pl_dp_roce roce;
	struct pl_dp_act_node node;
	uint16_t out;
	uint64_t (*writes)[2], (*missing)[2], (*no_packet)[2];
};

static int make_roce(struct pl_dp_pipeline *p, const char *text, void **ret, struct pl_diag *diag)
{
	struct pl_dp_roce_config c = { .value = { .kind = PL_KIND_HOP } };
	struct pl_diag inner = { 0 };
	static const char *const services[] = { "uc", "rc", NULL }, *const forms[] = { "v1", "v2",
		NULL };
	uint64_t qpn = 0, psn = 0, rkey = 0, slots = 1, slot = 0, imm = 0;
	unsigned int service = 0, form = 1;
	struct pl_dp_to_args to;
	struct pl_dp_arg rows[10 + PL_DP_TO_ARGS] = {
		{ "qpn", PL_DP_ARG_U64, &qpn, 0xffffff, NULL, false },
		{ "psn", PL_DP_ARG_U64, &psn, 0xffffff, NULL, false },
		{ "rkey", PL_DP_ARG_U64, &rkey, UINT32_MAX, NULL, false },
		{ "va", PL_DP_ARG_U64, &c.va, UINT64_MAX, NULL, false },
		{ "slots", PL_DP_ARG_U64, &slots, UINT32_MAX, NULL, false },
		{ "slot", PL_DP_ARG_SIZE, &slot, 4096, NULL, false },
		{ "value", PL_DP_ARG_FIELDS, &c.value, 0, NULL, false },
		{ "service", PL_DP_ARG_CHOICE, &service, 0, services, false },
		{ "form", PL_DP_ARG_CHOICE, &form, 0, forms, false },
		{ "immediate", PL_DP_ARG_U64, &imm, UINT32_MAX, NULL, false },
	};
	size_t n = 10 + pl_dp_to_args(&to, rows + 10);
	char stream[16];
	struct roce *s;

	if (pl_dp_args_read("roce_write", text, rows, n, diag) < 0 ||
		pl_dp_to_of("roce_write", &to, p, &c.to, diag) < 0)
		return -EINVAL;
	if (!rows[0].given || !rows[2].given || !rows[3].given) {
		pl_diag_set(diag, "action roce_write needs qpn, rkey and va of the peer");
		return -EINVAL;
	}
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	c.qpn = (uint32_t)qpn;
	c.psn = (uint32_t)psn;
	c.rkey = (uint32_t)rkey;
	c.slots = (uint32_t)slots;
	c.slot_bytes = (uint32_t)slot;
	c.service = service == 1 ? PL_ROCE_RC : PL_ROCE_UC;
	c.v1 = form == 0;
	c.has_imm = rows[9].given;
	c.imm = (uint32_t)imm;
	s->out = (uint16_t)to.out;
	pl_dp_act_node_init(&s->node, p, NULL);
	if (pl_dp_roce_init(&s->roce, &c, p->pool, &inner) < 0) {
		say(diag, "roce_write", &inner);
		free(s);
		return -EINVAL;
	}
	snprintf(stream, sizeof(stream), "%06x", (unsigned int)qpn);
	s->roce.shared = pl_dp_act_register(p, "roce_write", stream, &c.to, diag);
	if (s->roce.shared == NULL ||
		three(p, "roce_write", (const char *const[]){ "writes", "missing", "no_packet" },
			(uint64_t(**[])[2]){ &s->writes, &s->missing, &s->no_packet }, diag) < 0) {
		free(s);
		return -EINVAL;
	}
	*ret = s;
	return 0;
}

static enum pl_dp_run run_roce(void *state, struct pl_dp_packet *pkt, const struct pl_dp_call *call)
{
	struct roce *s = state;
	uint64_t missing = s->roce.missing;
	struct pl_dp_packet *made;

	if (pkt->own)
		return PL_DP_RUN_ON;
	made = pl_dp_roce_write(&s->roce, &s->node.node, pkt);
	if (made == NULL) {
		pl_dp_act_count(s->roce.missing != missing ? s->missing : s->no_packet, pkt);
		return PL_DP_RUN_ON;
	}
	pl_dp_act_count(s->writes, made);
	pl_dp_emit(call, made, s->out);
	return PL_DP_RUN_ON;
}

const struct pl_dp_extern pl_dp_extern_ROCE_WRITE = {
	.name = "roce_write",
	.args = "to=ADDRESS from=ADDRESS out=PORT mac=MAC qpn=N rkey=N va=N value=FIELDS "
		"[slots=N] [slot=BYTES] [psn=N] [service=uc|rc] [form=v1|v2] [immediate=N]",
	.help = "write fields of the node's hop into a peer's memory by RDMA, slot after slot",
	.ingress = true,
	.egress = true,
	.make = make_roce,
	.free = free,
	.run = run_roce,
};
