/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Events in the form of options: KIND@START[+DURATION][:KEY=VALUE,…]
 *
 *   path@10s+20s                  a link on the path of flow 0 fails for 20 s (link=2-5: that one)
 *   queue@20s+10s:depth=40000     a queue on that path builds up and drains (node=, port=, queue=)
 *   loss@35s+3s:ratio=0.5         half of the reports are lost (node=: only that node's)
 *   drop@40s+2s:ratio=0.1         a node drops packets (node=, reason=)
 *   restart@50s:node=3            a node's report sequence starts again
 *
 * every=30s repeats any of them.
 */
#pragma once

#include "gen/gen.h"

int pl_gen_event_parse(struct pl_gen_event *ret, const char *text, struct pl_diag *diag);

/* Events of the demonstration: a path change, a queue build-up and a burst of lost reports within
 * the first half minute, then again every minute. Appends to cfg->events. */
void pl_gen_story(struct pl_gen_cfg *cfg);
