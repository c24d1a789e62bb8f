/* SPDX-License-Identifier: BSD-2-Clause */
/* A service's drops of the kernel: received, and told with their reasons. */
#pragma once

#include "service/tap.h"

/* Whether the source has records of these kinds, as bits: drops come from drops: alone, which has
 * nothing else. Those that others made are of any kind. -EINVAL with diag: it has not. */
int pl_tap_source_makes(const char *uri, uint32_t kinds, struct pl_diag *diag);

int pl_tap_drops_source(struct pl_tap_service *t, const char *uri, struct pl_diag *diag);

/* Behind those in ret, n of them; their number then. */
unsigned int pl_tap_drops_fds(
	const struct pl_tap_service *t, struct pollfd *ret, unsigned int n, unsigned int max);
/* Negative errno with diag. */
int pl_tap_drops_receive(struct pl_tap_service *t, struct pl_diag *diag);
/* The earlier of it and the time of the next look. */
uint64_t pl_tap_drops_due(const struct pl_tap_service *t, uint64_t due_ns);
/* What became of them, added. */
void pl_tap_drops_add(struct pl_tap_service *t, struct pl_tap_stats *sum);

/* The family of drops by reason: its head, and samples of a tap, of the name with the label `tap`,
 * NULL: without. */
void pl_tap_drops_family(struct pl_exposition *page);
void pl_tap_drops_samples(struct pl_tap_service *t, const char *tap, struct pl_exposition *page);
/* The member "drops", where there is a source of them. */
void pl_tap_drops_json(struct pl_tap_service *t, struct pl_json *json);
