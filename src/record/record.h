/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Decoded facts: struct pl_path, pl_hop, pl_event, generated from fields.def. 128 bytes each,
 * little-endian, naturally aligned, no padding. An optional field is valid only when its bit in
 * `present` is set and is zero otherwise.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

/* Forms of a value as text. */
enum pl_form {
	PL_FORM_U8,
	PL_FORM_U16,
	PL_FORM_U32,
	PL_FORM_U64,
	PL_FORM_S64,
	PL_FORM_ADDR,           /* "10.0.0.1", "fd00::1" */
	PL_FORM_HEX64,          /* 16 hexadecimal digits, as a string */
	PL_FORM_REPORT_VERSION, /* "0.5" "1.0" "2.0" */
	PL_FORM_INT_VERSION,    /* "0.5" "1.0" "2.1" */
	PL_FORM_DIALECT,        /* "spec" "intcollector" "geant" "noviflow" "host-int" "v0.4" */
	PL_FORM_MODE,           /* enum pl_mode */
	PL_FORM_CLOCK,          /* enum pl_clock_quality */
	PL_FORM_FLAGS,          /* object of booleans */
	PL_FORM_EVENT,          /* enum pl_event_kind */
	PL_FORM_PHASE,          /* enum pl_event_phase */
	PL_FORM_ROLE,           /* enum pl_burst_role */
	PL_FORM_QUANTITY,       /* enum pl_event_kind of the quantity */
	PL_FORM_UNIT,           /* enum pl_unit */
	PL_FORM_PRIMITIVE,      /* enum pl_primitive of memory/store.h: "append", … */
	PL_FORM_FLOW_END,       /* enum pl_flow_end of record/packet.h: "idle", … */
	PL_FORM_FLOW_ROLE,      /* enum pl_flow_role of record/packet.h: "client", … */
	PL_FORM_FLOW_ROLE_BY,   /* enum pl_flow_role_by, likewise: "syn", … */
	PL_FORM_MARK_METHOD,    /* enum pl_mark_method of record/packet.h: "step", … */
	PL_FORM_DROP_REASON,    /* enum pl_drop_reason of record/packet.h: "NO_SOCKET", … */
	PL_FORM_PRESENT,        /* never shown */
	PL_FORM_TEXT, /* terminated text in the record: of words that need no quotes, or of a row */
	PL_FORM_BYTES, /* struct pl_bytes32 in hexadecimal, as a string */
	PL_FORM_MAX,
};

/* True when a value of the form may be given as word or number: those of flat records. */
static inline bool pl_form_of_flat_words(unsigned int form)
{
	return form >= PL_FORM_FLOW_END && form <= PL_FORM_DROP_REASON;
}

enum pl_mode {
	PL_MODE_MD,
	PL_MODE_MX,
	PL_MODE_XD,
	PL_MODE_IOAM_TRACE,
	PL_MODE_IOAM_DEX,
	PL_MODE_IOAM_E2E,
	PL_MODE_IOAM_POT,
	PL_MODE_DROP_SUMMARY, /* Host-INT: packets missing between two hosts */
	PL_MODE_MAX,
};

enum pl_clock_quality {
	PL_CLOCK_OK,          /* not negative and below the plausibility limit */
	PL_CLOCK_SKEWED,      /* negative: the clocks differ by more than the delay; no value */
	PL_CLOCK_IMPLAUSIBLE, /* above the limit; no value */
	PL_CLOCK_MIXED,       /* the two nodes' timestamps differ in width or unit; no value */
	PL_CLOCK_MAX,
};

enum pl_event_kind {
#define PL_EVENT_KIND(id, name, help) PL_EVENT_##id,
#include "record/fields.def"
	PL_EVENT_KIND_MAX,
};

enum pl_event_phase { PL_PHASE_ONCE, PL_PHASE_BEGIN, PL_PHASE_END, PL_PHASE_MAX };

/* Role of a flow in a microburst. */
enum pl_burst_role { PL_ROLE_CULPRIT, PL_ROLE_VICTIM, PL_ROLE_MAX };

/* Unit of an event's values. */
enum pl_unit { PL_UNIT_BYTES, PL_UNIT_MAX };

const char *pl_mode_name(enum pl_mode m);             /* "md", "ioam-trace", … */
const char *pl_event_kind_name(enum pl_event_kind k); /* "path_change", "queue_depth", … */
const char *pl_event_kind_help(enum pl_event_kind k);

/* A terminated text, zeros behind it: letters, digits, '_', '-', '.', ':' and '/', so that it needs
 * no quotes anywhere. */
