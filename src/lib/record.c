/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of pathline/record.h. */
#include <pathline/record.h>

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "lib/common.h"
#include "record/json.h"
#include "record/put.h"
#include "record/record.h"

_Static_assert(PATHLINE_PATH == (int)PL_KIND_PATH && PATHLINE_HOP == (int)PL_KIND_HOP &&
		       PATHLINE_EVENT == (int)PL_KIND_EVENT,
	"kinds are numbered alike");
_Static_assert(PATHLINE_RECORD_BYTES == sizeof(struct pl_path), "records are of one size");

/* A copy that is aligned, whatever the caller's is. */
union record {
	struct pl_path path;
	struct pl_hop hop;
	struct pl_event event;
};

static const struct pl_field *fields_of(enum pathline_kind kind, size_t *ret_n)
{
	*ret_n = 0;
	return (unsigned int)kind < PL_KINDS_KEPT ? pl_fields((enum pl_record_kind)kind, ret_n)
						  : NULL;
}

static const struct pl_field *field_of(enum pathline_kind kind, int field)
{
	size_t n;
	const struct pl_field *fields = fields_of(kind, &n);

	return field >= 0 && (size_t)field < n ? &fields[field] : NULL;
}

int pathline_field_count(enum pathline_kind kind)
{
	size_t n;

	return fields_of(kind, &n) != NULL ? (int)n : -EINVAL;
}

int pathline_field_find(enum pathline_kind kind, const char *name)
{
	size_t n;
	const struct pl_field *fields = fields_of(kind, &n);

	for (size_t i = 0; name[0] != '\0' && i < n; i++) {
		if (strcmp(fields[i].name, name) == 0)
			return (int)i;
	}
	return -ENOENT;
}

const char *pathline_field_name(enum pathline_kind kind, int field)
{
	const struct pl_field *f = field_of(kind, field);

	return f != NULL ? f->name : NULL;
}

const char *pathline_field_unit(enum pathline_kind kind, int field)
{
	const struct pl_field *f = field_of(kind, field);

	return f != NULL ? f->unit : NULL;
}

const char *pathline_field_help(enum pathline_kind kind, int field)
{
	const struct pl_field *f = field_of(kind, field);

	return f != NULL ? f->help : NULL;
}

static uint32_t present_of(enum pathline_kind kind, const union record *r)
{
	return kind == PATHLINE_PATH  ? r->path.present
	       : kind == PATHLINE_HOP ? r->hop.present
				      : r->event.present;
}

/* The field, when the record has it; else NULL with what to return. */
static const struct pl_field *look(enum pathline_kind kind, const void *record, int field,
	bool address, union record *ret, int *ret_result)
{
	const struct pl_field *f = field_of(kind, field);

	*ret_result = -EINVAL;
	if (f == NULL || (f->form == PL_FORM_ADDR) != address)
		return NULL;
	memcpy(ret, record, sizeof(*ret));
	*ret_result = f->present == 0 || (present_of(kind, ret) & f->present) != 0;
	return *ret_result == 1 ? f : NULL;
}

int pathline_record_u64(enum pathline_kind kind, const void *record, int field, uint64_t *ret_value)
{
	union record copy;
	int result;
	const struct pl_field *f = look(kind, record, field, false, &copy, &result);

	if (f != NULL)
		*ret_value = put_load(f, &copy);
	return result;
}

int pathline_record_address(
	enum pathline_kind kind, const void *record, int field, unsigned char ret_address[16])
{
	union record copy;
	int result;
	const struct pl_field *f = look(kind, record, field, true, &copy, &result);

	if (f != NULL)
		memcpy(ret_address, (const char *)&copy + f->offset, 16);
	return result;
}

int pathline_record_json(enum pathline_kind kind, const void *record, char *ret_text, size_t room)
{
	union record copy;
	struct pl_buf text;
	int n;

	if ((unsigned int)kind >= PL_KINDS_KEPT)
		return -EINVAL;
	memcpy(&copy, record, sizeof(copy));
	pl_buf_init(&text);
	if (kind == PATHLINE_PATH)
		pl_path_json(&text, &copy.path, NULL, 0);
	else if (kind == PATHLINE_HOP)
		pl_hop_json(&text, &copy.hop);
	else
		pl_event_json(&text, &copy.event);
	n = text.failed ? -ENOMEM : (int)text.len;
	if (n >= 0 && room > 0) {
		const size_t fits = text.len < room ? text.len : room - 1;

		memcpy(ret_text, text.data, fits);
		ret_text[fits] = '\0';
	}
	pl_buf_done(&text);
	return n;
}
