/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps which clocks records have times of. */
#include "record/clocks.h"

bool pl_clocks_note(struct pl_clocks *c, uint32_t kinds)
{
	c->kinds |= kinds & ~(1u << PL_STAMP_NONE);
	if (c->told || !pl_clocks_differ(c->kinds))
		return false;
	c->told = true;
	return true;
}

void pl_clocks_names(const struct pl_clocks *c, struct pl_buf *out)
{
	const char *between = "";

	for (unsigned int kind = 0; kind < PL_STAMP_KINDS; kind++) {
		if ((c->kinds >> kind & 1) == 0)
			continue;
		pl_buf_printf(out, "%s%s", between, pl_clock_name((enum pl_clock_kind)kind));
		between = ", ";
	}
}

void pl_clocks_text(const struct pl_clocks *c, struct pl_buf *out)
{
	pl_buf_str(out, "the records have times of different clocks (");
	pl_clocks_names(c, out);
	pl_buf_str(out,
		"): they may be apart by more than what is asked for, in joins, windows and "
		"differences of times");
}

void pl_clocks_json(const struct pl_clocks *c, struct pl_json *json)
{
	pl_json_key(json, "clocks");
	pl_json_array(json);
	for (unsigned int kind = 0; kind < PL_STAMP_KINDS; kind++) {
		if ((c->kinds >> kind & 1) != 0)
			pl_json_str(json, pl_clock_name((enum pl_clock_kind)kind));
	}
	pl_json_array_end(json);
}
