/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes records of alternate marking to a file and to outputs. */
#include "ask/mark_out.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/file.h"
#include "base/hash.h"
#include "tapout/tap_out.h"

int pl_mark_out_open(struct pl_mark_out *out)
{
	/* Each run needs an exporter id of its own: its datagrams are numbered from 0 on, and a
	 * receiver would take them for those of the run before. */
	const struct pl_tap_out_settings settings = { .kind = out->kind,
		.exporter = (uint32_t)pl_hash_seed() };
	struct pl_diag diag = { .text = "" };

	if (out->n_to > PL_MARK_OUTS_MAX)
		return pl_fail(PL_EXIT_USAGE, "at most %d outputs", PL_MARK_OUTS_MAX);
	for (size_t i = 0; i < out->n_to; i++) {
		if (pl_tap_out_check(out->to[i], &settings, &diag) < 0)
			return pl_fail(PL_EXIT_USAGE, "--to %s: %s", out->to[i], diag.text);
	}
	for (size_t i = 0; i < out->n_to; i++) {
		if (pl_tap_out_open(&out->outs[i], out->to[i], &settings, &diag) < 0)
			return pl_fail(PL_EXIT_UNAVAILABLE, "--to %s: %s", out->to[i], diag.text);
		out->n_outs++;
	}
	return 0;
}

static void keep(struct pl_mark_out *out)
{
	const size_t bytes = (size_t)out->n_batch * pl_flat(out->kind)->size;

	if (out->room - out->n_kept < bytes) {
		const size_t room = 2 * out->room + sizeof(out->batch);
		uint8_t *more = realloc(out->kept, room);

		if (more == NULL) {
			out->no_memory = true;
			return;
		}
		out->kept = more;
		out->room = room;
	}
	memcpy(out->kept + out->n_kept, out->batch, bytes);
	out->n_kept += bytes;
}

static void give_away(struct pl_mark_out *out)
{
	if (out->n_batch == 0)
		return;
	if (out->write != NULL && !out->no_memory)
		keep(out);
	for (unsigned int i = 0; i < out->n_outs; i++) {
		out->outs[i]->driver->put(out->outs[i], out->batch, out->n_batch);
		(void)out->outs[i]->driver->turn(out->outs[i], pl_clock_mono_ns());
	}
	out->n_batch = 0;
}

void pl_mark_out_put(struct pl_mark_out *out, const void *record)
{
	const uint32_t size = pl_flat(out->kind)->size;

	if (out->write == NULL && out->n_outs == 0)
		return;
	memcpy(out->batch + (size_t)out->n_batch++ * size, record, size);
	if (out->n_batch == PL_MARK_OUT_BATCH)
		give_away(out);
}

static bool write_file(struct pl_mark_out *out)
{
	int r;

	if (out->write == NULL)
		return true;
	r = out->no_memory ? -ENOMEM : pl_file_replace(out->write, out->kept, out->n_kept, 0644);
	if (r < 0)
		pl_complain("%s: %s", out->write, strerrordesc_np(-r));
	return r == 0;
}

bool pl_mark_out_end(struct pl_mark_out *out)
{
	bool good;

	give_away(out);
	good = write_file(out);
	for (unsigned int i = 0; i < out->n_outs; i++) {
		const struct pl_tap_out *to = out->outs[i];
		uint64_t lost;

		to->driver->finish(out->outs[i]);
		lost = to->driver->lost(to);
		if (lost == 0)
			continue;
		pl_complain("%s: %" PRIu64 " records were not taken", to->name, lost);
		good = false;
	}
	return good;
}

void pl_mark_out_close(struct pl_mark_out *out)
{
	for (unsigned int i = 0; i < out->n_outs; i++)
		pl_tap_out_close(out->outs[i]);
	out->n_outs = 0;
	free(out->kept);
	out->kept = NULL;
}
