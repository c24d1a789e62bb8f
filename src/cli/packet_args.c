/* SPDX-License-Identifier: BSD-2-Clause */
/* Gives options of other commands to tap, which has what is to be said about packets. */
#include "cli/packet_args.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/complain.h"
#include "base/exit_code.h"
#include "cli/command.h"

#define OWN_WORDS 20 /* before the sources */

struct words {
	char **list;
	int n;
};

static void put(struct words *w, const char *word)
{
	w->list[w->n++] = (char *)word;
}

static void put_option(struct words *w, const char *name, const char *value)
{
	if (value == NULL)
		return;
	put(w, name);
	put(w, value);
}

int pl_packets_print(const struct pl_packet_args *args, const struct pl_opt_list *sources)
{
	struct words w = { .list = calloc(sources->n + OWN_WORDS, sizeof(*w.list)) };
	char count[24], duration[24];
	int code;

	if (w.list == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	snprintf(count, sizeof(count), "%" PRIu64, args->out->count);
	snprintf(duration, sizeof(duration), "%" PRIu64 "ns", args->duration_ns);
	put(&w, "tap");
	put_option(&w, "--output", args->out->form);
	put_option(&w, "--where", args->out->where);
	put_option(&w, "--count", args->out->count != 0 ? count : NULL);
	put_option(&w, "--filter", args->filter);
	put_option(&w, "--duration", args->duration_ns != 0 ? duration : NULL);
	put_option(&w, "--user", args->user);
	put_option(&w, "--group", args->group);
	if (args->kind != NULL)
		put(&w, args->kind);
	if (args->out->stats)
		put(&w, "--stats");
	put(&w, "--");
	for (size_t i = 0; i < sources->n; i++)
		put(&w, sources->items[i]);
	code = pl_command_tap.run(w.n, w.list);
	free(w.list);
	return code;
}
