/* SPDX-License-Identifier: BSD-2-Clause */
/* The columns of streams: fields of the record, and those derived from them. */
#include <stddef.h>
#include <string.h>

#include "lang/plan.h"
#include "mark/correlate.h"
#include "record/community_id.h"

/* Columns that are part of a field. The masks of TCP flags leave out the two bits of ECN, so that a
 * SYN with them (0xc2) is a SYN; PSH and URG too. */
struct derived {
	uint16_t kinds; /* bits of enum pl_flat_kind */
	const char *name;
	uint8_t type, width, shift;
	uint64_t mask, is, or_is;
	uint8_t offset[PL_FLAT_MAX];
};

_Static_assert(PL_FLAT_MAX <= 16, "there is a bit for each");
_Static_assert(PL_COMMUNITY_ID_MAX - 1 <= PL_TEXT_TOLD && PL_COMMUNITY_ID_MAX > sizeof(uint64_t),
	"as texts of records are");

#define PACKETS      (1u << PL_FLAT_PKT64 | 1u << PL_FLAT_PKT96 | 1u << PL_FLAT_DROP168)
#define DNS          (1u << PL_FLAT_DNS64)
#define FLOWS        (1u << PL_FLAT_FLOW128 | 1u << PL_FLAT_FLOW288)
#define LONGER_FLOWS (1u << PL_FLAT_FLOW288)
#define MARKS        (1u << PL_FLAT_MARK128)
#define SEGS         (1u << PL_FLAT_SEG192)
#define LINKS        (1u << PL_FLAT_LINK128)
#define SENT         (1u << PL_FLAT_SENT128)

#define OF_PACKET(id)                                                                              \
	[PL_FLAT_PKT64] = offsetof(struct pl_pkt64, id),                                           \
	[PL_FLAT_PKT96] = offsetof(struct pl_pkt96, id),                                           \
	[PL_FLAT_DROP168] = offsetof(struct pl_drop168, id)
#define OF_DNS(id) [PL_FLAT_DNS64] = offsetof(struct pl_dns64, id)
#define OF_FLOW(id)                                                                                \
	[PL_FLAT_FLOW128] = offsetof(struct pl_flow128, id), [PL_FLAT_FLOW288] = offsetof(         \
								     struct pl_flow288, id)
#define OF_MARK(id) [PL_FLAT_MARK128] = offsetof(struct pl_mark128, id)
#define OF_SEG(id)  [PL_FLAT_SEG192] = offsetof(struct pl_seg192, id)

/* Flags of TCP: proto and tcp_flags are read as one number. */
_Static_assert(offsetof(struct pl_pkt64, tcp_flags) == offsetof(struct pl_pkt64, proto) + 1, "");
#define TCP_FLAGS(name, mask, is)                                                                  \
	{                                                                                          \
		PACKETS, name, PL_QUERY_BOOL, 2, 0, 0xff | (mask) << 8, 6 | (is) << 8,             \
			6 | (is) << 8,                                                             \
		{                                                                                  \
			OF_PACKET(proto)                                                           \
		}                                                                                  \
	}
#define PROTO(name, is, or_is)                                                                     \
	{                                                                                          \
		PACKETS | FLOWS, name, PL_QUERY_BOOL, 1, 0, 0xff, is, or_is,                       \
		{                                                                                  \
			OF_PACKET(proto), OF_FLOW(proto)                                           \
		}                                                                                  \
	}
#define OBS(name, bit)                                                                             \
	{                                                                                          \
		PACKETS | FLOWS, name, PL_QUERY_BOOL, 2, 0, bit, bit, bit,                         \
		{                                                                                  \
			OF_PACKET(obs), OF_FLOW(obs)                                               \
		}                                                                                  \
	}
#define MARK(name, bit)                                                                            \
	{                                                                                          \
		MARKS, name, PL_QUERY_BOOL, 2, 0, bit, bit, bit,                                   \
		{                                                                                  \
			OF_MARK(mark_flags)                                                        \
		}                                                                                  \
	}
#define ALARM(name, id)                                                                            \
	{                                                                                          \
		SEGS, name, PL_QUERY_BOOL, 4, 0, PL_MARK_ALARM_##id, PL_MARK_ALARM_##id,           \
			PL_MARK_ALARM_##id,                                                        \
		{                                                                                  \
			OF_SEG(alarms)                                                             \
		}                                                                                  \
	}

