/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the status of a daemon. */
#include "show/status.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/exit_code.h"
#include "base/num.h"
#include "web/client.h"

/* ---- faults ---- */

struct report {
	struct pl_buf out, wrong;
	unsigned int n_wrong;
};

__attribute__((format(printf, 2, 3))) static void wrong(struct report *r, const char *fmt, ...)
{
	char text[420];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pl_buf_printf(&r->wrong, "  ! %s\n", text);
	r->n_wrong++;
}

/* Lists the conditions. Each is prefixed with its part, except those of the collector, whose texts
 * name their subject. */
static void find_wrong(struct report *r, const json_t *status)
{
	const json_t *list = json_object_get(status, "conditions");
	char part[32], text[360];

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *x = json_array_get(list, i);
		const char *of = pl_json_member_text(x, "part");

		pl_client_text(part, sizeof(part), of);
		pl_client_text(text, sizeof(text), pl_json_member_text(x, "text"));
		if (strcmp(of, "collector") == 0)
			wrong(r, "%s", text);
		else
			wrong(r, "%s: %s", part, text);
	}
	if (r->n_wrong == 0 && !pl_json_member_bool(status, "ready"))
		wrong(r, "it is not ready");
}

/* ---- the screen ---- */

static void head(struct report *r, const json_t *status, const char *url)
{
	const char *detect = pl_json_member_text(status, "detect");
	char text[200], version[40], uptime[32];

	pl_buf_printf(&r->out, "pathline %s at %s: ",
		pl_client_text(version, sizeof(version), pl_json_member_text(status, "version")),
		pl_client_text(text, sizeof(text), url));
	if (r->n_wrong == 0)
		pl_buf_str(&r->out, "all is well\n");
	else
		pl_buf_printf(&r->out, "%u thing%s wrong\n", r->n_wrong,
			r->n_wrong == 1 ? " is" : "s are");
	if (r->wrong.len > 0)
		pl_buf_add(&r->out, r->wrong.data, r->wrong.len);
	pl_format_duration(
		uptime, sizeof(uptime), pl_json_member_u64(status, "uptime_s") * 1000000000u);
	pl_buf_printf(&r->out,
		"up %s, detection in %s space, %" PRIu64 " workers, %" PRIu64 " exporters, %" PRIu64
		" flows, %" PRIu64 " levels raised\n",
		uptime,
		strcmp(detect, "both") == 0 ? "kernel and user"
					    : pl_client_text(version, sizeof(version), detect),
		pl_json_member_u64(status, "workers"), pl_json_member_u64(status, "exporters"),
		pl_json_member_u64(status, "flows"), pl_json_member_u64(status, "levels_raised"));
}

static void sources(struct pl_buf *out, const json_t *list)
{
	pl_buf_str(out, "\nSOURCE                            RECEIVED      REPORTS  KERNEL DROPS   "
			"    CUT  ERRORS\n");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *x = json_array_get(list, i);
		char name[100], cell[120];

		snprintf(cell, sizeof(cell), "%s#%" PRIu64,
			pl_client_text(name, sizeof(name), pl_json_member_text(x, "name")),
			pl_json_member_u64(x, "socket"));
		pl_buf_printf(out,
			"%-30s %11" PRIu64 "  %11" PRIu64 "  %12" PRIu64 "  %8" PRIu64 "  %6" PRIu64
			"%s\n",
			cell, pl_json_member_u64(x, "packets"), pl_json_member_u64(x, "reports"),
			pl_json_member_u64(x, "kernel_drops"), pl_json_member_u64(x, "cut"),
			pl_json_member_u64(x, "errors"),
			pl_json_member_bool(x, "up") ? "" : "  DOWN");
	}
}

/* Lists senders that have or had a separate socket. */
static void floods(struct pl_buf *out, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *source = json_array_get(list, i);
		const json_t *senders = json_object_get(source, "floods");

		for (size_t k = 0; k < json_array_size(senders); k++) {
			const json_t *x = json_array_get(senders, k);
			char who[100], name[100];

			pl_buf_printf(out,
				"%s %s more than %s#%" PRIu64 " is read: %s, %" PRIu64 " dropped\n",
				pl_client_text(who, sizeof(who), pl_json_member_text(x, "sender")),
				pl_json_member_bool(x, "apart") ? "sends" : "sent",
				pl_client_text(
					name, sizeof(name), pl_json_member_text(source, "name")),
				pl_json_member_u64(source, "socket"),
				pl_json_member_bool(x, "apart") ? "received apart" : "now calm",
				pl_json_member_u64(x, "drops"));
		}
	}
}

