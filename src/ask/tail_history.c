/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the records of a history. */
#include "ask/tail_history.h"

#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/num.h"
#include "service/history_walk.h"
#include "show/record_out.h"

#define LOOK_NS  UINT64_C(20000000)   /* between looks for new records */
#define RENEW_NS UINT64_C(1000000000) /* between looks for new files */

struct follower {
	const struct pl_tail_history *args;
	struct pl_history_walk walk;
	struct pl_record_out out;
	uint64_t overrun; /* reported in the stream */
};

static void tell_loss(struct follower *f)
{
	uint64_t overrun = pl_history_walk_overrun(&f->walk);

	if (f->args->show_loss && overrun > f->overrun && f->out.form == PL_OUT_JSONL)
		pl_buf_printf(&f->out.buf,
			"{\"kind\":\"dropped\",\"count\":%" PRIu64 ",\"cause\":\"overwritten\"}\n",
			overrun - f->overrun);
	f->overrun = overrun;
}

static void print_what_is_there(struct follower *f)
{
	const struct pl_history_record *record;

	while (!pl_record_out_full(&f->out) && !*f->args->stopped &&
		(record = pl_history_walk_next(&f->walk)) != NULL) {
		tell_loss(f);
		pl_record_out_history(&f->out, record);
	}
	tell_loss(f);
}

static void follow(struct follower *f)
{
	uint64_t renew_ns = pl_clock_mono_ns() + RENEW_NS;

	while (!pl_record_out_full(&f->out) && !*f->args->stopped) {
		uint64_t now = pl_clock_mono_ns();

		if (now >= renew_ns) {
			if (pl_history_walk_renew(&f->walk))
				pl_complain(
					"%s: its files were replaced; continuing with the new ones",
					f->args->from);
			renew_ns = now + RENEW_NS;
		}
		print_what_is_there(f);
		pl_record_out_write(&f->out);
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
	}
}

static int print(struct follower *f)
{
	bool good;

	print_what_is_there(f);
	if (f->args->follow)
		follow(f);
	pl_record_out_end(&f->out);
	good = pl_history_walk_tell(&f->walk);
	good &= pl_record_out_good(&f->out);
	if (!good)
		return PL_EXIT_FAILED;
	return f->out.printed > 0 || f->args->follow ? PL_EXIT_OK : PL_EXIT_NOTHING;
}

int pl_tail_history(const struct pl_tail_history *args)
{
	struct pl_history_walk_options walk = { .from = args->from };
	struct follower *f = calloc(1, sizeof(*f));
	int code;

	if (f == NULL)
		return pl_fail(PL_EXIT_FAILED, "out of memory");
	f->args = args;
	if (args->since != NULL &&
		pl_parse_time(args->since, pl_clock_real_ns(), &walk.since_ns) < 0) {
		pl_complain("--since needs a time (2026-11-22T01:37:27Z) or an age (10m)");
		free(f);
		return PL_EXIT_USAGE;
	}
	walk.kinds = (args->paths ? PL_OUT_PATHS : 0) | (args->events ? PL_OUT_EVENTS : 0);
	code = pl_record_out_init_kinds(&f->out, args->form, walk.kinds, args->where, args->limit);
	if (walk.kinds == 0 && args->where != NULL)
		walk.kinds = f->out.kinds;
	if (code == 0)
		code = pl_history_walk_open(&f->walk, &walk);
	if (code == 0) {
		/* A file may have fewer kinds than asked for. */
		f->out.kinds = f->walk.kinds;
		code = print(f);
		pl_history_walk_close(&f->walk);
	}
	pl_record_out_done(&f->out);
	free(f);
	return code;
}
