/* SPDX-License-Identifier: BSD-2-Clause */
/* Tables of layouts for core/report_core.h, filled by wire/int_layout.c. A layout is added while a
 * kernel program reads the table; only pl_layouts_follow changes it afterwards. */
#pragma once

#include "core/report_scratch.h"

/* Adds the layouts that most exporters use, so that their first reports are settled too. Call it
 * before the first pl_layouts_learn: the places of keys differ from one table to the next. */
void pl_layouts_usual(struct pl_core_layouts *layouts);

/* Adds the layout of a key (pl_int_layout_key, pl_core_own_key). Returns 0, also when it is there
 * already; -ENOENT when there is none; -ENOSPC when its places are taken. One thread at a time. */
int pl_layouts_learn(struct pl_core_layouts *layouts, uint64_t key);

/* Sets whether reports whose packets have a number of their flow are escalated (decision 19), from
 * the next one on. */
void pl_layouts_follow(struct pl_core_layouts *layouts, bool on);
