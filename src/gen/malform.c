/* SPDX-License-Identifier: BSD-2-Clause */
/* Kinds of damage: one row each. malform_*.c have the functions of those that change more than a byte. */
#include "gen/malform.h"

#include <string.h>

#include "gen/malform_internal.h"

/* For rows that are about the form alone. */
static void nothing(struct pl_build *b, struct pl_gen_damage *d)
{
	(void)b;
	(void)d;
}

static size_t offset_of(const struct pl_gen_damage *d, enum pl_malform_part part)
{
	switch (part) {
	case PL_MALFORM_SHIM:
		return d->shim;
	case PL_MALFORM_MD:
		return d->md;
	case PL_MALFORM_TAIL:
		return d->after - 4;
	case PL_MALFORM_PAYLOAD:
		return d->payload;
	case PL_MALFORM_INDIVIDUAL:
		return d->individual;
	case PL_MALFORM_INNER_L3:
		return d->inner_l3;
	case PL_MALFORM_FRAME_L3:
		return d->frame_l3;
	default: /* PL_MALFORM_IOAM */
		return d->ioam != 0 ? d->ioam : SIZE_MAX;
	}
}

/* Changes the byte of the row. */
static void change(struct pl_build *b, struct pl_gen_damage *d)
{
	const struct pl_malform_byte *m = &d->kind->byte;
	uint8_t *p = at(b, d, offset_of(d, m->part), m->need);

	if (p != NULL)
		p[m->at] = (uint8_t)((p[m->at] & m->keep) | m->set);
}

/* ---- IOAM: option type, length, reserved, IOAM option type, then the body ---- */

