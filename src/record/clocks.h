/* SPDX-License-Identifier: BSD-2-Clause */
/* Which clocks the times are of that a query gets (base/clock_kind.h), told once when there are
 * several. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/clock_kind.h"
#include "base/json.h"

struct pl_clocks {
	uint32_t kinds; /* bits 1 << enum pl_clock_kind; of those that nobody told, none */
	bool told;
};

/* Adds clocks. True when somebody is to be told now: there is more than one for the first time. */
bool pl_clocks_note(struct pl_clocks *clocks, uint32_t kinds);
/* Their names, "nic, kernel", appended. */
void pl_clocks_names(const struct pl_clocks *clocks, struct pl_buf *out);
/* "the records have times of different clocks (nic, kernel): …", appended. */
void pl_clocks_text(const struct pl_clocks *clocks, struct pl_buf *out);
/* Their names, an array that is the value of the member `clocks`. */
void pl_clocks_json(const struct pl_clocks *clocks, struct pl_json *json);
