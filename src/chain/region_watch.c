/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds regions whose files were cut. */
#include "chain/region_watch.h"

#include "runtime/say.h"

#define LOOK_NS UINT64_C(100000000)

void pl_region_watch_look(struct pl_region_watch *w, uint64_t now_ns, pl_region_watched *get,
	void *arg, bool *told, unsigned int n)
{
	uint64_t lost = 0;

	if (now_ns < w->next_ns)
		return;
	for (unsigned int i = 0; i < n; i++) {
		const char *path;
		const struct pl_region *g = get(arg, i, &path);
		struct pl_region_info info;

		pl_region_get_info(g, &info);
		lost += info.lost_pages;
		if (told[i] || !pl_region_is_cut(g))
			continue;
		told[i] = true;
		w->cut++;
		pl_say("%s was truncated while it was open: writes beyond its end are lost; create it again and restart",
			path);
	}
	w->lost_pages = lost;
	if (now_ns != UINT64_MAX)
		w->next_ns = now_ns + LOOK_NS;
}

void pl_region_watch_account(const struct pl_account *a, const char *cut_name,
	const char *lost_name, const struct pl_region_watch *w)
{
	pl_account_gauge(a, "cut_regions", cut_name,
		"Regions whose files were cut while they were open.", w->cut);
	pl_account_gauge(a, "lost_pages", lost_name, "Pages that their regions lost by that.",
		w->lost_pages);
}
