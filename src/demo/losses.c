/* SPDX-License-Identifier: BSD-2-Clause */
/* Adds up what marking finds in the demonstration's network. */
#include "demo/losses.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "mark/guard.h"

#define PERIOD_NS    UINT64_C(1000000000)
/* Room for the queue that builds up: 0.2 s. */
#define DELAY_NS     UINT64_C(250000000)
#define DEVIATION_NS UINT64_C(50000000)

struct pl_demo_losses {
	struct pl_demo_losses_options options;
	struct pl_lab_metering *metering;
	pthread_mutex_t lock;
	struct pl_demo_link_loss *directions; /* 2 * link + end */
	unsigned int n;
	struct pl_demo_losses_sum sum; /* without links */
};

static bool is_leak(const struct pl_demo_losses *l, const struct pl_demo_link_loss *link)
{
	return strcmp(link->from, l->options.leak_from) == 0 &&
	       strcmp(link->to, l->options.leak_to) == 0;
}

static void note_loss(
	struct pl_demo_losses *l, const struct pl_demo_link_loss *link, uint64_t block)
{
	/* Packets that were marked in the block before may be lost in this one. */
	if (is_leak(l, link) && l->sum.leak_block != 0 && l->sum.found_block == 0)
		l->sum.found_block = block > l->sum.leak_block ? block : l->sum.leak_block;
}

static void take(void *arg, const struct pl_lab_metering_result *result)
{
	struct pl_demo_losses *l = arg;
	const struct pl_mark_result *r = result->by_marking;
	const uint64_t true_lost = result->truth.dropped + result->truth.lost;
	struct pl_demo_link_loss *link = &l->directions[2 * result->link + result->end];

	pthread_mutex_lock(&l->lock);
	l->sum.newest = r->block > l->sum.newest ? r->block : l->sum.newest;
	if ((r->has & PL_MARK_HAS_LOSS) == 0 || r->alarms != 0) {
		l->sum.not_vouched++;
	} else {
		l->sum.results++;
		l->sum.wrong += !result->truth.known || r->loss != (int64_t)true_lost;
		link->sent += r->sent;
		link->lost += r->loss;
		link->true_lost += true_lost;
		if (r->loss > 0)
			note_loss(l, link, r->block);
	}
	pthread_mutex_unlock(&l->lock);
}

static int by_loss(const void *left, const void *right)
{
	const struct pl_demo_link_loss *a = left, *b = right;

	if (a->lost != b->lost)
		return a->lost > b->lost ? -1 : 1;
	return a->node != b->node ? (a->node < b->node ? -1 : 1) : (int)a->port - (int)b->port;
}

void pl_demo_losses_read(struct pl_demo_losses *l, struct pl_demo_losses_sum *ret)
{
	pthread_mutex_lock(&l->lock);
	*ret = l->sum;
	for (unsigned int i = 0; i < l->n && ret->n < PL_DEMO_LINKS_MAX; i++) {
		if (l->directions[i].sent > 0)
			ret->links[ret->n++] = l->directions[i];
	}
	pthread_mutex_unlock(&l->lock);
	qsort(ret->links, ret->n, sizeof(ret->links[0]), by_loss);
}

void pl_demo_losses_leak(struct pl_demo_losses *l, uint64_t now_ns)
{
	pthread_mutex_lock(&l->lock);
	if (l->sum.leak_block == 0)
		l->sum.leak_block = now_ns / PERIOD_NS;
	pthread_mutex_unlock(&l->lock);
}

void pl_demo_losses_path(
	struct pl_demo_losses *l, const struct pl_path *path, const struct pl_hop *hops)
{
	pl_lab_metering_path(l->metering, path, hops);
}

static int make_metering(struct pl_demo_losses *l, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, struct pl_diag *diag)
{
	/* INT has the DSCP between switches. */
	static const char *const bits[] = { "ipv4-reserved" };
	const struct pl_mark_spread spread = { 0, DELAY_NS, DEVIATION_NS };
	struct pl_lab_metering_cfg cfg = {
		.method = PL_MARK_STEP, .period_ns = PERIOD_NS, .result = take, .arg = l
	};
	int r = pl_mark_where_parse(&cfg.where, cfg.method, bits, 1, diag);

	if (r == 0)
		r = pl_mark_guard_check(&cfg.guard_ns, cfg.method, cfg.period_ns, &spread, diag);
	return r == 0 ? pl_lab_metering_new(&l->metering, s, t, &cfg, diag) : r;
}

int pl_demo_losses_new(struct pl_demo_losses **ret, struct pl_lab_simulation *s,
	const struct pl_lab_topology *t, const struct pl_demo_losses_options *options,
	struct pl_diag *diag)
{
	struct pl_demo_losses *l = calloc(1, sizeof(*l));
	int r;

	if (l == NULL)
		return -ENOMEM;
	pthread_mutex_init(&l->lock, NULL);
	l->options = *options;
	l->n = 2 * t->n_links;
	l->directions = calloc(l->n + 1, sizeof(*l->directions));
	r = l->directions != NULL ? make_metering(l, s, t, diag) : -ENOMEM;
	if (r < 0) {
		pl_demo_losses_free(l);
		return r;
	}
	for (unsigned int i = 0; i < l->n; i++) {
		const struct pl_lab_link *link = &t->links[i / 2];
		const struct pl_lab_end *from = &link->end[i % 2], *to = &link->end[1 - i % 2];
		struct pl_demo_link_loss *sum = &l->directions[i];

		memcpy(sum->from, t->nodes[from->node].name, sizeof(sum->from));
		memcpy(sum->to, t->nodes[to->node].name, sizeof(sum->to));
		sum->node = from->node + 1;
		sum->port = from->port;
	}
	*ret = l;
	return 0;
}

void pl_demo_losses_free(struct pl_demo_losses *l)
{
	if (l == NULL)
		return;
	pl_lab_metering_free(l->metering);
	pthread_mutex_destroy(&l->lock);
	free(l->directions);
	free(l);
}
