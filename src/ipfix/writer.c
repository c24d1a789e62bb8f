/* SPDX-License-Identifier: BSD-2-Clause */
/* Flows into the messages of IPFIX. */
#include "ipfix/writer.h"

#include <errno.h>
#include <fixbuf/public.h>
#include <stdlib.h>
#include <string.h>

#include "ipfix/message.h"
#include "record/icmp.h"

#define DIRECTION_BYTES 1
#define OPTIONS_BYTES   32 /* most bytes of the template of options: 4 elements */

enum {
	ID_WHOLE = 256, /* internal: all values of a record, in the order of struct record */
	ID_V4,
	ID_V4_ICMP,
	ID_V6,
	ID_V6_ICMP,
	ID_ACCOUNT,
	ID_DIRECTED, /* the four templates again, with flowDirection */
	ID_END = ID_DIRECTED + ID_ACCOUNT - ID_V4,
};

/* Flags of elements: which templates have them. All: no flag. */
enum {
	HAS_V4 = 1,
	HAS_V6 = 2,
	HAS_PORTS = 4,
	HAS_ICMP4 = 8,
	HAS_ICMP6 = 16,
	HAS_MS = 32,
	HAS_US = 64,
	HAS_NS = 128,
	HAS_MORE = 256,
	HAS_BOTH = 512, /* directions */
	HAS_PADDING = 1024,
	HAS_DIRECTION = 2048,
};

/* Round-trip times as in a record of a flow: four numbers of each method, towards dst and towards
 * src. */
#define RTT_NUMBERS 16
#define RTT_BYTES   (RTT_NUMBERS * sizeof(uint32_t))
#define RTT_AT      offsetof(struct pl_flow288, rtt_seq_dst_min_us)
_Static_assert(RTT_AT + RTT_BYTES == offsetof(struct pl_flow288, obs_rev), "");
_Static_assert(RTT_AT + RTT_BYTES / 2 == offsetof(struct pl_flow288, rtt_seq_src_min_us), "");

/* Record in memory, in host order; no bytes between members. */
struct record {
	uint64_t start, end;
	uint64_t bytes, packets, reverse_bytes, reverse_packets;
	uint64_t unseen_ns;
	uint8_t src6[16], dst6[16];
	uint32_t src4, dst4;
	uint32_t handshake_server_us, handshake_client_us, rtt_min_us, rtt_mean_us;
	uint32_t retransmitted, reverse_retransmitted, out_of_order, reverse_out_of_order;
	uint32_t gap_max_us, gap_mean_us;
	uint32_t dup_acks, reverse_dup_acks, zero_windows, reverse_zero_windows;
	uint32_t rtt[RTT_NUMBERS];
	uint32_t point;
	uint16_t sport, dport, icmp4, icmp6;
	uint16_t vlan;
	uint8_t tcp_flags, reverse_tcp_flags, proto, reason, direction;
	uint8_t role, role_by, flow_flags, egress;
	uint8_t padding[5];
};
_Static_assert(sizeof(struct record) == 248, "no holes: with the end's padding to 8 bytes");

struct account {
	uint32_t process;
	uint64_t flows, packets, bytes;
} __attribute__((packed));

struct pl_ipfix {
	struct pl_ipfix_options o;
	uint32_t record_bytes[ID_END - ID_WHOLE];
	uint64_t mended;
	struct pl_ipfix_message m;
};

