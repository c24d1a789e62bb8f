/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds regions whose files were truncated, removed or replaced. */
#include "chain/region_watch.h"

#include <inttypes.h>

#include "runtime/say.h"

#define LOOK_NS  UINT64_C(100000000)
#define NAMES_NS UINT64_C(1000000000)

static void look_at_name(struct pl_region_watch *w, const struct pl_region *g, const char *path,
	struct pl_region_watched *state)
{
	const bool gone = !pl_region_is_at(g, path);

	if (gone == state->gone)
		return;
	state->gone = gone;
	if (!gone) {
		w->gone--;
		pl_say("%s is the file that is open again", path);
		return;
	}
	w->gone++;
	w->removals++;
	pl_say("%s was removed or made anew while it was open: writes go on into the file that was there, which readers of the name do not find; restart to write into a new one",
		path);
}

void pl_region_watch_look(struct pl_region_watch *w, uint64_t now_ns, pl_region_watched_get *get,
	void *arg, struct pl_region_watched *state, unsigned int n)
{
	const bool names = now_ns >= w->names_ns;
	uint64_t lost = 0;

	if (now_ns < w->next_ns)
		return;
	for (unsigned int i = 0; i < n; i++) {
		const char *path;
		const struct pl_region *g = get(arg, i, &path);
		struct pl_region_info info;

		if (names)
			look_at_name(w, g, path, &state[i]);
		pl_region_get_info(g, &info);
		lost += info.lost_pages;
		if (state[i].cut || !pl_region_is_cut(g))
			continue;
		state[i].cut = true;
		w->cut++;
		pl_say("%s was truncated while it was open: writes beyond its end are lost; create it again and restart",
			path);
	}
	w->lost_pages = lost;
	if (now_ns == UINT64_MAX)
		return;
	w->next_ns = now_ns + LOOK_NS;
	if (names)
		w->names_ns = now_ns + NAMES_NS;
}

void pl_region_watch_conditions(const struct pl_region_watch *w, pl_region_watched_get *get,
	void *arg, const struct pl_region_watched *state, unsigned int n, struct pl_conditions *ret)
{
	for (unsigned int i = 0; pl_region_watch_lost(w) && i < n; i++) {
		const char *path;

		(void)get(arg, i, &path);
		if (state[i].cut)
			pl_condition_add(ret, PL_CONDITION_FAULT, "region_truncated",
				"region %s was truncated: writes beyond its end are lost; create it again and restart",
				path);
		if (state[i].gone)
			pl_condition_add(ret, PL_CONDITION_FAULT, "region_removed",
				"region %s was removed or made anew: writes go into no file of that name; restart to write into a new one",
				path);
	}
}

void pl_region_watch_tell(const struct pl_region_watch *w, struct pl_buf *text)
{
	if (w->cut > 0)
		pl_buf_printf(text, "; %u region files were truncated, %" PRIu64 " pages lost",
			w->cut, w->lost_pages);
	if (w->gone > 0)
		pl_buf_printf(text,
			"; %u region files were removed or made anew: writes since then are lost",
			w->gone);
}

const struct pl_region_watch_names pl_region_watch_dta = {
	.cut = "pathline_dta_out_cut_regions",
	.lost = "pathline_dta_out_lost_pages",
	.gone = "pathline_dta_out_gone_regions",
	.removals = "pathline_dta_out_removals",
};
const struct pl_region_watch_names pl_region_watch_rdma = {
	.cut = "pathline_rdma_cut_regions",
	.lost = "pathline_rdma_lost_pages",
	.gone = "pathline_rdma_gone_regions",
	.removals = "pathline_rdma_removals",
};

void pl_region_watch_account(const struct pl_account *a, const struct pl_region_watch_names *names,
	const struct pl_region_watch *w)
{
	pl_account_gauge(a, "cut_regions", names->cut,
		"Regions whose files were cut while they were open.", w->cut);
	pl_account_gauge(a, "lost_pages", names->lost, "Pages that their regions lost by that.",
		w->lost_pages);
	pl_account_gauge(a, "gone_regions", names->gone,
		"Regions whose files were removed or made anew while they were open: readers of the name do not find new writes.",
		w->gone);
	pl_account_counter(a, "removals", names->removals,
		"Times that such a file was found removed or made anew.", w->removals);
}