static const struct derived derived[] = {
	{ PACKETS | DNS | FLOWS | MARKS | SEGS | LINKS | SENT, "ts", PL_QUERY_UNSIGNED, 8, 0,
		UINT64_MAX, 0, 0,
		{ OF_PACKET(ts_ns), OF_DNS(ts_ns), OF_FLOW(last_ts), OF_MARK(ts_ns),
			OF_SEG(ts_ns), [PL_FLAT_LINK128] = offsetof(struct pl_link128, ts_ns),
			[PL_FLAT_SENT128] = offsetof(struct pl_sent128, ts_ns) } },
	TCP_FLAGS("syn_only", 0x17, 0x02),
	TCP_FLAGS("syn_ack", 0x17, 0x12),
	TCP_FLAGS("ack_only", 0x17, 0x10),
	TCP_FLAGS("fin", 0x01, 0x01),
	TCP_FLAGS("syn", 0x02, 0x02),
	TCP_FLAGS("ack", 0x10, 0x10),
	TCP_FLAGS("psh", 0x08, 0x08),
	TCP_FLAGS("rst", 0x04, 0x04),
	PROTO("tcp", 6, 6),
	PROTO("udp", 17, 17),
	PROTO("icmp", 1, 58),
	{ PACKETS | FLOWS, "point", PL_QUERY_UNSIGNED, 2, 0, PL_OBS_POINT_MASK, 0, 0,
		{ OF_PACKET(obs), OF_FLOW(obs) } },
	{ 1u << PL_FLAT_PKT64 | 1u << PL_FLAT_PKT96 | FLOWS, "community_id", PL_QUERY_TEXT,
		PL_COMMUNITY_ID_MAX, 0, UINT64_MAX, 0, 0, { 0 } },
	OBS("is_fragment", PL_OBS_FRAGMENT),
	OBS("rule", PL_OBS_RULE),
	OBS("out", PL_OBS_OUT),
	OBS("truncated", PL_OBS_TRUNCATED),
	OBS("sampled", PL_OBS_SAMPLED),
	OBS("in_tunnel", PL_OBS_TUNNEL),
	{ LONGER_FLOWS, "further", PL_QUERY_BOOL, 2, 0, PL_FLOW_FURTHER, PL_FLOW_FURTHER,
		PL_FLOW_FURTHER, { [PL_FLAT_FLOW288] = offsetof(struct pl_flow288, flow_flags) } },
	{ LONGER_FLOWS, "continued", PL_QUERY_BOOL, 2, 0, PL_FLOW_CONTINUED, PL_FLOW_CONTINUED,
		PL_FLOW_CONTINUED,
		{ [PL_FLAT_FLOW288] = offsetof(struct pl_flow288, flow_flags) } },
	MARK("is_marker", PL_MARK_IS_MARKER),
	MARK("synced", PL_MARK_IS_SYNCED),
	MARK("partial", PL_MARK_IS_PARTIAL),
	MARK("no_room", PL_MARK_NO_ROOM),
	MARK("beyond_guard", PL_MARK_IS_BEYOND),
	MARK("clock_stepped", PL_MARK_IS_STEPPED),
	MARK("bit_in_use", PL_MARK_IN_USE),
	MARK("untimed", PL_MARK_UNTIMED),
	MARK("late_change", PL_MARK_LATE_CHANGE),
	ALARM("incomplete", MISSING),
	ALARM("clock_domain", CLOCK_DOMAIN),
	ALARM("settings", SETTINGS),
	ALARM("negative_loss", NEGATIVE),
	ALARM("beyond_guard", BEYOND),
	ALARM("pulses", PULSES),
	ALARM("clock_fault", CLOCK_FAULT),
	ALARM("partial", PARTIAL),
	ALARM("no_room", NO_ROOM),
	ALARM("clock_stepped", STEPPED),
	ALARM("clock_unsynced", UNSYNCED),
	ALARM("bit_in_use", IN_USE),
	ALARM("late_change", LATE_CHANGE),
	{ DNS, "response", PL_QUERY_BOOL, 2, 0, 0x8000, 0x8000, 0x8000, { OF_DNS(dns_flags) } },
	{ DNS, "rcode", PL_QUERY_UNSIGNED, 2, 12, 0xf, 0, 0, { OF_DNS(counts) } },
	{ DNS, "answers", PL_QUERY_UNSIGNED, 2, 6, 0x3f, 0, 0, { OF_DNS(counts) } },
	{ DNS, "authorities", PL_QUERY_UNSIGNED, 2, 0, 0x3f, 0, 0, { OF_DNS(counts) } },
};