static fbInfoElementSpec_t elements[] = {
	{ (char *)"flowStartMilliseconds", 8, HAS_MS },
	{ (char *)"flowEndMilliseconds", 8, HAS_MS },
	{ (char *)"flowStartMicroseconds", 8, HAS_US },
	{ (char *)"flowEndMicroseconds", 8, HAS_US },
	{ (char *)"flowStartNanoseconds", 8, HAS_NS },
	{ (char *)"flowEndNanoseconds", 8, HAS_NS },
	{ (char *)"octetDeltaCount", 8, 0 },
	{ (char *)"packetDeltaCount", 8, 0 },
	{ (char *)"reverseOctetDeltaCount", 8, HAS_BOTH },
	{ (char *)"reversePacketDeltaCount", 8, HAS_BOTH },
	{ (char *)"pathlineUnseenNanoseconds", 8, HAS_MORE },
	{ (char *)"sourceIPv6Address", 16, HAS_V6 },
	{ (char *)"destinationIPv6Address", 16, HAS_V6 },
	{ (char *)"sourceIPv4Address", 4, HAS_V4 },
	{ (char *)"destinationIPv4Address", 4, HAS_V4 },
	{ (char *)"pathlineServerHandshakeMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineClientHandshakeMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineRttMinimumMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineRttMeanMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineRetransmittedPackets", 4, HAS_MORE },
	{ (char *)"pathlineReverseRetransmittedPackets", 4, HAS_MORE | HAS_BOTH },
	{ (char *)"pathlineOutOfOrderPackets", 4, HAS_MORE },
	{ (char *)"pathlineReverseOutOfOrderPackets", 4, HAS_MORE | HAS_BOTH },
	{ (char *)"pathlineGapMaximumMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineGapMeanMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineDuplicateAcks", 4, HAS_MORE },
	{ (char *)"pathlineReverseDuplicateAcks", 4, HAS_MORE | HAS_BOTH },
	{ (char *)"pathlineZeroWindows", 4, HAS_MORE },
	{ (char *)"pathlineReverseZeroWindows", 4, HAS_MORE | HAS_BOTH },
	{ (char *)"pathlineDestinationRttSequenceMinimumMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineDestinationRttSequenceMeanMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineDestinationRttSequenceCount", 4, HAS_MORE },
	{ (char *)"pathlineDestinationRttSequenceMissedCount", 4, HAS_MORE },
	{ (char *)"pathlineDestinationRttTimestampMinimumMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineDestinationRttTimestampMeanMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineDestinationRttTimestampCount", 4, HAS_MORE },
	{ (char *)"pathlineDestinationRttTimestampMissedCount", 4, HAS_MORE },
	{ (char *)"pathlineSourceRttSequenceMinimumMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineSourceRttSequenceMeanMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineSourceRttSequenceCount", 4, HAS_MORE },
	{ (char *)"pathlineSourceRttSequenceMissedCount", 4, HAS_MORE },
	{ (char *)"pathlineSourceRttTimestampMinimumMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineSourceRttTimestampMeanMicroseconds", 4, HAS_MORE },
	{ (char *)"pathlineSourceRttTimestampCount", 4, HAS_MORE },
	{ (char *)"pathlineSourceRttTimestampMissedCount", 4, HAS_MORE },
	{ (char *)"observationPointId", 4, 0 },
	{ (char *)"sourceTransportPort", 2, HAS_PORTS },
	{ (char *)"destinationTransportPort", 2, HAS_PORTS },
	{ (char *)"icmpTypeCodeIPv4", 2, HAS_ICMP4 },
	{ (char *)"icmpTypeCodeIPv6", 2, HAS_ICMP6 },
	{ (char *)"vlanId", 2, 0 },
	/* One byte of two (RFC 7011 6.2), as collectors expect. */
	{ (char *)"tcpControlBits", 1, 0 },
	{ (char *)"reverseTcpControlBits", 1, HAS_BOTH },
	{ (char *)"protocolIdentifier", 1, 0 },
	{ (char *)"flowEndReason", 1, 0 },
	{ (char *)"biflowDirection", 1, HAS_BOTH },
	{ (char *)"pathlineRole", 1, HAS_MORE },
	{ (char *)"pathlineRoleBy", 1, HAS_MORE },
	{ (char *)"pathlineFlowFlags", 1, HAS_MORE },
	{ (char *)"flowDirection", 1, HAS_DIRECTION },
	{ (char *)"paddingOctets", 5, HAS_PADDING },
	FB_IESPEC_NULL,
};

static fbInfoElementSpec_t account_elements[] = {
	{ (char *)"exportingProcessId", 4, 0 },
	{ (char *)"notSentFlowTotalCount", 8, 0 },
	{ (char *)"notSentPacketTotalCount", 8, 0 },
	{ (char *)"notSentOctetTotalCount", 8, 0 },
	FB_IESPEC_NULL,
};

/* Elements under the private enterprise number. */
static const struct {
	const char *name;
	uint16_t id;
	uint8_t bytes;
} own_elements[] = {
#define PL_IPFIX_FLOW(id, bytes, name, help) { name, id, bytes },
#include "ipfix/flows.def"
#undef PL_IPFIX_FLOW
};

