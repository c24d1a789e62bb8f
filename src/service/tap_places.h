/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Places where a tap sees packets: each source that is an interface has its own observation point,
 * so that the flow cache counts a packet once when it passes several of them (flow/cache.h), and
 * questions can tell them apart.
 */
#pragma once

#include "service/tap.h"

/* Returns whether all sources are interfaces of this host, which then knows its own addresses and
 * the direction of packets. */
bool pl_tap_is_of_this_host(const struct pl_tap_service *t);

/* Numbers the interfaces among t->o->sources, in their order: from t->o->point on, or from 1 if
 * that is 0 and they are several. Returns -EINVAL with diag when a number is too large. */
int pl_tap_places_find(struct pl_tap_service *t, struct pl_diag *diag);
/* Returns -EINVAL with diag when a number would be too large from `point` on. */
int pl_tap_places_fit(const struct pl_tap_service *t, uint16_t point, struct pl_diag *diag);

/* Returns the observation point of source i; `point` is the tap's. */
uint16_t pl_tap_place_point(const struct pl_tap_service *t, size_t source, uint16_t point);

struct pl_flow_point;
/* Describes the interface at each observation point, as it is now. Returns their number. */
uint32_t pl_tap_places_points(struct pl_tap_service *t, struct pl_flow_point *ret);

/* Writes the member "interfaces", with an object for each. */
void pl_tap_places_json(struct pl_tap_service *t, struct pl_json *json);
/* The family of interfaces: its head, and samples of a tap; `tap` is the label of that name, NULL:
 * no such label. */
void pl_tap_places_family(struct pl_exposition *page);
void pl_tap_places_samples(struct pl_tap_service *t, const char *tap, struct pl_exposition *page);
/* Appends ", observation points 1 (tc:eth0) to 2 (tc:eth1)"; nothing for a single source. */
void pl_tap_places_text(const struct pl_tap_service *t, struct pl_buf *text);