/* Writes "NAME 3, NAME 4" for an object of counts; zeros are left out. */
static void counts(struct pl_buf *out, const json_t *object, const char *none)
{
	const char *key, *sep = "";
	json_t *value;

	json_object_foreach((json_t *)object, key, value)
	{
		char name[64];

		if (json_integer_value(value) == 0)
			continue;
		pl_buf_printf(out, "%s%s %" PRIu64, sep, pl_client_text(name, sizeof(name), key),
			(uint64_t)json_integer_value(value));
		sep = ", ";
	}
	if (sep[0] == '\0')
		pl_buf_str(out, none);
}

static uint64_t sum_of(const json_t *object)
{
	uint64_t sum = 0;
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)object, key, value) sum +=
		(uint64_t)json_integer_value(value);
	return sum;
}

static void totals(struct pl_buf *out, const json_t *status)
{
	const json_t *packets = json_object_get(status, "packets");
	const json_t *reports = json_object_get(status, "reports");
	const json_t *refused = json_object_get(packets, "refused");

	pl_buf_printf(out,
		"\npackets  received %" PRIu64 " = decoded %" PRIu64 " + refused %" PRIu64,
		pl_json_member_u64(packets, "received"), pl_json_member_u64(packets, "decoded"),
		sum_of(refused));
	if (sum_of(refused) > 0) {
		pl_buf_str(out, " (");
		counts(out, refused, "");
		pl_buf_chr(out, ')');
	}
	pl_buf_printf(out,
		"\nreports  stored %" PRIu64 " with %" PRIu64 " hops; missing %" PRIu64
		", reordered %" PRIu64 ", duplicates %" PRIu64
		"\n         of exporters not proven %" PRIu64 ", not tracked %" PRIu64
		"\nevents   ",
		pl_json_member_u64(reports, "stored"), pl_json_member_u64(reports, "hops"),
		pl_json_member_u64(reports, "lost"), pl_json_member_u64(reports, "reordered"),
		pl_json_member_u64(reports, "duplicates"), pl_json_member_u64(reports, "unproven"),
		pl_json_member_u64(reports, "untracked"));
	counts(out, json_object_get(status, "events"), "none yet");
	pl_buf_chr(out, '\n');
}

static void outputs(struct pl_buf *out, const json_t *list)
{
	pl_buf_str(out, "\nOUTPUT                 OFFERED    DELIVERED     FILTERED      WAITING  "
			"    DROPPED\n");
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *x = json_array_get(list, i), *dropped = json_object_get(x, "dropped");
		char name[100];

		pl_buf_printf(out,
			"%-16s %13" PRIu64 "%13" PRIu64 "%13" PRIu64 "%13" PRIu64 "%13" PRIu64,
			pl_client_text(name, sizeof(name), pl_json_member_text(x, "name")),
			pl_json_member_u64(x, "offered"), pl_json_member_u64(x, "delivered"),
			pl_json_member_u64(x, "filtered"), pl_json_member_u64(x, "waiting"),
			sum_of(dropped));
		if (sum_of(dropped) > 0) {
			pl_buf_str(out, "  ");
			counts(out, dropped, "");
		}
		pl_buf_chr(out, '\n');
	}
}

/* Prints the accounts of the process's other services, as text. */
static void parts(struct pl_buf *out, const json_t *accounts)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)accounts, key, value)
	{
		char name[32], text[2048];

		pl_buf_printf(out, "\n%s: %s\n", pl_client_text(name, sizeof(name), key),
			pl_client_text(text, sizeof(text), json_string_value(value)));
	}
}

int pl_status_print(const json_t *status, const char *url, bool json)
{
	struct report r = { .n_wrong = 0 };
	int code;

	pl_buf_init(&r.out);
	pl_buf_init(&r.wrong);
	find_wrong(&r, status);
	if (json) {
		char *text = json_dumps(status, JSON_INDENT(2) | JSON_ENSURE_ASCII);

		pl_buf_str(&r.out, text != NULL ? text : "{}");
		pl_buf_chr(&r.out, '\n');
		free(text);
	} else {
		head(&r, status, url);
		sources(&r.out, json_object_get(status, "sources"));
		floods(&r.out, json_object_get(status, "sources"));
		totals(&r.out, status);
		outputs(&r.out, json_object_get(status, "outputs"));
		parts(&r.out, json_object_get(status, "parts"));
	}
	code = r.out.failed || fwrite(r.out.data, 1, r.out.len, stdout) != r.out.len ||
			       fflush(stdout) != 0
		       ? PL_EXIT_FAILED
	       : r.n_wrong > 0 ? PL_EXIT_NOTHING
			       : PL_EXIT_OK;
	pl_buf_done(&r.out);
	pl_buf_done(&r.wrong);
	return code;
}
