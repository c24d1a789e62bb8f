/* SPDX-License-Identifier: BSD-2-Clause */
/* Polls for senders that flood a socket of a tap, and logs them. */
#include "service/tap_floods.h"

#define LOOK_NS   UINT64_C(1000000000)
#define LANES_MAX 16

unsigned int pl_tap_floods_fds(
	struct pl_tap_service *t, struct pollfd *ret, unsigned int n, unsigned int max)
{
	for (unsigned int i = 0; i < t->n_ports; i++) {
		int fds[LANES_MAX];
		const unsigned int lanes =
			t->ended[i] ? 0 : pl_port_lane_fds(t->ports[i], fds, LANES_MAX);

		t->has_lanes[i] = lanes > 0;
		for (unsigned int k = 0; k < lanes && n < max; k++)
			ret[n++] = (struct pollfd){ .fd = fds[k], .events = POLLIN };
	}
	return n;
}

void pl_tap_floods_look(struct pl_tap_service *t, uint64_t now_ns)
{
	if (now_ns < t->floods_ns)
		return;
	t->floods_ns = now_ns + LOOK_NS;
	for (unsigned int i = 0; i < t->n_ports; i++)
		pl_floods_tell(&t->floods_told[i], t->ports[i], pl_port_name(t->ports[i]), "tap");
}

void pl_tap_floods_json(struct pl_tap_service *t, struct pl_json *json)
{
	pl_json_key(json, "floods");
	pl_json_array(json);
	for (unsigned int i = 0; i < t->n_ports; i++) {
		struct pl_port_flood floods[PL_PORT_FLOODS];
		int error;
		const uint32_t n = pl_port_floods(t->ports[i], floods, &error);

		pl_floods_json(json, floods, n);
	}
	pl_json_array_end(json);
}