/* clang-format off */
#define IOAM(kinds) { .ioam = (kinds), .frames = true }
#define NOTE(id) PL_V_OK, PL_NOTE_BIT(id)
#define L4 .carrier = PL_GEN_UDP
/* One byte of a part that has `need` bytes. */
#define BYTE(part, need, at, keep, set) change, .byte = { PL_MALFORM_##part, need, at, keep, set }
static const struct pl_malform rows[] = {
	/* INT; needs.mode makes sure that there is a stack */
	{ "shim_type", "shim type 7", { L4, .mode = PL_GEN_MD }, PL_V_SHIM_TYPE, 0, PL_MALFORM_INT, BYTE(SHIM, 1, 0, 0x00, 0x77), .hides = true },
	{ "shim_length_min", "shim length 1", { L4, .mode = PL_GEN_MD }, PL_V_SHIM_LENGTH_MIN, 0, PL_MALFORM_INT, pl_damage_shim_length_min },
	{ "shim_length_max", "shim length past the packet", { L4, .mode = PL_GEN_MD }, PL_V_SHIM_LENGTH_MAX, 0, PL_MALFORM_INT, pl_damage_shim_length_max },
	{ "int_version", "metadata header of version 7", { L4, .mode = PL_GEN_MD }, PL_V_INT_VERSION, 0, PL_MALFORM_INT, BYTE(MD, 1, 0, 0x0f, 0x70), .hides = true },
	{ "hop_ml_zero", "hop length 0", { L4, .version = PL_GEN_INT_V21, .mode = PL_GEN_MD }, PL_V_INT_HOP_ML, 0, PL_MALFORM_INT, BYTE(MD, 4, 2, 0x00, 0) },
	{ "hop_ml_wrong", "hop length that fits no layout of the bitmap", { L4, .version = PL_GEN_INT_V10, .mode = PL_GEN_MD }, PL_V_INT_HOP_ML, 0, PL_MALFORM_INT, BYTE(MD, 4, 2, 0x00, 31) },
	{ "ins_count", "v0.5 instruction count one too high", { L4, .version = PL_GEN_INT_V05, .mode = PL_GEN_MD }, PL_V_INT_INS_COUNT, 0, PL_MALFORM_INT, pl_damage_ins_count },
	{ "stack_words", "v1.0 stack of one word too many", { L4, .version = PL_GEN_INT_V10, .mode = PL_GEN_MD }, PL_V_INT_STACK_WORDS, 0, PL_MALFORM_INT, pl_damage_stack_odd },
	{ "stack_words_21", "v2.1 stack of one word too many, without a domain id", { L4, .version = PL_GEN_INT_V21, .mode = PL_GEN_MD }, PL_V_INT_STACK_WORDS, 0, PL_MALFORM_INT, pl_damage_stack_odd },
	{ "hop_count", "v0.5 hop count one too high", { L4, .version = PL_GEN_INT_V05, .mode = PL_GEN_MD }, PL_V_INT_HOP_COUNT, 0, PL_MALFORM_INT, pl_damage_hop_count_lies },
	{ "hop_count_max", "v0.5 hop count above its maximum", { L4, .version = PL_GEN_INT_V05, .mode = PL_GEN_MD }, PL_V_INT_HOP_COUNT, 0, PL_MALFORM_INT, pl_damage_hop_count_above_max },
	{ "int_tail", "v0.5 tail of an impossible protocol", { L4, .version = PL_GEN_INT_V05, .mode = PL_GEN_MD }, PL_V_INT_TAIL, 0, PL_MALFORM_INT, BYTE(TAIL, 4, 0, 0x00, 0x99) },
	{ "geneve_option", "Geneve INT option of one word", { .report = PL_GEN_REPORT_NONE, .carrier = PL_GEN_GENEVE, .mode = PL_GEN_MD, .frames = true }, PL_V_INT_GENEVE_OPTION, 0, PL_MALFORM_INT, pl_damage_geneve_option_short },
	{ "hop_limit", "E set", { .mode = PL_GEN_MD }, NOTE(HOP_LIMIT), PL_MALFORM_INT, pl_damage_set_e },
	{ "mtu_limit", "M set", { .version = PL_GEN_INT_V21, .mode = PL_GEN_MD }, NOTE(MTU_LIMIT), PL_MALFORM_INT, pl_damage_set_m },
	{ "mtu_limit_10", "M set, v1.0", { .version = PL_GEN_INT_V10, .mode = PL_GEN_MD }, NOTE(MTU_LIMIT), PL_MALFORM_INT, pl_damage_set_m },
	{ "copy", "C or D set", { .mode = PL_GEN_MD }, NOTE(COPY), PL_MALFORM_INT, pl_damage_set_copy },
	{ "no_hops", "an empty stack", { L4, .mode = PL_GEN_MD }, NOTE(NO_HOPS), PL_MALFORM_INT, pl_damage_no_hops },
	{ "reserved_bits", "reserved instruction bits", { .mode = PL_GEN_MD, .bitmap = 0x0060 }, NOTE(RESERVED_BITS), PL_MALFORM_INT, nothing },
	{ "values_missing", "a value of all ones", { .mode = PL_GEN_MD }, NOTE(VALUES_MISSING), PL_MALFORM_INT, pl_damage_value_missing },
	{ "destination_shim", "a destination-type header before the hop-by-hop one", { L4, .mode = PL_GEN_MD }, NOTE(DESTINATION_SHIM), PL_MALFORM_INT, pl_damage_destination_shim },
	{ "destination_shim_length", "a destination-type header past the packet", { L4, .mode = PL_GEN_MD }, PL_V_SHIM_LENGTH_MAX, 0, PL_MALFORM_INT, pl_damage_destination_shim_past, .hides = true },
	{ "latency_implausible", "times of a hop a quarter of an hour apart", { L4, .version = PL_GEN_INT_V21, .mode = PL_GEN_MD, .sink = PL_GEN_SINK_STACK, .bitmap = 0x0c00 }, NOTE(LATENCY_IMPLAUSIBLE), PL_MALFORM_INT, pl_damage_latency_huge },
	{ "ds_unknown", "domain-specific words of an unknown domain", { .version = PL_GEN_INT_V21, .mode = PL_GEN_MD, .ds_words = 2 }, NOTE(DS_UNKNOWN), PL_MALFORM_INT, nothing },
	{ "source_metadata", "source-only domain-specific words", { .version = PL_GEN_INT_V21, .mode = PL_GEN_MD, .source_words = 2 }, NOTE(SOURCE_METADATA), PL_MALFORM_INT, nothing },
	{ "clock_skewed", "a node whose clock is far behind", { .report = PL_GEN_REPORT_V20, .version = PL_GEN_INT_V21, .mode = PL_GEN_MD, .sink = PL_GEN_SINK_STACK, L4 }, NOTE(CLOCK_SKEWED), PL_MALFORM_INT, pl_damage_clock_slow },
	/* reports */
	{ "report_version", "report of version 7", { .report = PL_GEN_REPORT_V10 }, PL_V_REPORT_VERSION, 0, PL_MALFORM_REPORT, BYTE(PAYLOAD, 4, 0, 0x0f, 0x70) },
	{ "report_short", "report cut inside its header", { .report = PL_GEN_REPORT_V10 }, PL_V_REPORT_SHORT, 0, PL_MALFORM_REPORT, pl_damage_report_short },
	{ "report_proto_05", "v0.5 next protocol 9", { .report = PL_GEN_REPORT_V05 }, PL_V_REPORT_PROTO, 0, PL_MALFORM_REPORT, BYTE(PAYLOAD, 4, 0, 0xf0, 9) },
	{ "report_proto", "v1.0 next protocol 5", { .report = PL_GEN_REPORT_V10 }, PL_V_REPORT_PROTO, 0, PL_MALFORM_REPORT, BYTE(PAYLOAD, 4, 1, 0x1f, 5 << 5) },
	{ "report_length", "v2.0 report length past the datagram, in which the inner packet is cut", { .report = PL_GEN_REPORT_V20 }, PL_V_REPORT_LENGTH, 0, PL_MALFORM_REPORT, pl_damage_report_length_cut },
	{ "report_length_inner", "v2.0 report length past the datagram, with which the inner packet ends", { .report = PL_GEN_REPORT_V20 }, NOTE(REPORT_LENGTH_INNER), PL_MALFORM_REPORT, pl_damage_report_length_max },
	{ "report_md_length", "v2.0 metadata length past the report", { .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_HEADER }, PL_V_REPORT_MD_LENGTH, 0, PL_MALFORM_REPORT, pl_damage_report_md_length_max },
	{ "report_md_bits", "v2.0 metadata length 0 with metadata bits", { .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_HEADER }, PL_V_REPORT_MD_LENGTH, 0, PL_MALFORM_REPORT, BYTE(INDIVIDUAL, 4, 2, 0x00, 0) },
	{ "report_tlv", "v2.0 TLV past its report", { .report = PL_GEN_REPORT_V20 }, PL_V_REPORT_TLV, 0, PL_MALFORM_REPORT, pl_damage_report_tlv },
	{ "report_inner", "inner packet of IP version 7", { .report = PL_GEN_REPORT_V10, .mode = PL_GEN_XD }, PL_V_REPORT_INNER, 0, PL_MALFORM_INNER, BYTE(INNER_L3, 1, 0, 0x00, 0x75) },
	{ "inner_noise", "inner packet of noise", { .report = PL_GEN_REPORT_V10 }, NOTE(INNER_CUT), PL_MALFORM_INNER, pl_damage_inner_garbage },
	{ "report_length_lies", "v1.0 report length 1", { .report = PL_GEN_REPORT_V10 }, NOTE(REPORT_LENGTH_LIES), PL_MALFORM_REPORT, BYTE(PAYLOAD, 4, 0, 0xf0, 1) },
	{ "report_length_zero", "v2.0 report of type INT, both lengths 0", { .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_STACK, .mode = PL_GEN_MD }, NOTE(REPORT_LENGTH_ZERO), PL_MALFORM_REPORT, pl_damage_report_length_zero },
	{ "report_version_lies", "the same with version nibble 1", { .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_STACK, .mode = PL_GEN_MD }, NOTE(REPORT_VERSION_LIES), PL_MALFORM_REPORT, pl_damage_report_version_20_lies },
	{ "report_version_lies_05", "v0.5 report with version nibble 1", { .report = PL_GEN_REPORT_V05 }, NOTE(REPORT_VERSION_LIES), PL_MALFORM_REPORT, BYTE(PAYLOAD, 4, 0, 0x0f, 0x10) },
	{ "report_type", "v2.0 individual report of a reserved type behind the good one", { .report = PL_GEN_REPORT_V20 }, NOTE(REPORT_TYPE_SKIPPED), PL_MALFORM_REPORT, pl_damage_report_type_reserved },
	{ "report_ds", "v2.0 domain-specific metadata in the report", { .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_HEADER }, NOTE(REPORT_DS_RAW), PL_MALFORM_REPORT, pl_damage_report_ds },
	{ "inner_type", "v2.0 inner type IPv4 before Ethernet bytes", { .report = PL_GEN_REPORT_V20, .inner = PL_GEN_ETHERNET }, NOTE(INNER_TYPE_LIES), PL_MALFORM_REPORT, BYTE(INDIVIDUAL, 4, 0, 0xf0, 4) },
	{ "inner_cut", "inner packet cut before its ports", { .mode = PL_GEN_XD, .report = PL_GEN_REPORT_V20 }, NOTE(INNER_CUT), PL_MALFORM_INNER, pl_damage_inner_cut_in_l4 },
	{ "inner_truncated", "inner packet cut inside the INT stack", { .mode = PL_GEN_MD, .report = PL_GEN_REPORT_V10, L4 }, PL_V_INT_TRUNCATED, 0, PL_MALFORM_INNER, pl_damage_inner_cut_in_stack },
	{ "fragment", "inner packet is a later fragment", { .mode = PL_GEN_XD, .report = PL_GEN_REPORT_V20 }, NOTE(FRAGMENT), PL_MALFORM_INNER, pl_damage_inner_fragment },
	{ "node_twice", "sink both in the header and on top of the stack", { .mode = PL_GEN_MD, .report = PL_GEN_REPORT_V20, .sink = PL_GEN_SINK_BOTH }, NOTE(NODE_TWICE), PL_MALFORM_INT, nothing },
	{ "f_bit", "F clear although INT is announced inside", { .mode = PL_GEN_MD, .report = PL_GEN_REPORT_V10, .announce = PL_GEN_ANNOUNCE_DSCP }, NOTE(F_BIT_LIES), PL_MALFORM_REPORT, pl_damage_f_bit_lies },
	/* frames */
	{ "instrumented", "the report itself carries INT", { .report = PL_GEN_REPORT_V20, .instrumented = true, .frames = true }, NOTE(INSTRUMENTED), PL_MALFORM_FRAME, nothing },
	{ "short", "frame cut inside its IP header", { .frames = true }, PL_V_SHORT, 0, PL_MALFORM_FRAME, pl_damage_frame_short },
	{ "int_truncated", "capture cut inside the INT stack", { .report = PL_GEN_REPORT_NONE, .mode = PL_GEN_MD, .frames = true, L4 }, PL_V_INT_TRUNCATED, 0, PL_MALFORM_FRAME, pl_damage_frame_cut_in_stack },
	{ "ethertype", "EtherType of LLDP", { .inner = PL_GEN_ETHERNET, .frames = true }, PL_V_NOT_TELEMETRY, 0, PL_MALFORM_FRAME, pl_damage_frame_ethertype },
	{ "ip_version", "IP version 7", { .frames = true }, PL_V_IP_VERSION, 0, PL_MALFORM_FRAME, BYTE(FRAME_L3, 1, 0, 0x0f, 0x70) },
	{ "ip_length", "IPv4 header length 4", { .outer_ip = 4, .frames = true }, PL_V_IP_LENGTH, 0, PL_MALFORM_FRAME, pl_damage_frame_ip_length },
	{ "ip_options", "IPv6 extension header past the packet", { .report = PL_GEN_REPORT_V20, .outer_ip = 6, .frames = true }, PL_V_IP_OPTIONS, 0, PL_MALFORM_FRAME, pl_damage_frame_ip_options },
	{ "l4_length", "UDP length 4", { .carrier = PL_GEN_UDP, .frames = true }, PL_V_L4_LENGTH, 0, PL_MALFORM_FRAME, pl_damage_frame_l4_length },
	{ "nesting", "IPv4 in IPv4, nine times", { .outer_ip = 4, .frames = true }, PL_V_NESTING, 0, PL_MALFORM_FRAME, pl_damage_frame_nesting },
	{ "tunnel", "VXLAN-GPE of version 3", { .report = PL_GEN_REPORT_NONE, .carrier = PL_GEN_GPE, .frames = true }, PL_V_TUNNEL_HEADER, 0, PL_MALFORM_FRAME, pl_damage_tunnel_version },
	/* IOAM */
	{ "ioam_short", "IOAM option of 4 bytes", IOAM(PL_GEN_IOAM_TRACE), PL_V_IOAM_SHORT, 0, PL_MALFORM_FRAME, pl_damage_ioam_short },
	{ "ioam_option", "IOAM option type 9", IOAM(PL_GEN_IOAM_TRACE), PL_V_IOAM_OPTION, 0, PL_MALFORM_FRAME, BYTE(IOAM, 4, 3, 0x00, 9) },
	{ "ioam_node_len", "NodeLen one word too long", IOAM(PL_GEN_IOAM_TRACE), PL_V_IOAM_NODE_LEN, 0, PL_MALFORM_FRAME, pl_damage_ioam_node_len },
	{ "ioam_remaining", "RemainingLen past the option", IOAM(PL_GEN_IOAM_TRACE), PL_V_IOAM_REMAINING, 0, PL_MALFORM_FRAME, BYTE(IOAM, 12, 7, 0xff, 0x7f) },
	{ "ioam_walk", "RemainingLen one word too short", IOAM(PL_GEN_IOAM_TRACE), PL_V_IOAM_WALK, 0, PL_MALFORM_FRAME, pl_damage_ioam_walk },
	{ "ioam_length_e2e", "edge-to-edge option without its last word", IOAM(PL_GEN_IOAM_E2E), PL_V_IOAM_LENGTH, 0, PL_MALFORM_FRAME, pl_damage_ioam_length },
	{ "ioam_length_pot", "proof of transit without its last word", IOAM(PL_GEN_IOAM_POT), PL_V_IOAM_LENGTH, 0, PL_MALFORM_FRAME, pl_damage_ioam_length },
	{ "ioam_length_dex", "direct export without its last word", IOAM(PL_GEN_IOAM_DEX), PL_V_IOAM_LENGTH, 0, PL_MALFORM_FRAME, pl_damage_ioam_length },
	{ "ioam_overrun", "IOAM option past its extension header", IOAM(PL_GEN_IOAM_TRACE), PL_V_IP_OPTIONS, 0, PL_MALFORM_FRAME, BYTE(IOAM, 4, 1, 0x00, 255) },
	{ "ioam_overflow", "O set", IOAM(PL_GEN_IOAM_TRACE), NOTE(IOAM_OVERFLOW), PL_MALFORM_FRAME, BYTE(IOAM, 12, 6, 0xff, 0x04) },
	{ "ioam_loopback", "L set", IOAM(PL_GEN_IOAM_TRACE), NOTE(IOAM_LOOPBACK), PL_MALFORM_FRAME, BYTE(IOAM, 12, 6, 0xff, 0x02) },
	{ "ioam_active", "A set", IOAM(PL_GEN_IOAM_TRACE), NOTE(IOAM_ACTIVE), PL_MALFORM_FRAME, BYTE(IOAM, 12, 6, 0xff, 0x01) },
	{ "ioam_legacy_dex", "direct export with extension flags 0x03", IOAM(PL_GEN_IOAM_DEX), NOTE(IOAM_LEGACY_DEX), PL_MALFORM_FRAME, BYTE(IOAM, 12, 7, 0x00, 0x03) },
	{ "ioam_time", "a fraction that microseconds do not have", IOAM(PL_GEN_IOAM_E2E), NOTE(IOAM_TIME), PL_MALFORM_FRAME, pl_damage_ioam_time },
	{ "ioam_sequence", "64-bit sequence number above 32 bits", { .ioam = PL_GEN_IOAM_E2E, .seq_64 = true, .frames = true }, NOTE(IOAM_SEQUENCE), PL_MALFORM_FRAME, pl_damage_ioam_sequence },
	{ "ioam_more", "both kinds of trace", IOAM(PL_GEN_IOAM_TRACE | PL_GEN_IOAM_INCREMENTAL), NOTE(IOAM_MORE), PL_MALFORM_FRAME, nothing },
	{ "ioam_integrity", "option type of an integrity-protected trace", IOAM(PL_GEN_IOAM_TRACE), NOTE(IOAM_INTEGRITY), PL_MALFORM_FRAME, BYTE(IOAM, 4, 3, 0xff, 64) },
	{ "unassigned", "the fourth flag of a trace", IOAM(PL_GEN_IOAM_TRACE), NOTE(UNASSIGNED), PL_MALFORM_FRAME, BYTE(IOAM, 12, 7, 0xff, 0x80) },
	{ "unassigned_dex", "a flag of direct export", IOAM(PL_GEN_IOAM_DEX), NOTE(UNASSIGNED), PL_MALFORM_FRAME, BYTE(IOAM, 12, 6, 0xff, 0x01) },
	{ "unassigned_pot", "a flag of proof of transit", IOAM(PL_GEN_IOAM_POT), NOTE(UNASSIGNED), PL_MALFORM_FRAME, BYTE(IOAM, 8, 7, 0xff, 0x80) },
};
/* clang-format on */

const struct pl_malform *pl_malforms(size_t *ret_n)
{
	*ret_n = sizeof(rows) / sizeof(rows[0]);
	return rows;
}

const struct pl_malform *pl_malform_find(const char *name)
{
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (strcmp(rows[i].name, name) == 0)
			return &rows[i];
	}
	return NULL;
}

void pl_malform_expect(const struct pl_malform *kind, enum pl_gen_report report,
	enum pl_verdict *ret_verdict, uint64_t *ret_note)
{
	*ret_verdict = kind->verdict;
	*ret_note = kind->note;
	if (kind->hides && report != PL_GEN_REPORT_NONE) {
		*ret_verdict = PL_V_OK;
		*ret_note = PL_NOTE_BIT(EMBEDDED_INVALID);
	}
}
