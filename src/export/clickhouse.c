/* SPDX-License-Identifier: BSD-2-Clause */
/* The format of outputs to ClickHouse: INSERT statements, and rulings on answers. */
#include "export/clickhouse.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "export/curl.h"
#include "record/clickhouse.h"

struct clickhouse {
	uint32_t size; /* of a row, in bytes */
};

/* ---- answers ---- */

/* Returns the number in "Code: 60. DB::Exception: …", on older servers "Code: 60, e.displayText() =
 * …"; 0: none. */
static unsigned int code_of(const struct pl_http_answer *answer)
{
	const char *at = strstr(answer->body, "Code: ");
	unsigned int code = 0;

	for (at = at != NULL ? at + 6 : ""; isdigit((unsigned char)*at) && code < 100000; at++)
		code = 10 * code + (unsigned int)(*at - '0');
	return code;
}

void pl_clickhouse_answer(const struct pl_http_answer *answer, uint32_t n, struct pl_ruling *ret)
{
	(void)n;
	pl_ruling_by_status(answer, ret);
	if (ret->kind == PL_RULING_DELIVERED || answer->status == 0)
		return;
	switch (code_of(answer)) {
	case 16:  /* NO_SUCH_COLUMN_IN_TABLE */
	case 44:  /* ILLEGAL_COLUMN */
	case 60:  /* UNKNOWN_TABLE */
	case 81:  /* UNKNOWN_DATABASE */
	case 164: /* READONLY */
	case 192: /* UNKNOWN_USER */
	case 193: /* WRONG_PASSWORD */
	case 194: /* REQUIRED_PASSWORD */
	case 291: /* DATABASE_ACCESS_DENIED */
	case 497: /* ACCESS_DENIED */
	case 516: /* AUTHENTICATION_FAILED */
		ret->kind = PL_RULING_HOLD;
		break;
	case 159: /* TIMEOUT_EXCEEDED */
	case 202: /* TOO_MANY_SIMULTANEOUS_QUERIES */
	case 209: /* SOCKET_TIMEOUT */
	case 210: /* NETWORK_ERROR */
	case 241: /* MEMORY_LIMIT_EXCEEDED */
	case 242: /* TABLE_IS_READ_ONLY */
	case 243: /* NOT_ENOUGH_SPACE */
	case 425: /* SYSTEM_ERROR */
		ret->kind = PL_RULING_RETRY;
		break;
	case 252: /* TOO_MANY_PARTS: in the table or of one INSERT */
		ret->kind = strstr(answer->body, "single INSERT") != NULL ? PL_RULING_REFUSED
									  : PL_RULING_RETRY;
		break;
	case 27:  /* CANNOT_PARSE_INPUT_ASSERTION_FAILED */
	case 32:  /* ATTEMPT_TO_READ_AFTER_EOF */
	case 33:  /* CANNOT_READ_ALL_DATA */
	case 53:  /* TYPE_MISMATCH */
	case 117: /* INCORRECT_DATA */
	case 131: /* TOO_LARGE_STRING_SIZE */
		ret->kind = PL_RULING_REFUSED;
		ret->whole = true;
		break;
	default:
		break;
	}
}

static void format_answer(
	void *format, const struct pl_http_answer *answer, uint32_t n, struct pl_ruling *ret)
{
	(void)format;
	pl_clickhouse_answer(answer, n, ret);
}

static const struct pl_format_ops ops = { .name = "clickhouse",
	.answer = format_answer,
	.free = free };

/* ---- the statement ---- */

static void put_percent(struct pl_buf *out, const char *text)
{
	for (; *text != '\0'; text++) {
		if (isalnum((unsigned char)*text) || *text == '_')
			pl_buf_chr(out, *text);
		else
			pl_buf_printf(out, "%%%02X", (unsigned char)*text);
	}
}

void pl_clickhouse_put_name(struct pl_buf *out, const char *name)
{
	pl_buf_chr(out, '`');
	for (; *name != '\0'; name++) {
		if (*name == '`' || *name == '\\')
			pl_buf_chr(out, '\\');
		pl_buf_chr(out, *name);
	}
	pl_buf_chr(out, '`');
}

static void put_records(struct pl_buf *statement, enum pl_flat_kind kind)
{
	const struct pl_flat *flat = pl_flat(kind);

	for (uint32_t i = 0; i < flat->n_fields; i++) {
		pl_buf_str(statement, i == 0 ? " (" : ", ");
		pl_clickhouse_put_stored(statement, &flat->fields[i]);
	}
	pl_buf_str(statement, ") FORMAT RowBinary");
}

static void put_url(struct pl_buf *out, const struct pl_clickhouse_options *o)
{
	struct pl_buf statement;

	pl_buf_init(&statement);
	pl_buf_str(&statement, "INSERT INTO ");
	pl_clickhouse_put_name(&statement, o->table);
	if (o->columns != NULL)
		pl_buf_printf(&statement, " (%s) FORMAT JSONEachRow", o->columns);
	else
		put_records(&statement, o->kind);
	pl_buf_chr(&statement, '\0');
	pl_buf_str(out, o->server);
	if (o->database != NULL) {
		pl_buf_str(out, "/?database=");
		put_percent(out, o->database);
	}
	pl_buf_str(out, o->database != NULL ? "&query=" : "/?query=");
	if (statement.failed)
		out->failed = true;
	else
		put_percent(out, statement.data);
	pl_buf_chr(out, '\0');
	pl_buf_done(&statement);
}

int pl_clickhouse_open(struct pl_export **ret, const struct pl_clickhouse_options *options,
	uint64_t now_ns, struct pl_diag *diag)
{
	struct pl_sender_options sender = options->sender;
	struct clickhouse *format;
	struct pl_buf url;
	int r = pl_curl_url_check(options->server, diag);

	if (r < 0)
		return r;
	format = calloc(1, sizeof(*format));
	pl_buf_init(&url);
	put_url(&url, options);
	if (format == NULL || url.failed) {
		free(format);
		pl_buf_done(&url);
		return pl_diag_fail(diag, -ENOMEM, "%s", strerror(ENOMEM));
	}
	if (options->columns == NULL)
		format->size = pl_flat(options->kind)->size;
	sender.url = url.data;
	sender.spool_kind =
		options->columns != NULL ? options->columns : pl_flat(options->kind)->name;
	r = pl_sender_open(ret, &sender, &ops, format, now_ns, diag);
	pl_buf_done(&url);
	return r;
}

void pl_clickhouse_write(
	struct pl_export *e, const void *records, uint32_t n, uint32_t stride, uint64_t now_ns)
{
	const struct clickhouse *format = pl_sender_format(e);

	pl_sender_write(e, records, n, format->size, stride, now_ns);
}
