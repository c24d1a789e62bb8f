/* SPDX-License-Identifier: BSD-2-Clause */
/* Prints the records of a file of loss and delay, and those added later. */
#include "ask/tail_segments.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/num.h"
#include "show/flat_file.h"
#include "show/flat_out.h"

#define LOOK_NS UINT64_C(20000000) /* between looks for new records */
#define BATCH   64u

bool pl_tail_is_segments(const char *from)
{
	return pl_flat_file_is(from, PL_FLAT_SEG192);
}

/* Prints the records present now. Negative errno. */
static int64_t print_new(struct pl_flat_file *f, struct pl_flat_out *out, uint64_t since_ns)
{
	struct pl_seg192 records[BATCH];
	int64_t n = 1;

	while (n > 0 && !pl_flat_out_full(out)) {
		n = pl_flat_file_read(f, records, BATCH);
		for (int64_t i = 0; i < n; i++) {
			if (records[i].ts_ns >= since_ns)
				pl_flat_out_add(out, &records[i], 1);
		}
	}
	pl_flat_out_write(out);
	return n;
}

static int print(const struct pl_tail_history *args, struct pl_flat_file *f, uint64_t since_ns)
{
	struct pl_flat_out out;
	uint64_t printed;
	int64_t r;

	pl_flat_out_init(&out, PL_FLAT_SEG192, args->form, args->limit);
	r = print_new(f, &out, since_ns);
	while (r >= 0 && args->follow && !pl_flat_out_full(&out) && !*args->stopped) {
		nanosleep(&(struct timespec){ .tv_nsec = LOOK_NS }, NULL);
		r = print_new(f, &out, since_ns);
	}
	printed = out.rows.rows;
	if (r < 0)
		pl_complain("%s: %s", args->from, strerror((int)-r));
	if (!pl_flat_out_end(&out) || r < 0)
		return PL_EXIT_FAILED;
	return printed > 0 || args->follow ? PL_EXIT_OK : PL_EXIT_NOTHING;
}

int pl_tail_segments(const struct pl_tail_history *args)
{
	struct pl_diag diag = { .text = "" };
	struct pl_flat_file f;
	uint64_t since_ns = 0;
	int code;

	if (args->where != NULL || args->events || args->paths || args->show_loss)
		return pl_fail(PL_EXIT_USAGE,
			"%s has loss and delay of marked packets: --where, --events, --paths and --show-loss are for histories; 'pathline query' has conditions (FROM segments WHERE …)",
			args->from);
	if (args->since != NULL && pl_parse_time(args->since, pl_clock_real_ns(), &since_ns) < 0)
		return pl_fail(PL_EXIT_USAGE,
			"--since needs a time (2026-11-22T01:37:27Z) or an age (10m)");
	if (pl_flat_file_open(&f, args->from, PL_FLAT_SEG192, &diag) < 0)
		return pl_fail(PL_EXIT_UNAVAILABLE, "%s", diag.text);
	code = print(args, &f, since_ns);
	pl_flat_file_close(&f);
	return code;
}
