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
	static const struct pl_dp_choice times[] = { { "posix", PL_IOAM_TIME_POSIX },
		{ "ptp", PL_IOAM_TIME_PTP }, { "ntp", PL_IOAM_TIME_NTP }, { NULL, 0 } };
	struct pl_dp_ioam_config c = { .time = PL_IOAM_TIME_POSIX };
	struct pl_diag inner = { 0 };
	struct pl_dp_arg rows[7] = {
		PL_DP_ARG(NUMBER, "ns", c.ns, .max = UINT16_MAX),
		PL_DP_ARG(NUMBER, "data", c.data, .max = UINT32_MAX),
		PL_DP_ARG(NUMBER, "wide", c.data_wide, .max = UINT64_MAX),
		PL_DP_ARG(CHOICE, "time", c.time, .choices = times),
		PL_DP_ARG(NUMBER, "type", c.type, .max = 0xffffff),
		PL_DP_ARG(NUMBER, "nodes", c.nodes, .max = 61),
		PL_DP_ARG(FLAG, "incremental", c.incremental),
	};
	struct ioam *s;

	if (pl_dp_args_read(action, text, rows, encapsulates ? 7 : 4, diag) < 0)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	c.have_data = rows[1].given;
	c.have_data_wide = rows[2].given;
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
	pl_dp_act_count(s->outcomes[pkt->own ? PL_DP_INT_OWN
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
	static const struct pl_dp_choice kinds[] = { { "pkt64", PL_FLAT_PKT64 },
		{ "pkt96", PL_FLAT_PKT96 }, { NULL, 0 } };
	struct pl_dp_recorder_config c = {
		.kind = PL_FLAT_PKT96, .records = 1, .exporter = p->node_id
	};
	struct pl_diag inner = { 0 };
	struct pl_dp_to_args to;
	struct pl_dp_arg rows[4 + PL_DP_TO_ARGS] = {
		PL_DP_ARG(CHOICE, "kind", c.kind, .choices = kinds),
		PL_DP_ARG(NUMBER, "records", c.records, .max = UINT16_MAX),
		PL_DP_ARG(NUMBER, "point", c.point, .max = PL_OBS_POINT_MASK),
		PL_DP_ARG(NUMBER, "exporter", c.exporter, .max = UINT32_MAX),
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
	snprintf(stream, sizeof(stream), "%06x", c.exporter & 0xffffff);
	c.shared_seq = pl_dp_act_register(p, "record", stream, &c.to, diag);
	s->out = to.out;
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
	static const struct pl_dp_choice ops[] = { { "key-write", PL_DTA_KEY_WRITE },
		{ "append", PL_DTA_APPEND }, { "increment", PL_DTA_INCREMENT },
		{ "postcard", PL_DTA_POSTCARD }, { NULL, 0 } };
	struct pl_dp_dta_config c = { .op = PL_DTA_KEY_WRITE,
		.key = { .kind = PL_KIND_HOP },
		.value = { .kind = PL_KIND_HOP },
		.hop = 1 };
	struct pl_diag inner = { 0 };
	struct pl_dp_to_args to;
	struct pl_dp_arg rows[9 + PL_DP_TO_ARGS] = {
		PL_DP_ARG(CHOICE, "op", c.op, .choices = ops),
		PL_DP_ARG(NUMBER, "store", c.store, .max = UINT16_MAX),
		PL_DP_ARG(NUMBER, "copies", c.copies, .max = UINT8_MAX),
		PL_DP_ARG(NUMBER, "list", c.list, .max = UINT32_MAX),
		PL_DP_ARG(FIELDS, "key", c.key),
		PL_DP_ARG(FIELDS, "value", c.value),
		PL_DP_ARG(FLAG, "text", c.text_key),
		PL_DP_ARG(NUMBER, "hop", c.hop, .max = UINT8_MAX),
		PL_DP_ARG(NUMBER, "length", c.path_length, .max = UINT8_MAX),
	};
	size_t n = 9 + pl_dp_to_args(&to, rows + 9);
	struct dta *s;

	if (pl_dp_args_read("dta", text, rows, n, diag) < 0 ||
		pl_dp_to_of("dta", &to, p, &c.to, diag) < 0)
		return -EINVAL;
	s = calloc(1, sizeof(*s));
	if (s == NULL)
		return -ENOMEM;
	s->out = to.out;
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
	static const struct pl_dp_choice services[] = { { "uc", PL_ROCE_UC }, { "rc", PL_ROCE_RC },
		{ NULL, 0 } };
	static const struct pl_dp_choice forms[] = { { "v1", true }, { "v2", false }, { NULL, 0 } };
	struct pl_dp_roce_config c = {
		.value = { .kind = PL_KIND_HOP }, .service = PL_ROCE_UC, .slots = 1
	};
	struct pl_diag inner = { 0 };
	struct pl_dp_to_args to;
	struct pl_dp_arg rows[10 + PL_DP_TO_ARGS] = {
		PL_DP_ARG(NUMBER, "qpn", c.qpn, .max = 0xffffff),
		PL_DP_ARG(NUMBER, "psn", c.psn, .max = 0xffffff),
		PL_DP_ARG(NUMBER, "rkey", c.rkey, .max = UINT32_MAX),
		PL_DP_ARG(NUMBER, "va", c.va, .max = UINT64_MAX),
		PL_DP_ARG(NUMBER, "slots", c.slots, .max = UINT32_MAX),
		PL_DP_ARG(SIZE, "slot", c.slot_bytes, .max = 4096),
		PL_DP_ARG(FIELDS, "value", c.value),
		PL_DP_ARG(CHOICE, "service", c.service, .choices = services),
		PL_DP_ARG(CHOICE, "form", c.v1, .choices = forms),
		PL_DP_ARG(NUMBER, "immediate", c.imm, .max = UINT32_MAX),
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
	c.has_imm = rows[9].given;
	s->out = to.out;
	pl_dp_act_node_init(&s->node, p, NULL);
	if (pl_dp_roce_init(&s->roce, &c, p->pool, &inner) < 0) {
		say(diag, "roce_write", &inner);
		free(s);
		return -EINVAL;
	}
	snprintf(stream, sizeof(stream), "%06x", c.qpn);
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
