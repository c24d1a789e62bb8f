/* SPDX-License-Identifier: BSD-2-Clause */
/* A flow of the model (random_model.h), and what its record says of roles and round-trip times. */
#pragma once

#include "flow/test_packets.h"

struct side {
	bool any, isn_known, acked_known, window_known, hole, sample, stamp_any;
	uint32_t top, isn, acked, hole_a, hole_b, sample_top, stamp_newest;
	uint64_t top_ts, sample_ts;
	uint16_t top_id, window;
	uint32_t dups, stamps;
	struct {
		uint32_t value;
		uint64_t ts;
	} stamp[2];
	/* Of this record, by numbers and by timestamps. */
	struct {
		uint64_t times, sum_us;
		uint32_t least_us, lost;
	} by[2];
};

/* Segments of a side that gave no time. */
static void model_lose(struct side *s, unsigned int method, uint32_t n)
{
	s->by[method].lost += n;
}

/* Of one direction: where it counts, and what another place saw that may be added. */
struct view {
	bool placed, moved, watches, copies, waits;
	uint16_t obs, first_obs, watched;
	uint64_t heard, alone_ts, elsewhere;
	struct pl_pkt96 *kept;
	uint32_t n, max;
};

struct model_counts {
	struct pl_flow_counters n;
};

struct mflow {
	struct mflow *next;
	struct pl_flow288 r;
	uint16_t vlan;
	bool fin[2], rst, closed;
	uint64_t closed_ts, gap_ns;
	bool opened, answered, shaken; /* the handshake's steps */
	bool measured;                 /* both of its times are */
	int syn_from, answer_from;     /* direction of the first of them; -1: none */
	bool given;
	unsigned int opener;
	uint64_t syn_ts, syn_ack_ts;
	struct side s[2];
	struct view view[2];
	bool sampled;
};

/* The side with a port that only servers have, of the other's: 0 and 1 as directions; -1. */
static int model_server(const struct pl_flow288 *r)
{
	if (r->proto != 6 && r->proto != 17 && r->proto != 132)
		return -1;
	if ((r->sport < 1024) != (r->dport < 1024))
		return r->sport < 1024 ? 0 : 1;
	if ((r->sport < 32768) != (r->dport < 32768))
		return r->sport < 32768 ? 0 : 1;
	return -1;
}

static void model_role(struct mflow *f)
{
	const int server = model_server(&f->r);

	if (f->syn_from >= 0) {
		f->r.role = f->syn_from == 0 ? 1 : 2;
		f->r.role_by = 1;
	} else if (f->answer_from >= 0) {
		f->r.role = f->answer_from == 0 ? 2 : 1;
		f->r.role_by = 2;
	} else if (server >= 0) {
		f->r.role = server == 0 ? 2 : 1;
		f->r.role_by = PL_FLOW_ROLE_BY_PORTS;
	}
}

/* Round-trip times of both methods. */
static uint64_t model_times(const struct side *s)
{
	return s->by[0].times + s->by[1].times;
}

static uint32_t model_least(const struct side *s)
{
	uint32_t least = UINT32_MAX;

	for (int m = 0; m < 2; m++)
		if (s->by[m].times > 0 && s->by[m].least_us < least)
			least = s->by[m].least_us;
	return least;
}

static uint64_t model_mean(const struct side *s)
{
	return (s->by[0].sum_us + s->by[1].sum_us) / model_times(s);
}

/* min, mean, n, missed */
static void model_method(uint32_t *to, const struct side *s, unsigned int m, bool over)
{
	to[0] = s->by[m].times > 0 ? s->by[m].least_us : 0;
	to[1] = s->by[m].times > 0 ? (uint32_t)(s->by[m].sum_us / s->by[m].times) : 0;
	to[2] = (uint32_t)s->by[m].times;
	to[3] = s->by[m].lost;
	if (over)
		to[3] += m == 0 ? s->sample : s->stamps;
}
