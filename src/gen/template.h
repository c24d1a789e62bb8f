/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The usual report, made by changing what changes: the first report about a flow is encoded by
 * int_gen.c and kept as a template; of the following ones only sequence number, times, values and
 * checksums are written. The bytes are the same (gen_test.c holds one against the other); int_gen.c
 * is the definition.
 *
 * Usual: one report of an INT-MD sink per datagram, all values available, INT over TCP or UDP.
 * Memory: one template per flow, as much as PL_TEMPLATES_BYTES_MAX in all; without room there are
 * none. Not for several threads.
 */
#pragma once

#include "gen/int_gen.h"

#define PL_TEMPLATES_BYTES_MAX ((size_t)64 << 20)

struct pl_templates;

/* *ret is NULL when the form is not the usual one. packet_bytes: the longest that a packet can
 * be. */
int pl_templates_new(struct pl_templates **ret, const struct pl_gen_cfg *cfg, size_t packet_bytes);
void pl_templates_free(struct pl_templates *t);

/* The whole packet of an item; false when there is no template of its flow's path (paths are known
 * by the generation of the topology, from 1 on). */
bool pl_templates_put(struct pl_templates *t, struct pl_build *b, const struct pl_gen_item *item,
	uint32_t seq, uint32_t generation);

/* Keeps a packet that int_gen.c has made, unless its stack was cut or a hop is too small to
 * tell. */
void pl_templates_learn(struct pl_templates *t, const struct pl_build *b,
	const struct pl_gen_item *item, const struct pl_gen_damage *damage, uint32_t generation);
