/* SPDX-License-Identifier: BSD-2-Clause */
/* A device opened, its memory, and what it tells. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/num.h"
#include "verbs/verbs_internal.h"

#define GIDS_MAX 1024

/* ---- opening ---- */

/* Those that librdmacm has open anyway: memory and queue pairs must be of the same context as its connections. It says
 * -ENODEV without a connection manager in the kernel, and where it has no such device. */
static struct ibv_context *context_of_cm(const char *name)
{
	struct ibv_context **list = rdma_get_devices(NULL), *found = NULL;

	for (int i = 0; list != NULL && list[i] != NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]->device), name) == 0)
			found = list[i];
	}
	if (list != NULL)
		rdma_free_devices(list);
	return found;
}

static int open_device(struct pl_verbs *v, const char *name, struct pl_diag *diag)
{
	struct ibv_device **list;
	int n = 0, r = -ENODEV;

	v->context = context_of_cm(name);
	if (v->context != NULL) {
		v->cm = rdma_create_event_channel();
		return 0;
	}
	list = ibv_get_device_list(&n);
	if (list == NULL)
		return verbs_failed(diag, "this system has no RDMA devices", errno);
	for (int i = 0; i < n && v->context == NULL; i++) {
		if (strcmp(ibv_get_device_name(list[i]), name) == 0) {
			v->context = ibv_open_device(list[i]);
			r = v->context != NULL ? 0 : verbs_failed(diag, name, errno);
		}
	}
	ibv_free_device_list(list);
	v->own_context = v->context != NULL;
	if (r == -ENODEV)
		pl_diag_set(diag,
			"there is no RDMA device '%s'; pathline doctor names those there are",
			name);
	return r;
}

static int look_at_port(struct pl_verbs *v, struct pl_diag *diag)
{
	struct ibv_port_attr port;
	struct ibv_device_attr device;
	int error = ibv_query_port(v->context, v->options.port, &port);
	uint64_t room = 2 * (uint64_t)v->options.max_qps * v->options.receives;

	if (error == 0)
		error = ibv_query_device(v->context, &device);
	if (error != 0) {
		pl_diag_set(diag, "%s has no port %u: %s", v->options.device, v->options.port,
			strerror(error));
		return -ENODEV;
	}
	if (port.link_layer != IBV_LINK_LAYER_ETHERNET) {
		pl_diag_set(diag, "port %u of %s is not on Ethernet: RoCE only", v->options.port,
			v->options.device);
		return -ENOTSUP;
	}
	if (port.state != IBV_PORT_ACTIVE) {
		pl_diag_set(diag, "port %u of %s is not active (%s): is its interface up?",
			v->options.port, v->options.device, ibv_port_state_str(port.state));
		return -ENETDOWN;
	}
	if (v->options.max_qps > (uint64_t)device.max_qp ||
		v->options.receives > (uint64_t)device.max_qp_wr ||
		room > (uint64_t)device.max_cqe) {
		pl_diag_set(diag,
			"%s has room for %d queue pairs, %d receives of each, %d completions",
			v->options.device, device.max_qp, device.max_qp_wr, device.max_cqe);
		return -EINVAL;
	}
	v->mtu = (uint16_t)(128u << port.active_mtu);
	v->depth = (uint8_t)(device.max_qp_rd_atom < 128 ? device.max_qp_rd_atom : 128);
	return 0;
}

static int choose_gid(struct pl_verbs *v, struct pl_diag *diag)
{
	struct verbs_gid *gids = calloc(GIDS_MAX, sizeof(*gids));
	int chosen = -1;
	unsigned int n;

	if (gids == NULL)
		return -ENOMEM;
	n = verbs_gids(v->context, v->options.port, gids, GIDS_MAX);
	if (v->options.gid < 0)
		chosen = verbs_gid_choose(gids, n);
	for (unsigned int i = 0; v->options.gid >= 0 && i < n; i++) {
		if (gids[i].index == (uint32_t)v->options.gid)
			chosen = (int)i;
	}
	if (chosen >= 0) {
		v->gid_index = gids[chosen].index;
		memcpy(v->gid.raw, gids[chosen].addr.b, 16);
	} else if (v->options.gid >= 0) {
		pl_diag_set(diag, "port %u of %s has no address with index %d", v->options.port,
			v->options.device, v->options.gid);
	} else {
		pl_diag_set(diag, "port %u of %s has no address for RoCEv2: has its interface one?",
			v->options.port, v->options.device);
	}
	free(gids);
	return chosen >= 0 ? 0 : -ENODEV;
}

static int watch(struct pl_verbs *v, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data = { .fd = fd } };

	if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0 ||
		epoll_ctl(v->epoll, EPOLL_CTL_ADD, fd, &e) < 0)
		return -errno;
	return 0;
}

