/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Targets for the reports of an output: a translator over UDP (dta_to_udp.c), or a region of this
 * process (dta_to_region.c). Reports are numbered from 0 in the order in which they were taken. The
 * driver's thread makes all calls.
 */
#pragma once

#include "base/diag.h"
#include "export/exporter.h"
#include "wire/dta.h"

struct pl_dta_to;

struct pl_dta_to_state {
	uint64_t settled; /* reports below this number are delivered or lost */
	uint64_t lost;    /* reports known to be lost since opening */
	uint64_t bytes, errors;
	int error; /* errno of the present trouble; 0: none */
};

struct pl_dta_to_ops {
	/* Returns 0; -EAGAIN: there is no room, and waiting did not help; other errors: refused for
	 * good, and `words` tells why. */
	int (*put)(struct pl_dta_to *to, uint64_t now_ns, const struct pl_dta_report *report);
	/* Sends reports that wait to be sent. */
	void (*flush)(struct pl_dta_to *to, uint64_t now_ns);
	void (*state)(struct pl_dta_to *to, uint64_t now_ns, struct pl_dta_to_state *ret);
	/* Any thread. */
	void (*words)(struct pl_dta_to *to, struct pl_export_words *ret);
	void (*close)(struct pl_dta_to *to); /* frees `to` */
};

struct pl_dta_to {
	const struct pl_dta_to_ops *ops;
	uint64_t taken;  /* reports taken; the driver counts them */
	uint32_t window; /* maximum of reports taken and not settled */
};

struct pl_dta_map;

#define PL_DTA_TO_RING_DEFAULT 8192u

/* Opens a translator at ADDRESS:PORT. ring: number of reports kept until confirmed. sequenced:
 * reports are numbered, and sent again when asked for. -EINVAL with diag, -ENOMEM, of the
 * socket. */
int pl_dta_to_udp(struct pl_dta_to **ret, const char *address, uint32_t ring, bool sequenced,
	struct pl_diag *diag);
/* Checks that `address` is one of a translator. -EINVAL with diag. */
int pl_dta_to_udp_check(const char *address, struct pl_diag *diag);

/* Opens a region file as its only writer. The region must have the map's primitive and size of
 * values, and if it names the content of its values, they must be of the map's record. sync_ns: see
 * struct pl_region_options. */
int pl_dta_to_region(struct pl_dta_to **ret, const char *path, const struct pl_dta_map *map,
	uint64_t sync_ns, struct pl_diag *diag);
