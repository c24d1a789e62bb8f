/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Fast path for the common report: the first report about a flow is encoded by int_gen.c and kept
 * as a template; in the following ones only sequence number, times, values and checksums are
 * written. The bytes are the same (gen_test.c compares them); int_gen.c defines them.
 *
 * Common: one report of an INT-MD sink per datagram, all values available, INT over TCP or UDP.
 * Memory: one template per flow, PL_TEMPLATES_BYTES_MAX in all at most; without room there are no
 * templates. One thread.
 */
#pragma once

#include "gen/int_gen.h"

#define PL_TEMPLATES_BYTES_MAX ((size_t)64 << 20)

struct pl_templates;

/* *ret is NULL when the form is not the common one. packet_bytes: largest size of a packet. */
int pl_templates_new(struct pl_templates **ret, const struct pl_gen_cfg *cfg, size_t packet_bytes);
void pl_templates_free(struct pl_templates *t);

/* Writes the whole packet of an item. Returns false when there is no template of its flow's path
 * (paths are known by the generation of the topology, from 1 on). */
bool pl_templates_put(struct pl_templates *t, struct pl_build *b, const struct pl_gen_item *item,
	uint32_t seq, uint32_t generation);

/* Keeps a packet of int_gen.c, unless its stack was cut or a hop is too small to have values. */
void pl_templates_learn(struct pl_templates *t, const struct pl_build *b,
	const struct pl_gen_item *item, const struct pl_gen_damage *damage, uint32_t generation);
