/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/record.h"

#include "base/test.h"

static size_t form_size(enum pl_form form)
{
	switch (form) {
	case PL_FORM_U16:
	case PL_FORM_FLAGS:
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
		return 1;
	}
}

/* A text goes on to the next field. */
static size_t size_of(const struct pl_field *fields, size_t n, size_t i)
{
	if (fields[i].form == PL_FORM_BYTES)
		return sizeof(struct pl_bytes32);
	if (fields[i].form == PL_FORM_TEXT && i + 1 < n)
		return fields[i + 1].offset - fields[i].offset;
	return form_size(fields[i].form);
}

static bool grouped(const char *a, const char *b)
{
	size_t dot = strcspn(a, ".");

	return a[dot] == '.' && strncmp(a, b, dot + 1) == 0;
}

/* What the text forms rely on, for every field of every kind. */
static void test_fields(enum pl_record_kind kind)
{
	size_t n;
	const struct pl_field *fields = pl_fields(kind, &n);
	size_t end = 0;

	for (size_t i = 0; i < n; i++) {
		const struct pl_field *f = &fields[i];
		size_t twice = 0, left = 0, regained = 0;

		for (size_t j = 0; j < n; j++) {
			twice += f->name[0] != '\0' && strcmp(f->name, fields[j].name) == 0;
			if (j <= i || fields[j].name[0] == '\0' || strchr(f->name, '.') == NULL)
				continue;
			if (!grouped(f->name, fields[j].name))
				left = 1;
			else if (left)
				regained = 1;
		}
		/* Another meaning of bytes that have one; all others follow each other. */
		ok(f->offset <= end &&
				f->offset % (f->form == PL_FORM_ADDR ? 8 : form_size(f->form)) == 0,
			"%s %zu: no hole before it, aligned", pl_record_kind_name(kind), i);
		if (f->offset + size_of(fields, n, i) > end)
			end = f->offset + size_of(fields, n, i);
		ok(f->name[0] == '\0' || twice == 1, "%s \"%s\": its own name",
			pl_record_kind_name(kind), f->name);
		ok(regained == 0, "%s \"%s\": members of an object stand together",
			pl_record_kind_name(kind), f->name);
		ok(strpbrk(f->name, ", \"\n=") == NULL, "%s \"%s\": needs no quoting",
			pl_record_kind_name(kind), f->name);
		ok(f->help[0] != '\0' && (f->present & (f->present - 1)) == 0);
	}
	eq(end, 128, "%s: the fields fill the record", pl_record_kind_name(kind));
}

static void test_words(void)
{
	static const struct {
		enum pl_form form;
		unsigned int n;
	} vocabularies[] = {
		{ PL_FORM_REPORT_VERSION, 3 },
		{ PL_FORM_INT_VERSION, 3 },
		{ PL_FORM_DIALECT, 6 },
		{ PL_FORM_MODE, PL_MODE_MAX },
		{ PL_FORM_CLOCK, PL_CLOCK_MAX },
		{ PL_FORM_EVENT, PL_EVENT_KIND_MAX },
		{ PL_FORM_PHASE, PL_PHASE_MAX },
		{ PL_FORM_ROLE, PL_ROLE_MAX },
		{ PL_FORM_QUANTITY, PL_EVENT_KIND_MAX },
		{ PL_FORM_UNIT, PL_UNIT_MAX },
	};

	for (size_t i = 0; i < sizeof(vocabularies) / sizeof(vocabularies[0]); i++) {
		enum pl_form form = vocabularies[i].form;

		for (unsigned int v = 0; v < vocabularies[i].n; v++)
			ok(pl_form_word(form, v) != NULL && pl_form_word(form, v)[0] != '\0',
				"form %d has a word for %u", (int)form, v);
		ok(pl_form_word(form, vocabularies[i].n) == NULL, "form %d ends there", (int)form);
		ok(pl_form_word(form, UINT32_MAX) == NULL);
	}
	ok(pl_form_word(PL_FORM_U8, 0) == NULL, "a number has no words");
	ok(pl_form_word(PL_FORM_MAX, 0) == NULL);
	streq(pl_mode_name(PL_MODE_IOAM_DEX), "ioam-dex");
	streq(pl_form_word(PL_FORM_CLOCK, PL_CLOCK_MIXED), "mixed");
	streq(pl_event_kind_name(PL_EVENT_HOP_LATENCY), "hop_latency");
	streq(pl_form_word(PL_FORM_PHASE, PL_PHASE_END), "end");
	ok(pl_mode_name(PL_MODE_MAX) == NULL);
	streq(pl_record_kind_name(PL_KIND_PATH), "path");
	ok(pl_record_kind_name(PL_KIND_MAX) == NULL);
	streq(pl_path_flag_name(0), "dropped");
	streq(pl_path_flag_name(6), "instrumented");
	streq(pl_path_flag_name(7), "unproven");
	ok(pl_path_flag_name(8) == NULL && pl_path_flag_help(8) == NULL);
	eq(PL_FLAG_COPY, 0x10);
}

static void test_batch(void)
{
	struct pl_record_batch b;

	eq(pl_record_batch_init(&b, 3, 256), 0);
	eq(b.cap_paths, 3);
	eq(b.cap_hops, 256);
	eq(b.n_paths + b.n_hops, 0);
	b.n_paths = 3;
	b.first_hop[2] = 255;
	b.pkt[2] = 1;
	memset(&b.paths[2], 0, sizeof(b.paths[2]));
	memset(&b.hops[255], 0, sizeof(b.hops[255]));
	pl_record_batch_clear(&b);
	eq(b.n_paths, 0);
	pl_record_batch_done(&b);
	ok(b.paths == NULL && b.hops == NULL);
	pl_record_batch_done(&b);
	ok(true, "done twice is harmless");
}

int main(void)
{
	for (int kind = 0; kind < PL_KIND_MAX; kind++)
		test_fields((enum pl_record_kind)kind);
	test_words();
	test_batch();
	return pl_test_done();
}
