/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The tables of layouts that core/report_core.h looks into, filled by what wire/int_layout.c knows.
 * A layout is added while a kernel program reads the table; but for pl_layouts_follow it is never
 * changed after.
 */
#pragma once

#include "core/report_scratch.h"

/* The layouts that most exporters use, so that their first reports are settled too. Before the
 * first pl_layouts_learn: the places of keys differ from one table to the next. */
void pl_layouts_usual(struct pl_core_layouts *layouts);

/* The layout of a key (pl_int_layout_key, pl_core_own_key). 0, also when it is there already;
 * -ENOENT: there is none; -ENOSPC: its places are taken. One thread at a time. */
int pl_layouts_learn(struct pl_core_layouts *layouts, uint64_t key);

/* Whether reports whose packets have a number of their flow are escalated (decision 19), from the
 * next one on. */
void pl_layouts_follow(struct pl_core_layouts *layouts, bool on);