static void add_own_elements(struct pl_ipfix *x)
{
	for (size_t i = 0; i < sizeof(own_elements) / sizeof(own_elements[0]); i++)
		pl_ipfix_own_element(&x->m, x->o.pen, own_elements[i].name, own_elements[i].id,
			own_elements[i].bytes > sizeof(uint32_t) ? FB_UINT_64 : FB_UINT_32);
}

static void add_template(struct pl_ipfix *x, uint16_t id, uint32_t flags)
{
	x->record_bytes[id - ID_WHOLE] =
		pl_ipfix_template(&x->m, elements, id, flags, id == ID_WHOLE, 0, 0);
}

/* Templates of flows, from `first` on. */
static void add_templates(struct pl_ipfix *x, unsigned int first, uint32_t each)
{
	static const uint32_t families[] = { HAS_V4 | HAS_PORTS, HAS_V4 | HAS_ICMP4,
		HAS_V6 | HAS_PORTS, HAS_V6 | HAS_ICMP6 };

	for (unsigned int i = 0; i < ID_ACCOUNT - ID_V4; i++)
		add_template(x, (uint16_t)(first + i), each | families[i]);
}

static void make_session(struct pl_ipfix *x)
{
	static const uint32_t times[] = { HAS_MS, HAS_US, HAS_NS };
	const uint32_t each =
		times[x->o.time] | (x->o.pen != 0 ? HAS_MORE : 0) | (x->o.biflow ? HAS_BOTH : 0);

	x->m.sequence = 0;
	pl_ipfix_session(&x->m);
	add_template(x, ID_WHOLE,
		times[x->o.time] | HAS_V4 | HAS_V6 | HAS_PORTS | HAS_ICMP4 | HAS_ICMP6 | HAS_MORE |
			HAS_BOTH | HAS_PADDING | HAS_DIRECTION);
	add_templates(x, ID_V4, each);
	if (x->o.directed)
		add_templates(x, ID_DIRECTED, each | HAS_DIRECTION);
	x->record_bytes[ID_ACCOUNT - ID_WHOLE] =
		pl_ipfix_template(&x->m, account_elements, ID_ACCOUNT, 0, true, 1, 0);
	(void)pl_ipfix_template(&x->m, account_elements, ID_ACCOUNT, 0, false, 1, 0);
	pl_ipfix_open(&x->m);
}

int pl_ipfix_new(struct pl_ipfix **ret, const struct pl_ipfix_options *options)
{
	struct pl_ipfix *x = calloc(1, sizeof(*x));

	if (x == NULL)
		return -ENOMEM;
	x->o = *options;
	x->m.domain = options->domain;
	x->m.send = options->send;
	x->m.arg = options->arg;
	add_own_elements(x);
	make_session(x);
	*ret = x;
	return 0;
}

void pl_ipfix_free(struct pl_ipfix *x)
{
	if (x == NULL)
		return;
	pl_ipfix_message_done(&x->m);
	free(x);
}

void pl_ipfix_flush(struct pl_ipfix *x, uint32_t export_s)
{
	pl_ipfix_send(&x->m, export_s);
}

void pl_ipfix_account(struct pl_ipfix *x, const struct pl_ipfix_sum *lost, uint32_t export_s)
{
	struct account account = {
		.process = 1, .flows = lost->records, .packets = lost->packets, .bytes = lost->bytes
	};

	x->m.used += x->record_bytes[ID_ACCOUNT - ID_WHOLE];
	pl_ipfix_append(&x->m, ID_ACCOUNT, ID_ACCOUNT, &account, sizeof(account), export_s);
}

void pl_ipfix_templates(struct pl_ipfix *x, const struct pl_ipfix_sum *lost, uint32_t export_s)
{
	pl_ipfix_flush(x, export_s);
	/* The template of options comes last: libfixbuf has no other template behind it in a
	 * message. */
	for (unsigned int i = 0; x->o.directed && i < ID_ACCOUNT - ID_V4; i++)
		pl_ipfix_put_template(&x->m, (uint16_t)(ID_DIRECTED + i), export_s);
	for (unsigned int id = ID_V4; id <= ID_ACCOUNT; id++)
		pl_ipfix_put_template(&x->m, (uint16_t)id, export_s);
	x->m.used += OPTIONS_BYTES;
	pl_ipfix_account(x, lost, export_s);
}

