/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes flows as messages of goflow2. */
#include "record/goflow2.h"

#include <assert.h>
#include <string.h>

#define WIRE_VARINT    0
#define WIRE_BYTES     2
#define HEAD_MAX       2 /* bytes of a length below 16384 */
#define ETHERTYPE_IPV4 0x0800
#define ETHERTYPE_IPV6 0x86dd
#define PROTO_ICMP     1
#define PROTO_ICMPV6   58

/* FIELD(id, number, type, name, what it is) in the order of their numbers. */
#define FIELDS(FIELD)                                                                              \
	FIELD(SAMPLING_RATE, 3, "uint64", "sampling_rate",                                         \
		"1: packets and bytes are of all packets, or estimates of them")                   \
	FIELD(SEQUENCE_NUM, 4, "uint32", "sequence_num", "flow_seq of the record")                 \
	FIELD(SRC_ADDR, 6, "bytes", "src_addr", "4 or 16 bytes")                                   \
	FIELD(DST_ADDR, 7, "bytes", "dst_addr", "4 or 16 bytes")                                   \
	FIELD(BYTES, 9, "uint64", "bytes", "this way, from the IP header on")                      \
	FIELD(PACKETS, 10, "uint64", "packets", "this way")                                        \
	FIELD(SAMPLER, 11, "bytes", "sampler_address", "4 or 16 bytes; sampler= of the tap")       \
	FIELD(PROTO, 20, "uint32", "proto", "transport protocol number")                           \
	FIELD(SRC_PORT, 21, "uint32", "src_port", "")                                              \
	FIELD(DST_PORT, 22, "uint32", "dst_port", "")                                              \
	FIELD(TCP_FLAGS, 26, "uint32", "tcp_flags", "all that were seen this way, ORed")           \
	FIELD(VLAN_ID, 29, "uint32", "vlan_id", "of the flow's first packet")                      \
	FIELD(ETYPE, 30, "uint32", "etype", "0x0800 or 0x86dd")                                    \
	FIELD(ICMP_TYPE, 31, "uint32", "icmp_type", "of the first packet; not in reverse")         \
	FIELD(ICMP_CODE, 32, "uint32", "icmp_code", "of the first packet; not in reverse")         \
	FIELD(DOMAIN, 70, "uint32", "observation_domain_id", "--exporter of the tap")              \
	FIELD(POINT, 71, "uint32", "observation_point_id",                                         \
		"where the flow's first packet was seen; of flow288 the first one this way")       \
	FIELD(RECEIVED, 110, "uint64", "time_received_ns", "that of the flow's last packet")       \
	FIELD(START, 111, "uint64", "time_flow_start_ns",                                          \
		"of the flow's first packet, in either direction")                                 \
	FIELD(END, 112, "uint64", "time_flow_end_ns", "of its last one")

enum {
#define FIELD(id, ...) id,
	FIELDS(FIELD)
#undef FIELD
		N_FIELDS
};

static const struct {
	uint32_t number;
	const char *type, *name, *help;
} fields[N_FIELDS] = {
#define FIELD(id, number, type, name, help) [id] = { number, type, name, help },
	FIELDS(FIELD)
#undef FIELD
};

/* Values of a message. */
struct values {
	uint64_t numbers[N_FIELDS];
	const struct pl_addr *addresses[N_FIELDS]; /* NULL: the field is none of bytes, or absent */
};

static uint8_t *put_varint(uint8_t *to, uint64_t value)
{
	for (; value >= 128; value >>= 7)
		*to++ = (uint8_t)(value | 128);
	*to++ = (uint8_t)value;
	return to;
}

static uint8_t *put_address(uint8_t *to, uint32_t number, const struct pl_addr *a)
{
	const size_t from = pl_addr_is_v4(a) ? 12 : 0, len = sizeof(a->b) - from;

	to = put_varint(to, number << 3 | WIRE_BYTES);
	to = put_varint(to, len);
	memcpy(to, a->b + from, len);
	return to + len;
}

