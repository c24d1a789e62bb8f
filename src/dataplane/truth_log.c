/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes the truth into a history while the network runs. */
#include "dataplane/truth_log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "memory/history.h"

struct pl_dp_truth_log {
	struct pl_history *history;
	struct pl_record_batch one; /* a path and its hops */
};

int pl_dp_truth_log_new(struct pl_dp_truth_log **ret, const char *folder, uint64_t events,
	uint64_t paths, uint64_t hops, struct pl_diag *diag)
{
	/* Empty lists are created too: a question may read them. */
	const struct pl_history_options options = {
		.slots = { [PL_HISTORY_EVENTS] = events,
			[PL_HISTORY_PATHS] = paths != 0 ? paths : 1,
			[PL_HISTORY_HOPS] = paths != 0 ? hops : 1 },
	};
	struct pl_dp_truth_log *t = calloc(1, sizeof(*t));
	int r = t == NULL ? -ENOMEM : pl_record_batch_init(&t->one, 1, PL_BATCH_HOPS_MIN);

	if (r == 0)
		r = pl_history_begin(&t->history, folder, &options, diag);
	if (r < 0) {
		if (diag != NULL && diag->text[0] == '\0')
			pl_diag_set(diag, "%s: %s", folder, strerror(-r));
		pl_dp_truth_log_free(t);
		return r;
	}
	*ret = t;
	return 0;
}

void pl_dp_truth_log_free(struct pl_dp_truth_log *t)
{
	if (t == NULL)
		return;
	/* Errors of writing to the disk are ignored: the history is for questions while the network
	 * runs. */
	if (t->history != NULL)
		(void)pl_history_close(t->history);
	pl_record_batch_done(&t->one);
	free(t);
}

void pl_dp_truth_log_path(
	struct pl_dp_truth_log *t, const struct pl_path *path, const struct pl_hop *hops)
{
	pl_record_batch_clear(&t->one);
	t->one.paths[0] = *path;
	t->one.first_hop[0] = 0;
	t->one.n_paths = 1;
	memcpy(t->one.hops, hops, path->hop_count * sizeof(*hops));
	t->one.n_hops = path->hop_count;
	pl_history_put_paths(t->history, &t->one);
}

void pl_dp_truth_log_event(struct pl_dp_truth_log *t, const struct pl_event *event)
{
	pl_history_put_events(t->history, event, 1);
}
