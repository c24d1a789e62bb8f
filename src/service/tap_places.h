/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where a tap sees packets: each of its sources that is an interface has an observation point of its own, so that the flow
 * cache counts a packet once that passes several of them (flow/cache.h), and questions can tell them apart.
 */
#pragma once

#include "service/tap.h"

/* Numbers the interfaces among t->o->sources, in their order: from t->o->point on, from 1 where that is 0 and
 * they are several. -EINVAL with diag: the numbers do not suffice. */
int pl_tap_places_find(struct pl_tap_service *t, struct pl_diag *diag);

/* The observation point of source i, by the tap's own one. */
uint16_t pl_tap_place_point(const struct pl_tap_service *t, size_t source, uint16_t point);

struct pl_flow_point;
/* What the observation points stand for, as the interfaces are now; how many. */
uint32_t pl_tap_places_points(struct pl_tap_service *t, struct pl_flow_point *ret);

/* The member "interfaces", an object for each. */
void pl_tap_places_json(struct pl_tap_service *t, struct pl_json *json);
/* The family of them: its head, and samples of a tap, of the name with the label `tap`, NULL:
 * without. */
void pl_tap_places_family(struct pl_exposition *page);
void pl_tap_places_samples(struct pl_tap_service *t, const char *tap, struct pl_exposition *page);
/* For people: ", observation points 1 (tc:eth0) to 2 (tc:eth1)"; nothing of one source. */
void pl_tap_places_text(const struct pl_tap_service *t, struct pl_buf *text);
