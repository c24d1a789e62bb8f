/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline status: one screen about a running daemon: is all well, and if not, why. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/num.h"
#include "cli/command.h"
#include "web/client.h"

static struct {
	struct pl_client_args client;
	const char *form;
} args;

static const char *const forms[] = { "table", "json", NULL };

static const struct pl_opt *options(void)
{
	static const struct pl_opt table[] = {
		{ PL_OPT_CHOICE, 'o', "output", &args.form, "FORM", "format (default table)",
			forms },
		PL_CLIENT_ARGS(args.client),
		{ PL_OPT_END, 0, NULL, NULL, NULL, NULL, NULL },
	};

	return table;
}

/* ---- what is not as promised ---- */

struct report {
	struct pl_buf out, wrong;
	unsigned int n_wrong;
};

__attribute__((format(printf, 2, 3))) static void wrong(struct report *r, const char *fmt, ...)
{
	char text[400];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	pl_buf_printf(&r->wrong, "  ! %s\n", text);
	r->n_wrong++;
}

static void troubles(struct report *r, const json_t *list, const char *what)
{
	char name[128], why[200];

	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *x = json_array_get(list, i);

		if (!pl_json_member_bool(x, "ok"))
			wrong(r, "%s %s: %s", what,
				pl_client_text(name, sizeof(name), pl_json_member_text(x, "name")),
				pl_client_text(
					why, sizeof(why), pl_json_member_text(x, "trouble")));
	}
}

static void find_wrong(struct report *r, const json_t *status)
{
	const json_t *ready = json_object_get(status, "readiness");

	troubles(r, json_object_get(ready, "listeners"), "source");
	troubles(r, json_object_get(ready, "exporters"), "exporters at");
	troubles(r, json_object_get(ready, "outputs"), "output");
	if (pl_json_member_bool(ready, "stopping"))
		wrong(r, "it is stopping");
	else if (!pl_json_member_bool(ready, "ready") && r->n_wrong == 0)
		wrong(r, "it is not ready");
	if (!pl_json_member_bool(status, "config_reload_ok"))
		wrong(r,
			"the last reload failed: the configuration file is bad, and the old configuration is in use");
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

/* Senders that are received apart, or were. */
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

/* "NAME 3, NAME 4" of an object of counts; what is zero is left out. */
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

static int show(const json_t *status, const char *url)
{
	struct report r = { .n_wrong = 0 };
	int code;

	pl_buf_init(&r.out);
	pl_buf_init(&r.wrong);
	find_wrong(&r, status);
	if (strcmp(args.form, "json") == 0) {
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

static int run(int argc, char **argv)
{
	struct pl_diag diag = { .text = "" };
	struct pl_opt_list operands;
	struct pl_client *client;
	json_t *status;
	int code, r;

	memset(&args, 0, sizeof(args));
	args.form = "table";
	if (pl_command_parse(&pl_command_status, argc, argv, &operands, &code) != 0)
		return code;
	r = operands.n > 0;
	pl_opt_list_done(&operands);
	if (r) {
		pl_complain("status takes no operand: name the daemon with --url");
		return PL_EXIT_USAGE;
	}
	r = pl_client_new(&client, &args.client, &diag);
	if (r == 0) {
		r = pl_client_get(client, "/api/v1/status", &status, &diag);
		if (r == 0) {
			code = show(status, pl_client_url(client));
			json_decref(status);
		}
		pl_client_free(client);
	}
	if (r != 0) {
		pl_complain_diag(&diag);
		return r;
	}
	return code;
}

const struct pl_command pl_command_status = {
	.name = "status",
	.summary = "show the state of a running daemon, faults first",
	.usage = "",
	.description =
		"Asks a running daemon for its state: sources with the packets that the kernel dropped,\n"
		"packets decoded and refused, missing reports, events, and the account of every output.\n"
		"\n"
		"Exit codes: 0 all is well; 3 a fault (a source is down, an output cannot deliver or keep\n"
		"up, a reload failed), which is printed first; 69 no daemon answers; 77 the daemon wants a\n"
		"password, a token or a certificate.",
	.examples =
		"  pathline status\n"
		"  pathline status --url unix:/run/pathline/pathline.sock\n"
		"  pathline status --url https://collector:8400 --ca ca.pem --user ops --password-file pw\n"
		"  pathline status -o json | jq .packets\n",
	.options = options,
	.run = run,
};
