/* SPDX-License-Identifier: BSD-2-Clause */
/* Clocks of the times that a query gets (base/clock_kind.h), reported once when there are
 * several. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock_kind.h"
#include "base/json.h"

struct pl_clocks {
	uint32_t kinds; /* bits 1 << enum pl_clock_kind; unknown clocks have none */
	bool told;
};

/* Adds clocks. True when they are to be reported now: there is more than one for the first time. */
bool pl_clocks_note(struct pl_clocks *clocks, uint32_t kinds);
/* Appends their names, "nic, kernel". */
void pl_clocks_names(const struct pl_clocks *clocks, struct pl_buf *out);
/* Appends "the records have times of different clocks (nic, kernel): …". */
void pl_clocks_text(const struct pl_clocks *clocks, struct pl_buf *out);
/* Writes their names as an array, the value of the member `clocks`. */
void pl_clocks_json(const struct pl_clocks *clocks, struct pl_json *json);
