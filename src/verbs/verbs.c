/* SPDX-License-Identifier: BSD-2-Clause */
/* An open device: its memory and its events. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "verbs/verbs_internal.h"

#define LOOK_NS 1000000000u /* interval of looks for changes without an event */

void pl_verbs_self(const struct pl_verbs *v, struct pl_verbs_self *ret)
{
	*ret = (struct pl_verbs_self){ .device = v->options.device,
		.mtu = v->mtu,
		.depth = v->depth,
		.gid_index = v->gid.index,
		.listening = v->n_listeners > 0 && !v->deaf,
		.cm = v->cm != NULL };
	if (!v->no_gid)
		ret->gid = v->gid.addr;
	memcpy(ret->mac, v->mac, 6);
}

static const struct pl_stat stat_rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_verbs_counters, __VA_ARGS__)
#include "verbs/verbs_stats.def"
#define PL_VERBS_EVENT(id, name, help)                                                             \
	PL_STAT(COUNTER, id, name, "pathline_rdma_nic_" name, NULL, help)
#include "verbs/events.def"
#undef PL_VERBS_EVENT
#undef PL_STAT
};
const struct pl_stats pl_verbs_stats_list = { stat_rows, sizeof(stat_rows) / sizeof(stat_rows[0]) };

const struct pl_verbs_counters *pl_verbs_counters(const struct pl_verbs *v)
{
	return &v->counters;
}

int pl_verbs_fd(const struct pl_verbs *v)
{
	return v->epoll;
}

/* ---- memory ---- */

struct ibv_pd *verbs_domain(struct pl_verbs *v, uint32_t number)
{
	struct ibv_pd *pd;

	for (unsigned int i = 0; i < v->n_domains; i++) {
		if (v->domains[i].number == number)
			return v->domains[i].pd;
	}
	if (v->n_domains == DOMAINS_MAX) {
		errno = ENOSPC;
		return NULL;
	}
	if (v->context == NULL) {
		errno = ENODEV;
		return NULL;
	}
	pd = ibv_alloc_pd(v->context);
	if (pd != NULL) {
		v->domains[v->n_domains].number = number;
		v->domains[v->n_domains++].pd = pd;
	}
	return pd;
}

int pl_verbs_region_add(struct pl_verbs *v, const struct pl_rdma_region *region, uint32_t *ret_key,
	struct pl_diag *diag)
{
	uint64_t base = (uintptr_t)region->base;
	uint64_t va = region->va != 0 ? region->va : base;
	struct ibv_pd *pd = verbs_domain(v, region->domain);
	struct ibv_mr *mr;

	if (pd == NULL)
		return verbs_failed(diag, "cannot create a protection domain", errno);
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (v->regions[i] != NULL)
			continue;
		mr = va == base ? ibv_reg_mr(pd, region->base, region->bytes,
					  verbs_access(region->access))
				: ibv_reg_mr_iova(pd, region->base, region->bytes, va,
					  verbs_access(region->access));
		if (mr == NULL && errno == ENOMEM) {
			pl_diag_set(diag,
				"%s cannot lock %" PRIu64
				" bytes of memory: ulimit -l unlimited, or "
				"LimitMEMLOCK=infinity of the service",
				v->options.device, region->bytes);
			return -ENOMEM;
		}
		if (mr == NULL)
			return verbs_failed(diag, "the NIC cannot register the memory", errno);
		v->regions[i] = mr;
		*ret_key = mr->rkey;
		return 0;
	}
	pl_diag_set(diag, "at most %d regions", REGIONS_MAX);
	return -ENOSPC;
}

int pl_verbs_region_remove(struct pl_verbs *v, uint32_t key)
{
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (v->regions[i] != NULL && v->regions[i]->rkey == key) {
			int error = ibv_dereg_mr(v->regions[i]);

			if (error == 0)
				v->regions[i] = NULL;
			return -error;
		}
	}
	return -ENOENT;
}

/* ---- what it tells ---- */

struct verbs_told *verbs_tell(struct pl_verbs *v, enum pl_verbs_news_kind kind)
{
	struct verbs_told *told = &v->news[v->news_head % NEWS_MAX];

	if (v->news_head - v->news_tail == NEWS_MAX) {
		pl_count(&v->counters.news_lost, 1);
		return NULL;
	}
	v->news_head++;
	memset(told, 0, sizeof(*told));
	told->news.kind = (uint8_t)kind;
	return told;
}