void pl_ipfix_begin(struct pl_ipfix *x, const struct pl_ipfix_sum *lost, uint32_t export_s)
{
	make_session(x);
	pl_ipfix_templates(x, lost, export_s);
}

/* ---- flows ---- */

/* Value of flowEndReason (RFC 5102, element 136). */
static uint8_t reason_of(uint8_t end)
{
	static const uint8_t reasons[] = {
		[PL_FLOW_END_IDLE] = 1,     /* idle timeout */
		[PL_FLOW_END_ACTIVE] = 2,   /* active timeout */
		[PL_FLOW_END_FINISHED] = 3, /* end of flow detected */
		[PL_FLOW_END_EVICTED] = 5,  /* lack of resources */
		[PL_FLOW_END_SHUTDOWN] = 4, /* forced end */
	};

	return end < sizeof(reasons) ? reasons[end] : 0;
}

/* Value of biflowDirection (RFC 5103 6.3). */
static uint8_t direction_of(uint8_t role)
{
	return role == PL_FLOW_ROLE_CLIENT   ? 1  /* the source is the initiator */
	       : role == PL_FLOW_ROLE_SERVER ? 2  /* the destination is the initiator */
					     : 0; /* arbitrary */
}

/* The type of ICMP messages of the other direction: that which answers, else the same. */
static uint16_t answer_of(const struct pl_flow288 *f)
{
	const int answer = pl_icmp_answer(f->proto, f->sport);

	return answer != PL_ICMP_NO_ANSWER ? (uint16_t)answer : f->sport;
}

/* Reverses a flow: addresses, ports, counts. told: the record says where the other direction was
 * seen, as records of taps on interfaces do; other flow128 records do not. */
static struct pl_flow288 reversed(const struct pl_flow288 *f, bool icmp, bool told)
{
	struct pl_flow288 r = *f;

	r.src = f->dst;
	r.dst = f->src;
	r.sport = icmp ? answer_of(f) : f->dport;
	r.dport = icmp ? f->dport : f->sport;
	r.bytes_fwd = f->bytes_rev;
	r.pkts_fwd = f->pkts_rev;
	r.flags_fwd = f->flags_rev;
	r.obs = told || f->obs_rev != 0 ? f->obs_rev : f->obs;
	r.retrans_fwd = f->retrans_rev;
	r.ooo_fwd = f->ooo_rev;
	r.dup_acks_fwd = f->dup_acks_rev;
	r.zero_win_fwd = f->zero_win_rev;
	r.role = f->role == PL_FLOW_ROLE_CLIENT   ? PL_FLOW_ROLE_SERVER
		 : f->role == PL_FLOW_ROLE_SERVER ? PL_FLOW_ROLE_CLIENT
						  : f->role;
	memcpy((uint8_t *)&r + RTT_AT, (const uint8_t *)f + RTT_AT + RTT_BYTES / 2, RTT_BYTES / 2);
	memcpy((uint8_t *)&r + RTT_AT + RTT_BYTES / 2, (const uint8_t *)f + RTT_AT, RTT_BYTES / 2);
	return r;
}

