/* SPDX-License-Identifier: BSD-2-Clause */
/* Collects the nodes of the paths that events name. */
#include "pipeline/path_notes.h"

#include "record/path_book.h"

static bool decoded(const struct pl_decode *decode, uint64_t path_id, struct pl_path_nodes *ret)
{
	struct pl_path_info info;

	if (!pl_decode_path_find(decode, path_id, &info))
		return false;
	*ret = (struct pl_path_nodes){ .hops = info.hop_count };
	_Static_assert(PL_PATH_STEPS_MAX <= PL_PATH_NODES_MAX, "all steps that are kept fit");
	for (; ret->n < info.hop_count && ret->n < PL_PATH_STEPS_MAX; ret->n++)
		ret->node[ret->n] = info.steps[ret->n].node;
	return true;
}

static void note(
	uint64_t path_id, const struct pl_decode *decode, const struct pl_worker_aside *aside)
{
	struct pl_path_nodes nodes;

	/* An id always stands for the same nodes. */
	if (pl_path_book_find(path_id, &nodes))
		return;
	if (decoded(decode, path_id, &nodes) ||
		(aside != NULL && aside->path != NULL && aside->path(aside->arg, path_id, &nodes)))
		pl_path_book_note(path_id, &nodes);
}

void pl_path_notes(const struct pl_event *events, uint32_t n, const struct pl_decode *decode,
	const struct pl_worker_aside *aside)
{
	for (uint32_t i = 0; i < n; i++) {
		if (events[i].event != PL_EVENT_PATH_CHANGE)
			continue;
		if (events[i].present & PL_EVENT_HAS_path_id)
			note(events[i].path_id, decode, aside);
		if (events[i].present & PL_EVENT_HAS_old_path_id)
			note(events[i].old_path_id, decode, aside);
	}
}
