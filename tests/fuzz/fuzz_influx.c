/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a server answers, and what goes into a line. The first two bytes are a status; the rest is a
 * body, and also, split at zero bytes, names and values of labels. The words of a ruling are
 * printable UTF-8 and end; a line is one line, with as many unescaped commas, equals signs and
 * spaces as the protocol wants, and every label is found in it again.
 */
#include "base/utf8.h"
#include "export/influx.h"
#include "fuzz.h"

#define T UINT64_C(1700000000000000000)

static void *format;

static void printable(const char *words)
{
	size_t len = strnlen(words, PL_WORDS_MAX);

	must(len < PL_WORDS_MAX && pl_utf8_valid(words, len));
	for (size_t i = 0; i < len; i++)
		must((unsigned char)words[i] >= 0x20 && words[i] != 0x7f);
}

static void answer(int status, const uint8_t *body, size_t len)
{
	struct pl_http_answer a = { .status = status };
	struct pl_ruling r;

	a.len = (uint32_t)(len < PL_ANSWER_BODY_MAX ? len : PL_ANSWER_BODY_MAX);
	memcpy(a.body, body, a.len);
	for (uint32_t n = 1; n < 1000; n *= 10) {
		pl_influx_format.answer(format, &a, n, &r);
		must(r.kind < PL_RULING_MAX);
		must((r.kind == PL_RULING_DELIVERED) <= (status >= 200 && status < 300));
		must(!r.whole || r.kind == PL_RULING_REFUSED);
		printable(r.words);
	}
	pl_ruling_by_status(&a, &r);
	printable(r.words);
}

/* An escaped piece of a line up to one of `ends`; what it stood for goes to dst. */
static const char *piece(const char *p, const char *ends, char *dst)
{
	while (*p != '\0' && strchr(ends, *p) == NULL) {
		if (*p == '\\' && (p[1] == ',' || p[1] == '=' || p[1] == ' '))
			p++;
		*dst++ = *p++;
	}
	*dst = '\0';
	return p;
}

/* What a text becomes: control characters, and a backslash at the end, are "?". */
static void expect(const char *text, const char *got)
{
	size_t len = strlen(text);

	must(strlen(got) == len);
	for (size_t i = 0; i < len; i++) {
		bool bad = (unsigned char)text[i] < 0x20 || text[i] == 0x7f ||
			   (text[i] == '\\' && i == len - 1);

		/* A backslash before a comma, an equals sign or a space is taken for theirs. */
		must(got[i] == (bad ? '?' : text[i]));
	}
}

static bool ambiguous(const char *text)
{
	return strstr(text, "\\,") != NULL || strstr(text, "\\=") != NULL ||
	       strstr(text, "\\ ") != NULL;
}

static void line(char *texts[], unsigned int n)
{
	struct pl_series_label labels[4];
	struct pl_series_field field = { .name = "f", .kind = PL_SERIES_COUNTER, .u64 = 1 };
	struct pl_series_point point = {
		.name = "p", .ts_ns = T, .labels = labels, .fields = &field, .n_fields = 1
	};
	static char got[1 << 16];
	struct pl_buf out;
	const char *p;

	for (unsigned int i = 0; i + 1 < n && point.n_labels < 4; i += 2) {
		if (texts[i][0] == '\0' || texts[i + 1][0] == '\0' || ambiguous(texts[i]) ||
			ambiguous(texts[i + 1]))
			continue;
		labels[point.n_labels++] = (struct pl_series_label){ texts[i], texts[i + 1] };
	}
	pl_buf_init(&out);
	must(pl_influx_format.point(format, &point, T, &out) == 0);
	must(strchr(out.data, '\n') == out.data + out.len - 1);
	p = piece(out.data, ", ", got);
	must(strcmp(got, "pathline_p") == 0);
	if (strstr(out.data, "=other") == NULL) {
		for (unsigned int i = 0; i < point.n_labels; i++) {
			must(*p == ',');
			p = piece(p + 1, "=", got);
			expect(labels[i].name, got);
			must(*p == '=');
			p = piece(p + 1, ", ", got);
			expect(labels[i].value, got);
		}
		must(strncmp(p, " f=1i 17000000000", 17) == 0);
	}
	pl_buf_done(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *copy, *texts[8];
	unsigned int n = 0;

	if (size < 2 || size > 8000)
		return 0;
	/* Anew each time: label names, of which there are few, are not bounded. */
	must(pl_influx_format_new(&format, 100, true) == 0);
	answer((data[0] | data[1] << 8) % 700, data + 2, size - 2);
	copy = malloc(size);
	must(copy != NULL);
	memcpy(copy, data + 2, size - 2);
	copy[size - 2] = '\0';
	for (char *p = copy; p < copy + size - 1 && n < 8; p += strlen(p) + 1)
		texts[n++] = p;
	line(texts, n);
	free(copy);
	pl_influx_format.free(format);
	return 0;
}