static void fill(const struct pl_ipfix *x, struct record *r, const struct pl_flow288 *f)
{
	const uint16_t icmp = (uint16_t)(f->sport << 8 | (f->dport & 0xff));

	*r = (struct record){ .end = pl_ipfix_time(x->o.time, f->last_ts),
		.bytes = f->bytes_fwd,
		.packets = f->pkts_fwd,
		.reverse_bytes = f->bytes_rev,
		.reverse_packets = f->pkts_rev,
		.src4 = pl_ipfix_v4(&f->src),
		.dst4 = pl_ipfix_v4(&f->dst),
		.handshake_server_us = f->hs_external_us,
		.handshake_client_us = f->hs_internal_us,
		.rtt_min_us = f->rtt_min_us,
		.rtt_mean_us = f->rtt_avg_us,
		.retransmitted = f->retrans_fwd,
		.reverse_retransmitted = f->retrans_rev,
		.out_of_order = f->ooo_fwd,
		.reverse_out_of_order = f->ooo_rev,
		.gap_max_us = f->max_gap_us,
		.gap_mean_us = f->iat_mean_us,
		.dup_acks = f->dup_acks_fwd,
		.reverse_dup_acks = f->dup_acks_rev,
		.zero_windows = f->zero_win_fwd,
		.reverse_zero_windows = f->zero_win_rev,
		.point = f->obs & PL_OBS_POINT_MASK,
		.sport = f->sport,
		.dport = f->dport,
		.icmp4 = icmp,
		.icmp6 = icmp,
		.tcp_flags = f->flags_fwd,
		.reverse_tcp_flags = f->flags_rev,
		.vlan = f->vlan,
		.proto = f->proto,
		.reason = reason_of(f->end_reason),
		.direction = direction_of(f->role),
		.role = f->role,
		.role_by = f->role_by,
		.flow_flags = (uint8_t)f->flow_flags,
		.unseen_ns = f->unseen_ns,
		.egress = (f->obs & PL_OBS_OUT) != 0 };
	r->start = f->first_ts <= f->last_ts ? pl_ipfix_time(x->o.time, f->first_ts) : r->end;
	memcpy(r->rtt, (const uint8_t *)f + RTT_AT, RTT_BYTES);
	memcpy(r->src6, f->src.b, sizeof(r->src6));
	memcpy(r->dst6, f->dst.b, sizeof(r->dst6));
}

static uint16_t template_of(const struct pl_flow288 *f)
{
	const bool v4 = pl_addr_is_v4(&f->src) && pl_addr_is_v4(&f->dst);
	const bool icmp = f->proto == (v4 ? 1 : 58);

	return v4 ? (icmp ? ID_V4_ICMP : ID_V4) : (icmp ? ID_V6_ICMP : ID_V6);
}

/* Template with the direction of the first packet at the place that counts. */
static uint16_t directed(uint16_t template)
{
	return (uint16_t)(template - ID_V4 + ID_DIRECTED);
}

/* Data records of a flow: of its forward direction, which stands for both in a biflow, and of the
 * other one. A further record of a flow may have packets of the other one alone. */
static bool has_back(const struct pl_ipfix *x, const struct pl_flow288 *f)
{
	return !x->o.biflow && f->pkts_rev > 0;
}

static bool has_there(const struct pl_ipfix *x, const struct pl_flow288 *f)
{
	return f->pkts_fwd > 0 || !has_back(x, f);
}

struct pl_ipfix_sum pl_ipfix_of(const struct pl_ipfix *x, const struct pl_flow288 *flow)
{
	return (struct pl_ipfix_sum){ .records = (uint64_t)has_there(x, flow) + has_back(x, flow),
		.packets = (uint64_t)flow->pkts_fwd + flow->pkts_rev,
		.bytes = flow->bytes_fwd + flow->bytes_rev };
}

void pl_ipfix_flow(struct pl_ipfix *x, const struct pl_flow288 *flow, uint32_t export_s)
{
	const uint16_t template = template_of(flow);
	const uint16_t own = x->o.directed ? directed(template) : template;
	const bool there = has_there(x, flow), back_too = has_back(x, flow);
	const uint32_t bytes = (x->record_bytes[template - ID_WHOLE] + DIRECTION_BYTES) *
			       ((uint32_t)there + back_too);
	struct record r;

	/* A flow goes into one message. */
	if (x->m.used + bytes > sizeof(x->m.bytes))
		pl_ipfix_flush(x, export_s);
	x->m.used += bytes;
	if (there) {
		fill(x, &r, flow);
		pl_ipfix_append(&x->m, ID_WHOLE, own, &r, sizeof(r), export_s);
	}
	if (back_too) {
		const struct pl_flow288 back = reversed(
			flow, template == ID_V4_ICMP || template == ID_V6_ICMP, x->o.directed);

		fill(x, &r, &back);
		pl_ipfix_append(&x->m, ID_WHOLE, own, &r, sizeof(r), export_s);
	}
	x->mended += flow->first_ts > flow->last_ts;
	x->m.entries++;
}

uint64_t pl_ipfix_mended(const struct pl_ipfix *x)
{
	return x->mended;
}

uint32_t pl_ipfix_waiting(const struct pl_ipfix *x)
{
	return x->m.entries;
}