static int make_queues(struct pl_verbs *v, struct pl_diag *diag)
{
	int r;

	v->channel = ibv_create_comp_channel(v->context);
	if (v->channel == NULL)
		return verbs_failed(diag, v->options.device, errno);
	v->cq = ibv_create_cq(v->context, (int)(2 * v->done_cap), NULL, v->channel, 0);
	if (v->cq == NULL)
		return verbs_failed(diag, v->options.device, errno);
	v->epoll = epoll_create1(EPOLL_CLOEXEC);
	r = v->epoll < 0 ? -errno : watch(v, v->channel->fd);
	if (r == 0)
		r = watch(v, v->context->async_fd);
	if (r == 0 && v->cm != NULL)
		r = watch(v, v->cm->fd);
	if (r == 0)
		r = -ibv_req_notify_cq(v->cq, 0);
	return r < 0 ? verbs_failed(diag, v->options.device, -r) : 0;
}

static int make_tables(struct pl_verbs *v)
{
	v->qps = calloc(v->options.max_qps, sizeof(*v->qps));
	v->connections = calloc(v->options.max_qps, sizeof(*v->connections));
	v->done_cap = v->options.max_qps * v->options.receives;
	v->done = calloc(v->done_cap, sizeof(*v->done));
	v->news = calloc(NEWS_MAX, sizeof(*v->news));
	return v->qps != NULL && v->connections != NULL && v->done != NULL && v->news != NULL
		       ? 0
		       : -ENOMEM;
}

int pl_verbs_open(
	struct pl_verbs **ret, const struct pl_verbs_options *options, struct pl_diag *diag)
{
	struct pl_verbs *v = calloc(1, sizeof(*v));
	char netdev[16];
	int r = 0;

	if (v == NULL)
		return -ENOMEM;
	v->epoll = -1;
	v->options = *options;
	v->options.port = options->port != 0 ? options->port : 1;
	v->options.max_qps = options->max_qps != 0 ? options->max_qps : 64;
	v->options.receives = options->receives != 0 ? options->receives : 256;
	if (v->options.max_qps > PL_VERBS_QPS_MAX || v->options.receives > PL_VERBS_RECEIVES_MAX) {
		pl_diag_set(diag, "at most %u queue pairs with %u receives each", PL_VERBS_QPS_MAX,
			PL_VERBS_RECEIVES_MAX);
		r = -EINVAL;
	}
	if (r == 0)
		r = open_device(v, v->options.device, diag);
	if (r == 0)
		r = look_at_port(v, diag);
	if (r == 0)
		r = choose_gid(v, diag);
	if (r == 0)
		r = make_tables(v);
	if (r == 0)
		r = make_queues(v, diag);
	if (r < 0) {
		pl_verbs_close(v);
		return r;
	}
	verbs_netdev(v->options.device, v->options.port, netdev, v->mac);
	*ret = v;
	return 0;
}

void pl_verbs_close(struct pl_verbs *v)
{
	if (v == NULL)
		return;
	verbs_connections_done(v);
	for (uint32_t i = 0; v->qps != NULL && i < v->options.max_qps; i++) {
		if (v->qps[i].qp != NULL)
			ibv_destroy_qp(v->qps[i].qp);
	}
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (v->regions[i] != NULL)
			ibv_dereg_mr(v->regions[i]);
	}
	if (v->cq != NULL)
		ibv_destroy_cq(v->cq);
	if (v->channel != NULL)
		ibv_destroy_comp_channel(v->channel);
	while (v->n_domains > 0)
		ibv_dealloc_pd(v->domains[--v->n_domains].pd);
	if (v->cm != NULL)
		rdma_destroy_event_channel(v->cm);
	if (v->own_context)
		ibv_close_device(v->context);
	if (v->epoll >= 0)
		close(v->epoll);
	free(v->qps);
	free(v->connections);
	free(v->done);
	free(v->news);
	free(v);
}

void pl_verbs_self(const struct pl_verbs *v, struct pl_verbs_self *ret)
{
	*ret = (struct pl_verbs_self){ .device = v->options.device,
		.gid = pl_addr_v6(v->gid.raw),
		.mtu = v->mtu,
		.depth = v->depth,
		.gid_index = v->gid_index,
		.cm = v->cm != NULL };
	memcpy(ret->mac, v->mac, 6);
}

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
		return verbs_failed(diag, "cannot make a protection domain", errno);
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
			return verbs_failed(diag, "the card does not take the memory", errno);
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
		/* There is one, and without it nothing is heard of any queue pair. */
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
		if (here)
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

/* Asks to be woken again before it looks, so that nothing comes in between. */
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

void pl_verbs_step(struct pl_verbs *v)
{
	take_events(v);
	take_completions(v);
	if (v->cm != NULL)
		verbs_connections_step(v);
}
