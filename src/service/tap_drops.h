/* SPDX-License-Identifier: BSD-2-Clause */
/* Drops of the kernel as a source of a tap: records received, and counters by reason. */
#pragma once

#include "service/tap.h"

/* Checks the kinds of records of a source, as bits: drops: has drops only, and others have none;
 * received records are of any kind. Returns -EINVAL with diag. */
int pl_tap_source_makes(const char *uri, uint32_t kinds, struct pl_diag *diag);

int pl_tap_drops_source(struct pl_tap_service *t, const char *uri, struct pl_diag *diag);

/* Adds descriptors to ret, behind the first n. Returns the number of all. */
unsigned int pl_tap_drops_fds(
	const struct pl_tap_service *t, struct pollfd *ret, unsigned int n, unsigned int max);
/* Returns negative errno with diag. */
int pl_tap_drops_receive(struct pl_tap_service *t, struct pl_diag *diag);
/* Returns the earlier of due_ns and the time of the next check. */
uint64_t pl_tap_drops_due(const struct pl_tap_service *t, uint64_t due_ns);
/* Adds the counters of all sources of drops. */
void pl_tap_drops_add(struct pl_tap_service *t, struct pl_tap_stats *sum);

/* The family of drops by reason: its head, and samples of a tap; `tap` is the label of that name,
 * NULL: no such label. */
void pl_tap_drops_family(struct pl_exposition *page);
void pl_tap_drops_samples(struct pl_tap_service *t, const char *tap, struct pl_exposition *page);
/* Writes the member "drops" when there is a source of drops. */
void pl_tap_drops_json(struct pl_tap_service *t, struct pl_json *json);
