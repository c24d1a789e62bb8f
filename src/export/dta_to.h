/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where reports of an output go: a translator over UDP (dta_to_udp.c), or a region of this process
 * (dta_to_region.c). Reports are numbered from 0 in the order in which they were taken. All is
 * called by the exporter's thread.
 */
#pragma once

#include "base/diag.h"
#include "export/exporter.h"
#include "wire/dta.h"

struct pl_dta_to;

struct pl_dta_to_state {
	uint64_t settled; /* reports below have met their fate */
	uint64_t lost;    /* so many of them are known to be lost, since it was opened */
	uint64_t bytes, errors;
	int error; /* errno: why nothing is delivered at the moment; 0 */
};

struct pl_dta_to_ops {
	/* 0, or -EAGAIN: there is no room, and waiting did not help; anything else: it is refused
	 * for good, and words tell why. */
	int (*put)(struct pl_dta_to *to, uint64_t now_ns, const struct pl_dta_report *report);
	/* What waits goes on its way. */
	void (*flush)(struct pl_dta_to *to, uint64_t now_ns);
	void (*state)(struct pl_dta_to *to, uint64_t now_ns, struct pl_dta_to_state *ret);
	/* Any thread. */
	void (*words)(struct pl_dta_to *to, struct pl_export_words *ret);
	void (*close)(struct pl_dta_to *to); /* frees */
};

struct pl_dta_to {
	const struct pl_dta_to_ops *ops;
	uint64_t taken;  /* reports; kept by the exporter */
	uint32_t window; /* the most that are taken and not settled */
};

struct pl_dta_map;

#define PL_DTA_TO_RING_DEFAULT 8192u

/* To a translator at ADDRESS:PORT. ring: reports kept until they are confirmed. sequenced: they are
 * numbered, and sent again when the translator asks. -EINVAL with diag, -ENOMEM, of the socket. */
int pl_dta_to_udp(struct pl_dta_to **ret, const char *address, uint32_t ring, bool sequenced,
	struct pl_diag *diag);
/* Whether it is such an address. */
int pl_dta_to_udp_check(const char *address, struct pl_diag *diag);

/* Into a region file, whose only writer this is. The region must have the map's primitive and size
 * of values, and if it says what its values are, they must be of the map's record. sync_ns: as of
 * struct pl_region_options. */
int pl_dta_to_region(struct pl_dta_to **ret, const char *path, const struct pl_dta_map *map,
	uint64_t sync_ns, struct pl_diag *diag);