bool pl_verbs_news(struct pl_verbs *v, struct pl_verbs_news *ret)
{
	if (v->news_tail == v->news_head)
		return false;
	v->fetched = v->news[v->news_tail++ % NEWS_MAX];
	*ret = v->fetched.news;
	if (ret->connection.terms.private_len > 0)
		ret->connection.terms.private = v->fetched.private;
	return true;
}

static void gone(struct pl_verbs *v)
{
	if (!v->told_gone)
		v->told_gone = verbs_tell(v, PL_VERBS_GONE) != NULL;
}

static void queue_event(struct pl_verbs *v, struct pl_counter *counter, const struct ibv_qp *qp)
{
	struct verbs_qp *q = verbs_find(v, qp->qp_num);

	pl_count(counter, 1);
	if (q != NULL)
		verbs_broken(v, q);
}

static void take_event(struct pl_verbs *v, const struct ibv_async_event *e)
{
	struct pl_verbs_counters *c = &v->counters;
	bool here = e->element.port_num == v->options.port;

	switch (e->event_type) {
	case IBV_EVENT_QP_FATAL:
		queue_event(v, &c->queue_fatal, e->element.qp);
		break;
	case IBV_EVENT_QP_REQ_ERR:
		queue_event(v, &c->request_error, e->element.qp);
		break;
	case IBV_EVENT_QP_ACCESS_ERR:
		queue_event(v, &c->access_error, e->element.qp);
		break;
	case IBV_EVENT_COMM_EST:
		pl_count(&c->communication, 1);
		break;
	case IBV_EVENT_CQ_ERR:
		/* All queue pairs share this queue: no completions come any more. */
		pl_count(&c->completion_error, 1);
		gone(v);
		break;
	case IBV_EVENT_PORT_ERR:
		pl_count(&c->port_down, 1);
		if (here)
			verbs_tell(v, PL_VERBS_PORT_DOWN);
		break;
	case IBV_EVENT_PORT_ACTIVE:
		pl_count(&c->port_up, 1);
		if (here)
			verbs_tell(v, PL_VERBS_PORT_UP);
		break;
	case IBV_EVENT_GID_CHANGE:
		pl_count(&c->addresses, 1);
		if (!here)
			break;
		(void)verbs_address_again(v, NULL);
		verbs_tell(v, PL_VERBS_ADDRESSES);
		break;
	case IBV_EVENT_DEVICE_FATAL:
		pl_count(&c->device_gone, 1);
		gone(v);
		break;
	default:
		pl_count(&c->other, 1);
		break;
	}
}

static void take_events(struct pl_verbs *v)
{
	struct ibv_async_event e;

	while (ibv_get_async_event(v->context, &e) == 0) {
		take_event(v, &e);
		ibv_ack_async_event(&e);
	}
}

/* Requests the wake-up before it checks, so that no completion is missed in between. */
static void take_completions(struct pl_verbs *v)
{
	struct ibv_cq *cq;
	unsigned int n = 0;
	void *context;

	while (ibv_get_cq_event(v->channel, &cq, &context) == 0)
		n++;
	if (n > 0) {
		ibv_ack_cq_events(v->cq, n);
		if (ibv_req_notify_cq(v->cq, 0) != 0)
			gone(v);
	}
	if (n > 0 || v->undrained)
		verbs_drain(v);
}

/* Checks for a removed device: only users with connections or listeners get an event. */
static void look(struct pl_verbs *v)
{
	const uint64_t now_ns = pl_clock_mono_ns();

	if (now_ns < v->look_ns)
		return;
	v->look_ns = now_ns + LOOK_NS;
	if (!v->told_gone && v->in_sysfs && access(v->context->device->dev_path, F_OK) < 0) {
		pl_count(&v->counters.device_gone, 1);
		gone(v);
	}
	if (v->deaf && verbs_address_again(v, NULL) == 0 && !v->deaf)
		verbs_tell(v, PL_VERBS_ADDRESSES);
}

void pl_verbs_step(struct pl_verbs *v)
{
	if (v->context == NULL)
		return;
	take_events(v);
	take_completions(v);
	if (v->cm != NULL)
		verbs_connections_step(v);
	look(v);
}
