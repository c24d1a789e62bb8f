/* SPDX-License-Identifier: BSD-2-Clause */
/* Traffic between hosts of a simulated lab: asks its process to send, and for the counters. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "lab/control.h"
#include "lab/traffic.h"

#define NUMBER_MAX  24
/* Time for packets that are in flight when all is sent. */
#define PATIENCE_NS UINT64_C(20000000000)

static int ask_traffic(const struct pl_lab_found *f, const struct pl_lab_traffic *t,
	unsigned long *ret_first, unsigned long long *ret_end_ns, struct pl_diag *diag)
{
	char numbers[7 + PL_LAB_SENDERS_MAX][NUMBER_MAX];
	const char *words[8 + PL_LAB_SENDERS_MAX] = { "traffic" };
	const uint64_t values[] = { t->kind, t->rate_bps, t->size, t->duration_ns, t->on_ns,
		t->off_ns };
	struct pl_buf out = { 0 };
	unsigned int n = 0;
	int r;

	for (unsigned int i = 0; i < 6; i++)
		snprintf(numbers[n++], NUMBER_MAX, "%llu", (unsigned long long)values[i]);
	for (unsigned int i = 0; i < t->n_from; i++)
		snprintf(numbers[n++], NUMBER_MAX, "%u", t->from[i]);
	snprintf(numbers[n++], NUMBER_MAX, "%u", t->to);
	for (unsigned int i = 0; i < n; i++)
		words[1 + i] = numbers[i];
	r = pl_lab_ask(f, words, n + 1, &out, diag);
	if (r == 0 &&
		(out.data == NULL || sscanf(out.data, "%lu %llu", ret_first, ret_end_ns) != 2))
		r = -EPROTO;
	pl_buf_done(&out);
	return r;
}

/* Gets the flows' accounts, the number of packets in flight, and the simulated time. */
static int ask_flows(const struct pl_lab_found *f, unsigned long first, unsigned int n,
	struct pl_lab_traffic_account *ret, unsigned long long *ret_held,
	unsigned long long *ret_now_ns, struct pl_diag *diag)
{
	char first_text[NUMBER_MAX], count_text[NUMBER_MAX];
	const char *words[] = { "flows", first_text, count_text };
	struct pl_buf out = { 0 };
	const char *at;
	int r, used = 0;

	snprintf(first_text, sizeof(first_text), "%lu", first);
	snprintf(count_text, sizeof(count_text), "%u", n);
	r = pl_lab_ask(f, words, 3, &out, diag);
	at = out.data;
	*ret_held = 0;
	ret[n] = (struct pl_lab_traffic_account){ 0 };
	if (r == 0 && (at == NULL || sscanf(at, "%llu %n", ret_now_ns, &used) != 1))
		r = -EPROTO;
	at = r == 0 ? at + used : at;
	for (unsigned int i = 0; i < n && r == 0; i++) {
		unsigned long long v[5];

		if (at == NULL || sscanf(at, "%llu %llu %llu %llu %llu %n", &v[0], &v[1], &v[2],
					  &v[3], &v[4], &used) != 5) {
			r = -EPROTO;
			break;
		}
		at += used;
		ret[i] = (struct pl_lab_traffic_account){ .sent = v[0], .sent_bytes = v[1] };
		ret[n].came += v[2];
		ret[n].came_bytes += v[3];
		*ret_held += v[4];
	}
	pl_buf_done(&out);
	return r;
}

int pl_lab_traffic_simulated(const struct pl_lab_found *f, const struct pl_lab_traffic *t,
	struct pl_lab_traffic_account ret[PL_LAB_SENDERS_MAX + 1], struct pl_diag *diag)
{
	unsigned long long held = 1, now_ns = 0, end_ns = 0;
	unsigned long first = 0;
	uint64_t patient_ns = UINT64_MAX;
	int r = ask_traffic(f, t, &first, &end_ns, diag);

	/* The end is in simulated time, which falls behind on a slow machine. */
	while (r == 0 && (held > 0 || now_ns < end_ns)) {
		const uint64_t at_ns = pl_clock_mono_ns();

		if (now_ns >= end_ns && patient_ns == UINT64_MAX)
			patient_ns = at_ns + PATIENCE_NS;
		if (at_ns > patient_ns) {
			pl_diag_set(diag, "%llu packets are under way yet", held);
			return -ETIMEDOUT;
		}
		(void)poll(NULL, 0, 50);
		r = ask_flows(f, first, t->n_from, ret, &held, &now_ns, diag);
	}
	return r;
}
