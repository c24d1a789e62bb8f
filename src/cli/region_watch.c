/* SPDX-License-Identifier: BSD-2-Clause */
#include "cli/region_watch.h"

#include "cli/command.h"

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
		pl_complain(
			"%s was cut while it was open: what is written there is lost; make it anew "
			"and start again",
			path);
	}
	w->lost_pages = lost;
	if (now_ns != UINT64_MAX)
		w->next_ns = now_ns + LOOK_NS;
}

void pl_region_watch_stats(struct pl_json *json, const struct pl_region_watch *w)
{
	pl_json_number(json, "cut_regions", w->cut);
	pl_json_number(json, "lost_pages", w->lost_pages);
}
