/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of any bytes as JSON, CSV and text; strings of any bytes in JSON and in metrics labels.
 * First byte: the number of hops; then the bytes of a path, an event, the hops, and what is left is
 * the string.
 *
 * What is written is read by a reader that shares nothing with the writer: JSON by the grammar of
 * RFC 8259, CSV by counting the columns, text by its separators. It is not longer than was
 * promised.
 */
#include "base/json.h"
#include "base/utf8.h"
#include "export/exposition.h"
#include "fuzz.h"
#include "json.h"
#include "record/json.h"
#include "record/table.h"
#include "record/text.h"

enum { HOPS = 4 };

static size_t count(const char *s, size_t n, char c)
{
	size_t found = 0;

	for (size_t i = 0; i < n; i++)
		found += s[i] == c;
	return found;
}

/* Every row has as many columns as the header, and there are so many rows. */
static void is_csv(const struct pl_buf *buf, const struct pl_buf *header, size_t rows)
{
	const char *row = buf->data, *end;
	size_t columns = count(header->data, header->len, ',');

	must(!buf->failed && !header->failed && buf->len > 0);
	must(strlen(buf->data) == buf->len && strpbrk(buf->data, "\" \t\r") == NULL);
	for (; rows > 0; rows--, row = end + 1) {
		end = strchr(row, '\n');
		must(end != NULL && count(row, (size_t)(end - row), ',') == columns);
	}
	must(*row == '\0');
}

/* Lines of NAME=VALUE pairs: as many equal signs as blanks, and so many lines. */
static void is_text(const struct pl_buf *buf, size_t lines)
{
	must(!buf->failed && count(buf->data, buf->len, '\n') == lines);
	must(count(buf->data, buf->len, ' ') == count(buf->data, buf->len, '='));
}

static void records(const struct pl_path *path, const struct pl_event *event,
	const struct pl_hop *hops, size_t n)
{
	struct pl_buf buf, header;

	pl_buf_init(&buf);
	pl_buf_init(&header);
	pl_path_json(&buf, path, hops, n);
	is_json(&buf);
	must(buf.len <= pl_path_json_max(n));
	pl_buf_reset(&buf);
	pl_event_json(&buf, event);
	is_json(&buf);
	for (size_t i = 0; i < n; i++) {
		pl_buf_reset(&buf);
		pl_hop_json(&buf, &hops[i]);
		is_json(&buf);
	}

	pl_path_csv_header(&header);
	pl_buf_reset(&buf);
	pl_path_csv(&buf, path, hops, n);
	is_csv(&buf, &header, n > 0 ? n : 1);
	pl_buf_reset(&header);
	pl_event_csv_header(&header);
	pl_buf_reset(&buf);
	pl_event_csv(&buf, event);
	is_csv(&buf, &header, 1);

	pl_buf_reset(&buf);
	pl_path_text(&buf, path, hops, n);
	is_text(&buf, 1 + n);
	pl_buf_reset(&buf);
	pl_event_text(&buf, event);
	is_text(&buf, 1);

	pl_buf_reset(&buf);
	pl_path_table(&buf, path, hops, n, false);
	pl_path_table(&buf, path, hops, n, true);
	pl_event_table(&buf, event);
	must(!buf.failed && strlen(buf.data) == buf.len);
	pl_buf_done(&buf);
	pl_buf_done(&header);
}

/* A string of any bytes is a JSON string and a label's value: on one line, its quotes escaped. */
static void strings(const char *text, size_t len)
{
	struct pl_exposition page;
	struct pl_label label = { .name = "l", .form = PL_LABEL_TEXT };
	struct pl_json json;
	struct pl_buf buf;
	char *terminated = malloc(len + 1);
	const char *s;

	must(terminated != NULL);
	memcpy(terminated, text, len);
	terminated[len] = '\0';
	pl_buf_init(&buf);
	pl_json_init(&json, &buf);
	pl_json_array(&json);
	pl_json_strn(&json, text, len);
	pl_json_str(&json, terminated);
	pl_json_array_end(&json);
	is_json(&buf);
	pl_buf_reset(&buf);
	label.text = terminated;
	pl_exposition_init(&page, &buf, len % 2 ? PL_EXPOSITION_OPENMETRICS : PL_EXPOSITION_TEXT);
	pl_exposition_family(&page, "pathline_x", PL_METRIC_GAUGE, NULL, terminated);
	pl_exposition_u64(&page, &label, 1, 1);
	pl_exposition_end(&page);
	must(!buf.failed && strlen(buf.data) == buf.len);
	/* At the beginning of a line: the text itself may hold the words. */
	s = strstr(buf.data, "\npathline_x{l=\"");
	must(s != NULL);
	for (s += strlen("\npathline_x{l=\""); *s != '"'; s++) {
		must(*s != '\n' && *s != '\0');
		if (*s == '\\')
			must(*++s == '\\' || *s == '"' || *s == 'n');
	}
	must(strncmp(s, "\"} 1\n", 5) == 0);
	pl_buf_done(&buf);
	free(terminated);
}

static size_t take(void *to, size_t size, const uint8_t *data, size_t left)
{
	size_t n = left < size ? left : size;

	memcpy(to, data, n);
	return n;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct pl_path path = { 0 };
	struct pl_event event = { 0 };
	struct pl_hop hops[HOPS] = { 0 };
	size_t n, at = 1;

	if (size < 1)
		return 0;
	n = data[0] % (HOPS + 1);
	at += take(&path, sizeof(path), data + at, size - at);
	at += take(&event, sizeof(event), data + at, size - at);
	at += take(hops, n * sizeof(hops[0]), data + at, size - at);
	/* What a decoder promises of a record: no value that has no word. */
	path.mode %= PL_MODE_MAX;
	path.dialect %= 6;
	path.report_version %= 3;
	path.int_version %= 3;
	event.event %= PL_EVENT_KIND_MAX;
	event.phase %= PL_PHASE_MAX;
	for (size_t i = 0; i < n; i++)
		hops[i].clock %= PL_CLOCK_MAX;
	records(&path, &event, hops, n);
	strings((const char *)data + at, size - at);
	return 0;
}
