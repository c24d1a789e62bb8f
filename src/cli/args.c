/* SPDX-License-Identifier: BSD-2-Clause */
/* Options that several commands share. */
#include "cli/args.h"

#include <errno.h>

#include "cli/command.h"
#include "show/stdout.h"

const char *const pl_arg_dta_forms[] = { "plain", "tracking", "pathline", NULL };
const char *const pl_arg_text_or_json[] = { "text", "json", NULL };

struct pl_runtime_options pl_args_runtime(const struct pl_args_service *s,
	const struct pl_service *services, unsigned int n, void (*begun)(void *arg), void *arg)
{
	return (struct pl_runtime_options){ .services = services,
		.n = n,
		.rights = { .user = s->user, .group = s->group },
		.duration_ns = s->duration_ns,
		.web = s->web,
		.stats = s->stats,
		.tell = pl_stderr_print,
		.print = pl_stdout_print,
		.begun = begun,
		.arg = arg };
}

void pl_arg_numbers_begin(const struct pl_arg_number *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*numbers[i].v = PL_OPT_NOT_GIVEN;
}

int pl_arg_numbers_end(const char *command, const struct pl_arg_number *numbers, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (*numbers[i].v == 0)
			return pl_fail(PL_EXIT_USAGE, "%s: --%s must be greater than 0", command,
				numbers[i].name);
		if (*numbers[i].v == PL_OPT_NOT_GIVEN)
			*numbers[i].v = 0;
	}
	return 0;
}

int pl_args_configure(struct pl_config *ret, const struct pl_conf_opts *opts)
{
	struct pl_diag diag = { .text = "" };
	int r = pl_config_defaults(ret);

	if (r == 0)
		r = pl_conf_opts_set(opts, ret, &diag);
	if (r == 0)
		return 0;
	if (r == -ENOMEM)
		pl_complain("out of memory");
	else
		pl_complain_diag(&diag);
	return r == -ENOMEM ? PL_EXIT_FAILED : PL_EXIT_USAGE;
}
