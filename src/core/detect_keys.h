/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Part of detect_steps.h: keys of queues, ports, buffers and links, and hops made from keys. */
#pragma once

#include "core/detect_steps.h"

/* Keys are put together as words: parts stored one by one and read again as words would wait for
 * each other. */
PL_CORE_INLINE void pl_core_place_words(
	struct pl_core_place_key *k, uint64_t node, uint32_t port, uint32_t queue, uint32_t has)
{
	pl_core_word *w = (pl_core_word *)k;

	w[0] = node;
	w[1] = port | (uint64_t)(queue & 0xffff) << 32 | (uint64_t)has << 48;
}

PL_CORE_INLINE void pl_core_place_key(struct pl_core_place_key *k, const struct pl_core_hop *h)
{
	uint32_t port = h->present & PL_HOP_HAS_egress_port ? PL_CORE_HAS_PORT : 0;
	uint32_t queue = h->present & PL_HOP_HAS_queue ? PL_CORE_HAS_QUEUE : 0;

	pl_core_place_words(k, h->node, port != 0 ? h->egress_port : 0, queue != 0 ? h->queue : 0,
		port | queue);
}

PL_CORE_INLINE void pl_core_port_key(struct pl_core_place_key *k, const struct pl_core_hop *h)
{
	int port = (h->present & PL_HOP_HAS_egress_port) != 0;

	pl_core_place_words(k, h->node, port ? h->egress_port : 0, 0, port ? PL_CORE_HAS_PORT : 0);
}

PL_CORE_INLINE void pl_core_buffer_key(struct pl_core_place_key *k, const struct pl_core_hop *h)
{
	int buffer = (h->present & PL_HOP_HAS_buffer) != 0;

	pl_core_place_words(k, h->node, buffer ? h->buffer : 0, buffer ? 1 : 0, PL_CORE_HAS_BUFFER);
}

PL_CORE_INLINE void pl_core_link_key(struct pl_core_link_key *k, const struct pl_core_hop *h)
{
	int in = (h->present & PL_HOP_HAS_ingress_port) != 0;
	int out = (h->before_present & PL_HOP_HAS_egress_port) != 0;
	pl_core_word *w = (pl_core_word *)k;

	w[0] = h->node;
	w[1] = h->before_node;
	w[2] = (in ? h->ingress_port : 0) | (uint64_t)(out ? h->before_port : 0) << 32;
	w[3] = (in ? PL_CORE_HAS_PORT : 0) | (out ? PL_CORE_HAS_BEFORE : 0);
}

/* Makes a hop that has only the place of a key, for events without a report. */
PL_CORE_INLINE void pl_core_hop_at(struct pl_core_hop *h, const struct pl_core_place_key *k)
{
	pl_core_clear(h, sizeof(*h));
	h->node = k->node;
	h->present = PL_HOP_HAS_node;
	if (k->has & PL_CORE_HAS_PORT) {
		h->egress_port = k->port;
		h->present |= PL_HOP_HAS_egress_port;
	}
	if (k->has & PL_CORE_HAS_QUEUE) {
		h->queue = k->queue;
		h->present |= PL_HOP_HAS_queue;
	}
	if ((k->has & PL_CORE_HAS_BUFFER) && k->queue != 0) {
		h->buffer = (uint8_t)k->port;
		h->present |= PL_HOP_HAS_buffer;
	}
}

PL_CORE_INLINE void pl_core_hop_on(struct pl_core_hop *h, const struct pl_core_link_key *k)
{
	pl_core_clear(h, sizeof(*h));
	h->node = k->node;
	h->present = PL_HOP_HAS_node;
	if (k->has & PL_CORE_HAS_PORT) {
		h->ingress_port = k->ingress_port;
		h->present |= PL_HOP_HAS_ingress_port;
	}
	h->before_node = k->peer;
	h->before_present = PL_HOP_HAS_node;
	if (k->has & PL_CORE_HAS_BEFORE) {
		h->before_port = k->peer_port;
		h->before_present |= PL_HOP_HAS_egress_port;
	}
}