static struct column of_field(const struct pl_flat *flat, const struct pl_field *field)
{
	return (struct column){
		.name = field->name,
		.unit = field->unit,
		.offset = field->offset,
		.width = pl_field_width(field),
		.type = field->form == PL_FORM_ADDR   ? PL_QUERY_ADDR
			: field->form == PL_FORM_TEXT ? PL_QUERY_TEXT
			: field->form == PL_FORM_S64  ? PL_QUERY_SIGNED
						      : PL_QUERY_UNSIGNED,
		.absent = -1,
		.mask = UINT64_MAX,
		.form = pl_form_of_flat_words(field->form) ? field->form : PL_FORM_U8,
		.present = field->present,
		.present_at = flat->present_at,
	};
}

bool pl_query_flat_schema(struct lexer *lx, unsigned int kind, struct schema *ret)
{
	const size_t n_derived = sizeof(derived) / sizeof(derived[0]);
	const struct pl_flat *flat = pl_flat((enum pl_flat_kind)kind);

	ret->size = flat->size;
	ret->columns = pl_query_new(lx, (flat->n_fields + n_derived) * sizeof(*ret->columns));
	if (ret->columns == NULL)
		return false;
	for (uint32_t i = 0; i < flat->n_fields; i++)
		ret->columns[ret->n++] = of_field(flat, &flat->fields[i]);
	ret->n_plain = ret->n;
	for (size_t i = 0; i < n_derived; i++) {
		const struct derived *d = &derived[i];

		if ((d->kinds >> kind & 1) == 0)
			continue;
		ret->columns[ret->n++] = (struct column){
			.name = d->name,
			.unit = strcmp(d->name, "ts") == 0 ? "ns" : "",
			.offset = d->offset[kind],
			.width = d->width,
			.type = d->type,
			.absent = -1,
			.shift = d->shift,
			.mask = d->mask,
			.is = d->is,
			.or_is = d->or_is,
			.id_of = d->type == PL_QUERY_TEXT ? (uint8_t)(kind + 1) : 0,
		};
	}
	return true;
}

bool pl_query_row_schema(struct lexer *lx, uint32_t n, struct schema *ret)
{
	ret->columns = pl_query_new(lx, (n + 1) * sizeof(*ret->columns));
	if (ret->columns == NULL)
		return false;
	ret->n = ret->n_plain = n;
	ret->size = ROW_HEAD + n * CELL_BYTES;
	for (uint32_t i = 0; i < n; i++) {
		ret->columns[i] = (struct column){
			.unit = "",
			.offset = ROW_HEAD + i * CELL_BYTES,
			.absent = i < PL_QUERY_COLUMNS_MAX ? (int8_t)i : -1,
			.mask = UINT64_MAX,
			.is = 1,
			.or_is = 1,
		};
	}
	return true;
}

/* The name of a column, or its source, a point and the name; both may have points. */
static bool has_name(const struct column *column, const char *name)
{
	const size_t n = column->source != NULL ? strlen(column->source) : 0;

	if (!column->qualified && strcmp(column->name, name) == 0)
		return true;
	return column->source != NULL && strncmp(column->source, name, n) == 0 && name[n] == '.' &&
	       strcmp(column->name, name + n + 1) == 0;
}

const struct column *pl_query_find_column(const struct schema *schema, const char *name, int *ret_n)
{
	const struct column *found = NULL;
	int n = 0;

	for (uint32_t i = 0; i < schema->n; i++) {
		if (has_name(&schema->columns[i], name)) {
			n++;
			found = &schema->columns[i];
		}
	}
	if (ret_n != NULL)
		*ret_n = n;
	return found;
}

bool pl_query_is_time(const struct column *column)
{
	const size_t n = strlen(column->name);

	if (column->time || column->unit == NULL || strcmp(column->unit, "ns") != 0)
		return column->time;
	return (n >= 2 && strcmp(column->name + n - 2, "ts") == 0) ||
	       (n >= 5 && strcmp(column->name + n - 5, "ts_ns") == 0);
}