struct pl_text32 {
	char c[32];
};
struct pl_text40 {
	char c[40];
};
/* Characters of the longest text. */
#define PL_TEXT_TOLD 39
struct pl_text16 {
	char c[16];
};
/* True when a text may have the character. */
static inline bool pl_text_plain(char c)
{
	return c > ' ' && c <= '~' && c != '"' && c != '\\' && c != ',' && c != '=';
}
/* First n bytes of a value. */
#define PL_BYTES_TOLD 31
struct pl_bytes32 {
	uint8_t n, b[PL_BYTES_TOLD];
};

#define PL_MEMBER(off, id, type, form, presence, name, unit, help) type id;
#define PL_OFFSET_CHECK(st, off, id)                                                               \
	_Static_assert(offsetof(struct st, id) == (off), "offset of " #id " in " #st);

struct pl_path {
#define PL_PATH_FIELD PL_MEMBER
#include "record/fields.def"
};

struct pl_hop {
#define PL_HOP_FIELD PL_MEMBER
#include "record/fields.def"
};

struct pl_event {
#define PL_EVENT_FIELD PL_MEMBER
#include "record/fields.def"
};

struct pl_value {
#define PL_VALUE_FIELD PL_MEMBER
#include "record/fields.def"
};

#define PL_PATH_FIELD(off, id, ...)  PL_OFFSET_CHECK(pl_path, off, id)
#define PL_HOP_FIELD(off, id, ...)   PL_OFFSET_CHECK(pl_hop, off, id)
#define PL_EVENT_FIELD(off, id, ...) PL_OFFSET_CHECK(pl_event, off, id)
#define PL_VALUE_FIELD(off, id, ...) PL_OFFSET_CHECK(pl_value, off, id)
#include "record/fields.def"

_Static_assert(sizeof(struct pl_path) == 128, "records are 128 bytes");
_Static_assert(sizeof(struct pl_hop) == 128, "records are 128 bytes");
_Static_assert(sizeof(struct pl_event) == 128, "records are 128 bytes");
_Static_assert(sizeof(struct pl_value) == 128, "records are 128 bytes");
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "records are little-endian");

#define PL_RECORD_VERSION 1

/* Presence masks: PL_PATH_HAS_<id>, PL_HOP_HAS_<id>, PL_EVENT_HAS_<id>, PL_VALUE_HAS_<id>; 0 for
 * fields always there. */
enum {
#define PL_BIT(n) ((n) < 0 ? 0 : (int)(1u << ((n) < 0 ? 0 : (n))))
#define ALWAYS    -1
#define PL_PATH_FIELD(off, id, type, form, presence, name, unit, help)                             \
	PL_PATH_HAS_##id = PL_BIT(presence),
#define PL_PATH_ALIAS(off, type, form, presence, id, name, unit, help)                             \
	PL_PATH_HAS_##id = PL_BIT(presence),
#define PL_HOP_ALIAS(off, type, form, presence, id, name, unit, help)                              \
	PL_HOP_HAS_##id = PL_BIT(presence),
#define PL_HOP_FIELD(off, id, type, form, presence, name, unit, help)                              \
	PL_HOP_HAS_##id = PL_BIT(presence),
#define PL_EVENT_FIELD(off, id, type, form, presence, name, unit, help)                            \
	PL_EVENT_HAS_##id = PL_BIT(presence),
#define PL_EVENT_ALIAS(off, type, form, presence, id, name, unit, help)                            \
	PL_EVENT_HAS_##id = PL_BIT(presence),
#define PL_VALUE_ALIAS(off, type, form, presence, id, name, unit, help)                            \
	PL_VALUE_HAS_##id = PL_BIT(presence),
#define PL_VALUE_FIELD(off, id, type, form, presence, name, unit, help)                            \
	PL_VALUE_HAS_##id = PL_BIT(presence),
#include "record/fields.def"
#undef ALWAYS
};

/* Aliases, other meanings of a record's bytes: pl_event_set_<id>(event, value) stores the value and
 * its presence bit; likewise pl_path_set_<id> and pl_hop_set_<id>. */
#define PL_ALIAS_OF(kind, KIND, off, type, id)                                                     \
	static inline void pl_##kind##_set_##id(struct pl_##kind *r, type value)                   \
	{                                                                                          \
		__builtin_memcpy((char *)r + (off), &value, sizeof(value));                        \
		r->present |= PL_##KIND##_HAS_##id;                                                \
	}                                                                                          \
	static inline type pl_##kind##_get_##id(const struct pl_##kind *r)                         \
	{                                                                                          \
		type value;                                                                        \
		__builtin_memcpy(&value, (const char *)r + (off), sizeof(value));                  \
		return value;                                                                      \
	}
