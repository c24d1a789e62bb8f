/* SPDX-License-Identifier: BSD-2-Clause */
/* Keeps a flow cache informed of listening sockets, in two sets: the cache uses one while the other
 * is filled. */
#include "service/tap_listening.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "flow/listening.h"
#include "netio/listening.h"
#include "runtime/say.h"
#include "service/tap.h"
#include "service/tap_places.h"

#define LOOK_NS     UINT64_C(5000000000) /* from the start of one reading to the next */
#define STEPS       8u                   /* of a reading in a turn */
#define FIRST_STEPS 100000u

struct pl_tap_listening {
	struct pl_listening *kernel;
	struct pl_flow_listening *sets[2];
	unsigned int filling; /* index of the set that is filled */
	bool looking, told;
	uint64_t next_ns;
};

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_tap_listening_stats, __VA_ARGS__)
#include "service/tap_listening_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_tap_listening_list = { rows, sizeof(rows) / sizeof(rows[0]) };

static void take_socket(
	void *arg, uint8_t proto, const struct pl_addr *addr, uint16_t port, bool v6only)
{
	pl_flow_listening_socket(arg, proto, addr, port, v6only);
}

static void take_local(void *arg, const struct pl_addr *addr)
{
	pl_flow_listening_local(arg, addr);
}

static void begin_look(struct pl_tap_listening *l)
{
	struct pl_flow_listening *set = l->sets[l->filling];
	const struct pl_listening_range clients = pl_listening_clients(l->kernel);

	pl_flow_listening_clear(set);
	pl_flow_listening_clients(set, clients.from, clients.to);
	pl_listening_begin(l->kernel);
	l->looking = true;
}

/* Replaces the set that the flow cache uses by the one just filled. */
static void finish_look(struct pl_tap_service *t, struct pl_tap_listening *l)
{
	struct pl_flow_listening *set = l->sets[l->filling];

	pl_flow_listening_ready(set);
	pl_flow_cache_set_listening(t->flows, set);
	t->listening_stats.sockets = pl_flow_listening_sockets(set);
	t->listening_stats.left_out = pl_flow_listening_left_out(set);
	l->filling = 1 - l->filling;
}

/* Continues reading the lists. When that fails, the set used before stays. */
static void look(struct pl_tap_service *t, struct pl_tap_listening *l, unsigned int steps)
{
	const struct pl_listening_sink sink = { take_socket, take_local, l->sets[l->filling] };
	struct pl_diag diag = { .text = "" };
	int r = 0;

	while (r == 0 && steps-- > 0)
		r = pl_listening_step(l->kernel, &sink, &diag);
	if (r == 1)
		finish_look(t, l);
	if (r < 0) {
		t->listening_stats.failed++;
		if (!l->told)
			pl_say("%s: roles of flows are told without it", diag.text);
		l->told = true;
	}
	l->looking = r == 0;
}

static void free_listening(struct pl_tap_listening *l)
{
	pl_listening_close(l->kernel);
	pl_flow_listening_free(l->sets[0]);
	pl_flow_listening_free(l->sets[1]);
	free(l);
}

void pl_tap_listening_begin(struct pl_tap_service *t)
{
	struct pl_tap_listening *l;
	struct pl_diag diag = { .text = "no memory" };

	if (!pl_tap_is_of_this_host(t) || t->listening != NULL)
		return;
	l = calloc(1, sizeof(*l));
	if (l == NULL || pl_flow_listening_new(&l->sets[0]) < 0 ||
		pl_flow_listening_new(&l->sets[1]) < 0 ||
		pl_listening_open(&l->kernel, &diag) < 0) {
		pl_say("the sockets that listen are not known (%s): roles of flows are told without "
		       "them",
			diag.text);
		if (l != NULL)
			free_listening(l);
		return;
	}
	t->listening = l;
	begin_look(l);
	look(t, l, FIRST_STEPS);
	l->next_ns = pl_clock_mono_ns() + LOOK_NS;
}

uint64_t pl_tap_listening_turn(struct pl_tap_service *t, uint64_t now_ns)
{
	struct pl_tap_listening *l = t->listening;

	if (l == NULL)
		return UINT64_MAX;
	if (!l->looking && now_ns >= l->next_ns) {
		l->next_ns = now_ns + LOOK_NS;
		begin_look(l);
	}
	if (l->looking)
		look(t, l, STEPS);
	return l->looking ? now_ns : l->next_ns;
}

void pl_tap_listening_end(struct pl_tap_service *t)
{
	if (t->listening == NULL)
		return;
	if (t->flows != NULL)
		pl_flow_cache_set_listening(t->flows, NULL);
	free_listening(t->listening);
	t->listening = NULL;
}