static size_t put_fields(uint8_t *to, const struct values *v)
{
	uint8_t *at = to;

	for (unsigned int i = 0; i < N_FIELDS; i++) {
		if (v->addresses[i] != NULL) {
			at = put_address(at, fields[i].number, v->addresses[i]);
		} else if (v->numbers[i] != 0) { /* proto3: an absent field is 0 */
			at = put_varint(at, fields[i].number << 3 | WIRE_VARINT);
			at = put_varint(at, v->numbers[i]);
		}
	}
	return (size_t)(at - to);
}

static void take_ports(struct values *v, const struct pl_flow128 *f, bool reverse)
{
	if (f->proto == PROTO_ICMP || f->proto == PROTO_ICMPV6) {
		v->numbers[ICMP_TYPE] = reverse ? 0 : f->sport;
		v->numbers[ICMP_CODE] = reverse ? 0 : f->dport;
		return;
	}
	v->numbers[SRC_PORT] = reverse ? f->dport : f->sport;
	v->numbers[DST_PORT] = reverse ? f->sport : f->dport;
}

static void take_both(struct values *v, const struct pl_flow128 *f)
{
	v->numbers[SAMPLING_RATE] = 1;
	v->numbers[SEQUENCE_NUM] = f->flow_seq;
	v->numbers[PROTO] = f->proto;
	v->numbers[VLAN_ID] = f->vlan;
	v->numbers[ETYPE] = pl_addr_is_v4(&f->src) ? ETHERTYPE_IPV4 : ETHERTYPE_IPV6;
	v->numbers[RECEIVED] = v->numbers[END] = f->last_ts;
	v->numbers[START] = f->first_ts;
}

size_t pl_goflow2_put(uint8_t to[PL_GOFLOW2_MAX], enum pl_flat_kind kind, const void *flow,
	bool reverse, const struct pl_goflow2_source *source)
{
	const bool more = kind == PL_FLAT_FLOW288;
	uint8_t body[PL_GOFLOW2_MAX];
	struct values v = { .numbers = { 0 } };
	struct pl_flow128 f;
	uint16_t obs_rev;
	uint8_t *at;
	size_t len;

	assert(more || kind == PL_FLAT_FLOW128);
	memcpy(&f, flow, sizeof(f));
	obs_rev = f.obs;
	if (more)
		memcpy(&obs_rev, (const uint8_t *)flow + offsetof(struct pl_flow288, obs_rev),
			sizeof(obs_rev));
	v.numbers[PACKETS] = reverse ? f.pkts_rev : f.pkts_fwd;
	if (v.numbers[PACKETS] == 0)
		return 0;
	v.numbers[BYTES] = reverse ? f.bytes_rev : f.bytes_fwd;
	v.numbers[TCP_FLAGS] = reverse ? f.flags_rev : f.flags_fwd;
	v.numbers[DOMAIN] = source->exporter;
	v.numbers[POINT] = (reverse ? obs_rev : f.obs) & PL_OBS_POINT_MASK;
	v.addresses[SRC_ADDR] = reverse ? &f.dst : &f.src;
	v.addresses[DST_ADDR] = reverse ? &f.src : &f.dst;
	v.addresses[SAMPLER] = source->has_sampler ? &source->sampler : NULL;
	take_both(&v, &f);
	take_ports(&v, &f, reverse);
	len = put_fields(body, &v);
	at = put_varint(to, len);
	memcpy(at, body, len);
	return (size_t)(at - to) + len;
}

void pl_goflow2_keep(void *flow, bool reverse)
{
	struct pl_flow128 f;

	memcpy(&f, flow, sizeof(f));
	if (reverse)
		f.pkts_fwd = 0;
	else
		f.pkts_rev = 0;
	memcpy(flow, &f, sizeof(f));
}

void pl_goflow2_schema(struct pl_buf *out)
{
	pl_buf_str(out,
		"// Flows as goflow2 has them: its message and the numbers of its fields; those that a\n"
		"// tap writes. A message of Kafka is one of these behind its length, a varint.\n"
		"syntax = \"proto3\";\n\npackage flowpb;\n\nmessage FlowMessage {\n");
	for (unsigned int i = 0; i < N_FIELDS; i++) {
		if (fields[i].help[0] != '\0')
			pl_buf_printf(out, "  // %s\n", fields[i].help);
		pl_buf_printf(
			out, "  %s %s = %u;\n", fields[i].type, fields[i].name, fields[i].number);
	}
	pl_buf_str(out, "}\n");
}