#define PL_PATH_ALIAS(off, type, form, presence, id, ...)  PL_ALIAS_OF(path, PATH, off, type, id)
#define PL_HOP_ALIAS(off, type, form, presence, id, ...)   PL_ALIAS_OF(hop, HOP, off, type, id)
#define PL_EVENT_ALIAS(off, type, form, presence, id, ...) PL_ALIAS_OF(event, EVENT, off, type, id)
#define PL_VALUE_ALIAS(off, type, form, presence, id, ...) PL_ALIAS_OF(value, VALUE, off, type, id)
#define PL_PATH_FIELD(...)
#define PL_HOP_FIELD(...)
#define PL_EVENT_FIELD(...)
#define PL_VALUE_FIELD(...)
#include "record/fields.def"

/* Source for which a path counts in tables that senders share: that of its exporter; unspecified
 * for packets that carry telemetry themselves, whose IOAM may be in the exporter's bytes. */
static inline struct pl_addr pl_path_source(const struct pl_path *path)
{
	if (__builtin_expect((path->present & PL_PATH_HAS_ioam_namespace) != 0, 0))
		return (struct pl_addr){ { 0 } };
	return pl_addr_source(&path->exporter);
}

enum {
#define PL_PATH_FLAG(bit, id, name, help) PL_FLAG_##id = 1 << (bit),
#include "record/fields.def"
};

/* Lists of fields as data, for text forms, filters and the manual. */
enum pl_record_kind {
	PL_KIND_PATH,
	PL_KIND_HOP,
	PL_KIND_EVENT,
	PL_KINDS_KEPT, /* a history has lists of the kinds before it */
	PL_KIND_VALUE = PL_KINDS_KEPT,
	PL_KIND_MAX
};

struct pl_field {
	const char *name; /* dotted; "" = not shown */
	const char *unit, *help;
	uint16_t offset;
	uint8_t form;       /* enum pl_form */
	uint32_t present;   /* mask in the record's `present`; 0 = always there */
	bool time;          /* time: always there, but left out of the forms when it is 0 */
	uint8_t text_bytes; /* bytes of a text in a record of record/packet.h */
};

/* Bytes of the field's number, word, flags or address in the record, or of a text in a record of
 * record/packet.h; 1 for other texts and bytes. */
uint8_t pl_field_width(const struct pl_field *field);

/* Fields of a kind, n of them, in the order of fields.def. */
const struct pl_field *pl_fields(enum pl_record_kind kind, size_t *ret_n);

/* Name of a kind: "path", "hop", "event", "value". */
const char *pl_record_kind_name(enum pl_record_kind kind);

/* Names of the bits of pl_path.flags; NULL behind the last. */
const char *pl_path_flag_name(unsigned int bit);
const char *pl_path_flag_help(unsigned int bit);

/* Word for a value of an enumerated form (REPORT_VERSION, INT_VERSION, DIALECT, MODE, CLOCK, EVENT,
 * PHASE); NULL when the form is not enumerated or has no such value. Versions and dialects have the
 * numbers of wire/ (a test in decode/, which includes both, compares them). */
const char *pl_form_word(enum pl_form form, unsigned int value);

struct pl_buf;
/* Writes the table of fields, for the manual: Markdown, or aligned plain text. */
void pl_fields_doc(struct pl_buf *out, bool markdown);

/*
 * A batch of paths with their hops, the unit between decoders and everything behind. The hops of
 * paths[i] are hops[first_hop[i]] … hop_count of them. The owner allocates once
 * (pl_record_batch_init) and drains it in `flush`, which a decoder calls when the next report might
 * not fit; pkt[i] is the index of the packet in the batch being decoded.
 */
struct pl_record_batch {
	struct pl_path *paths;
	uint32_t *first_hop;
	uint32_t *pkt;
	struct pl_hop *hops;
	uint32_t n_paths, n_hops;
	uint32_t cap_paths, cap_hops;
	void (*flush)(struct pl_record_batch *batch, void *arg); /* must empty the batch */
	void *flush_arg;
};

/* Makes a batch; cap_hops is at least 256, so that one report always fits an empty batch. Returns 0
 * or -ENOMEM. */
int pl_record_batch_init(struct pl_record_batch *batch, uint32_t cap_paths, uint32_t cap_hops);
void pl_record_batch_done(struct pl_record_batch *batch);

#define PL_BATCH_HOPS_MIN 256

static inline void pl_record_batch_clear(struct pl_record_batch *batch)
{
	batch->n_paths = 0;
	batch->n_hops = 0;
}
