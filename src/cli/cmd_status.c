/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline status: one screen about a running daemon: is all well, and if not, why. */
#include <string.h>

#include "cli/command.h"
#include "show/status.h"
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
	if (r)
		return pl_fail(
			PL_EXIT_USAGE, "status takes no operand: name the daemon with --url");
	r = pl_client_new(&client, &args.client, &diag);
	if (r == 0) {
		r = pl_client_get(client, "/api/v1/status", &status, &diag);
		if (r == 0) {
			code = pl_status_print(
				status, pl_client_url(client), strcmp(args.form, "json") == 0);
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
		"packets decoded and refused, missing reports, events, and the accounts of every output and of\n"
		"every other part: translator, memory server, taps, queries, marking domains.\n"
		"\n"
		"Exit codes: 0 all is well; 3 something is wrong with a part (a source is down, an output cannot\n"
		"deliver or keep up, a region was removed, reports were refused within the last minute, a reload\n"
		"failed), which is printed first; 69 no daemon answers; 77 the daemon wants a password, a token\n"
		"or a certificate.",
	.examples =
		"  pathline status\n"
		"  pathline status --url unix:/run/pathline-run/pathline.sock\n"
		"  pathline status --url https://collector:8400 --ca ca.pem --user ops --password-file pw\n"
		"  pathline status -o json | jq .packets\n",
	.options = options,
	.run = run,
};
