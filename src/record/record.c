/* SPDX-License-Identifier: BSD-2-Clause */
/* Names, widths and tables of fields, kinds and modes, from fields.def. */
#include "record/record.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ALWAYS -1

/* Makes a field's row. when: the field is the kind's ts_ns. */
#define FIELD(at, f, has, n, u, h, when)                                                           \
	{ .name = (n),                                                                             \
		.unit = (u),                                                                       \
		.help = (h),                                                                       \
		.offset = (at),                                                                    \
		.form = (f),                                                                       \
		.present = (has),                                                                  \
		.time = (at) == (when) && (has) == 0 },

static const struct pl_field path_fields[] = {
#define PL_PATH_FIELD(off, id, type, f, presence, n, u, h)                                         \
	FIELD(off, PL_FORM_##f, PL_PATH_HAS_##id, n, u, h, offsetof(struct pl_path, ts_ns))
#define PL_PATH_ALIAS(off, type, f, presence, id, n, u, h)                                         \
	FIELD(off, PL_FORM_##f, PL_PATH_HAS_##id, n, u, h, offsetof(struct pl_path, ts_ns))
#include "record/fields.def"
};

static const struct pl_field hop_fields[] = {
#define PL_HOP_FIELD(off, id, type, f, presence, n, u, h)                                          \
	FIELD(off, PL_FORM_##f, PL_HOP_HAS_##id, n, u, h, offsetof(struct pl_hop, ts_ns))
#define PL_HOP_ALIAS(off, type, f, presence, id, n, u, h)                                          \
	FIELD(off, PL_FORM_##f, PL_HOP_HAS_##id, n, u, h, offsetof(struct pl_hop, ts_ns))
#include "record/fields.def"
};

static const struct pl_field event_fields[] = {
#define PL_EVENT_FIELD(off, id, type, f, presence, n, u, h)                                        \
	FIELD(off, PL_FORM_##f, PL_EVENT_HAS_##id, n, u, h, offsetof(struct pl_event, ts_ns))
#define PL_EVENT_ALIAS(off, type, f, presence, id, n, u, h)                                        \
	FIELD(off, PL_FORM_##f, PL_EVENT_HAS_##id, n, u, h, offsetof(struct pl_event, ts_ns))
#include "record/fields.def"
};

static const struct pl_field value_fields[] = {
#define PL_VALUE_FIELD(off, id, type, f, presence, n, u, h)                                        \
	FIELD(off, PL_FORM_##f, PL_VALUE_HAS_##id, n, u, h, offsetof(struct pl_value, ts_ns))
#define PL_VALUE_ALIAS(off, type, f, presence, id, n, u, h)                                        \
	FIELD(off, PL_FORM_##f, PL_VALUE_HAS_##id, n, u, h, offsetof(struct pl_value, ts_ns))
#include "record/fields.def"
};

#undef FIELD

static const struct {
	const char *name, *help;
} path_flags[] = {
#define PL_PATH_FLAG(bit, id, n, h) [bit] = { (n), (h) },
#include "record/fields.def"
};

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const kind_names[PL_KIND_MAX] = { "path", "hop", "event", "value" };
static const char *const report_versions[] = { "0.5", "1.0", "2.0" };
static const char *const int_versions[] = { "0.5", "1.0", "2.1" };
static const char *const dialects[] = { "spec", "intcollector", "geant", "noviflow", "host-int",
	"v0.4" };
static const char *const modes[PL_MODE_MAX] = { "md", "mx", "xd", "ioam-trace", "ioam-dex",
	"ioam-e2e", "ioam-pot", "drop-summary" };
static const char *const clocks[PL_CLOCK_MAX] = { "ok", "skewed", "implausible", "mixed" };
static const char *const events[PL_EVENT_KIND_MAX] = {
#define PL_EVENT_KIND(id, name, help) name,
#include "record/fields.def"
};
static const char *const event_helps[PL_EVENT_KIND_MAX] = {
#define PL_EVENT_KIND(id, name, help) help,
#include "record/fields.def"
};
/* Names by the numbers of memory/store.h. */
static const char *const primitives[] = { "none", "key-write", "append", "counters", "postcards",
	"sketch" };
static const char *const roles[PL_ROLE_MAX] = { "culprit", "victim" };
/* Names by the numbers of fields.def. */
static const char *const flow_ends[] = {
#define PL_FLOW_END_REASON(number, id, name, help) [number] = (name),
#include "record/fields.def"
};
static const char *const flow_roles[] = {
#define PL_FLOW_ROLE(number, id, name, help) [number] = (name),
#include "record/fields.def"
};
static const char *const flow_roles_by[] = {
#define PL_FLOW_ROLE_BY(number, id, name, help) [number] = (name),
#include "record/fields.def"
};
static const char *const mark_methods[] = {
#define PL_MARK_METHOD(number, id, name, help) [number] = (name),
#include "record/fields.def"
};
static const char *const drop_reasons[] = {
#define PL_DROP_REASON(number, name) [number] = #name,
#include "record/drop_reasons.def"
#undef PL_DROP_REASON
};
static const char *const value_units[PL_UNIT_MAX] = { "bytes" };
static const char *const phases[PL_PHASE_MAX] = { "once", "begin", "end" };

static const struct {
	const char *const *words;
	unsigned int n;
} vocabularies[PL_FORM_MAX] = {
	[PL_FORM_REPORT_VERSION] = { report_versions, COUNT(report_versions) },
	[PL_FORM_INT_VERSION] = { int_versions, COUNT(int_versions) },
	[PL_FORM_DIALECT] = { dialects, COUNT(dialects) },
	[PL_FORM_MODE] = { modes, COUNT(modes) },
	[PL_FORM_CLOCK] = { clocks, COUNT(clocks) },
	[PL_FORM_EVENT] = { events, COUNT(events) },
	[PL_FORM_PHASE] = { phases, COUNT(phases) },
	[PL_FORM_ROLE] = { roles, COUNT(roles) },
	[PL_FORM_QUANTITY] = { events, COUNT(events) },
	[PL_FORM_UNIT] = { value_units, COUNT(value_units) },
	[PL_FORM_FLOW_END] = { flow_ends, COUNT(flow_ends) },
	[PL_FORM_FLOW_ROLE] = { flow_roles, COUNT(flow_roles) },
	[PL_FORM_FLOW_ROLE_BY] = { flow_roles_by, COUNT(flow_roles_by) },
	[PL_FORM_MARK_METHOD] = { mark_methods, COUNT(mark_methods) },
	[PL_FORM_DROP_REASON] = { drop_reasons, COUNT(drop_reasons) },
	[PL_FORM_PRIMITIVE] = { primitives, COUNT(primitives) },
};

const char *pl_form_word(enum pl_form form, unsigned int value)
{
	if ((unsigned int)form >= PL_FORM_MAX || value >= vocabularies[form].n)
		return NULL;
	return vocabularies[form].words[value];
}

const char *pl_mode_name(enum pl_mode m)
{
	return pl_form_word(PL_FORM_MODE, m);
}

const char *pl_event_kind_name(enum pl_event_kind k)
{
	return pl_form_word(PL_FORM_EVENT, k);
}

const char *pl_event_kind_help(enum pl_event_kind k)
{
	return (unsigned int)k < PL_EVENT_KIND_MAX ? event_helps[k] : NULL;
}

uint8_t pl_field_width(const struct pl_field *field)
{
	switch (field->form) {
	case PL_FORM_U16:
	case PL_FORM_FLAGS:
	case PL_FORM_DROP_REASON:
		return 2;
	case PL_FORM_U32:
	case PL_FORM_PRESENT:
		return 4;
	case PL_FORM_U64:
	case PL_FORM_S64:
	case PL_FORM_HEX64:
		return 8;
	case PL_FORM_ADDR:
		return 16;
	default:
		return field->text_bytes != 0 ? field->text_bytes
					      : 1; /* numbers and words of a byte */
	}
}

const struct pl_field *pl_fields(enum pl_record_kind kind, size_t *ret_n)
{
	switch (kind) {
	case PL_KIND_PATH:
		*ret_n = COUNT(path_fields);
		return path_fields;
	case PL_KIND_HOP:
		*ret_n = COUNT(hop_fields);
		return hop_fields;
	case PL_KIND_EVENT:
		*ret_n = COUNT(event_fields);
		return event_fields;
	case PL_KIND_VALUE:
		*ret_n = COUNT(value_fields);
		return value_fields;
	case PL_KIND_MAX:
		break;
	}
	assert(false && "unknown kind of record");
	*ret_n = 0;
	return NULL;
}

const char *pl_record_kind_name(enum pl_record_kind kind)
{
	return (unsigned int)kind < PL_KIND_MAX ? kind_names[kind] : NULL;
}

const char *pl_path_flag_name(unsigned int bit)
{
	return bit < COUNT(path_flags) ? path_flags[bit].name : NULL;
}

const char *pl_path_flag_help(unsigned int bit)
{
	return bit < COUNT(path_flags) ? path_flags[bit].help : NULL;
}

int pl_record_batch_init(struct pl_record_batch *batch, uint32_t cap_paths, uint32_t cap_hops)
{
	assert(cap_paths > 0 && cap_hops >= PL_BATCH_HOPS_MIN);
	memset(batch, 0, sizeof(*batch));
	/* A record is two cache lines; aligned, it never straddles a third. */
	batch->paths = aligned_alloc(64, (size_t)cap_paths * sizeof(*batch->paths));
	batch->hops = aligned_alloc(64, (size_t)cap_hops * sizeof(*batch->hops));
	batch->first_hop = calloc(cap_paths, sizeof(*batch->first_hop));
	batch->pkt = calloc(cap_paths, sizeof(*batch->pkt));
	if (batch->paths == NULL || batch->hops == NULL || batch->first_hop == NULL ||
		batch->pkt == NULL) {
		pl_record_batch_done(batch);
		return -ENOMEM;
	}
	batch->cap_paths = cap_paths;
	batch->cap_hops = cap_hops;
	return 0;
}

void pl_record_batch_done(struct pl_record_batch *batch)
{
	free(batch->paths);
	free(batch->hops);
	free(batch->first_hop);
	free(batch->pkt);
	memset(batch, 0, sizeof(*batch));
}
