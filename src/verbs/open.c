/* SPDX-License-Identifier: BSD-2-Clause */
/* Opens, loses, finds again and closes a device and its address. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "verbs/verbs_internal.h"

#define GIDS_MAX 1024

/* ---- the device ---- */

/* Finds the context that librdmacm has open: memory and queue pairs must be of the same context as
 * its connections. librdmacm returns -ENODEV without a connection manager in the kernel, and
 * without such a device. */
static struct ibv_context *context_of_cm(struct pl_verbs *v, const char *name)
{
	struct ibv_context *found = NULL;

	v->of_cm = rdma_get_devices(NULL);
	for (int i = 0; v->of_cm != NULL && v->of_cm[i] != NULL; i++) {
		if (strcmp(ibv_get_device_name(v->of_cm[i]->device), name) == 0)
			found = v->of_cm[i];
	}
	if (found == NULL && v->of_cm != NULL) {
		rdma_free_devices(v->of_cm);
		v->of_cm = NULL;
	}
	return found;
}

static int open_device(struct pl_verbs *v, const char *name, struct pl_diag *diag)
{
	struct ibv_device **list;
	int n = 0, r = -ENODEV;

	v->context = context_of_cm(v, name);
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
		pl_diag_set(diag, "there is no RDMA device '%s'; pathline doctor lists the devices",
			name);
	return r;
}

/* Returns true when the system still has the device of a context, and not only one of its name. */
static bool listed(const struct ibv_context *context)
{
	int n = 0;
	struct ibv_device **list = ibv_get_device_list(&n);
	bool found = false;

	for (int i = 0; list != NULL && i < n; i++)
		found = found || list[i] == context->device;
	if (list != NULL)
		ibv_free_device_list(list);
	return found;
}

/*
 * librdmacm keeps a context open until it sees other devices without this one, while the kernel may
 * wait with the removal until nobody has it open: soft-RoCE does. So the descriptors of a context
 * that will not be used again are closed here, by replacing them.
 */
static int close_behind(const struct ibv_context *context)
{
	int nothing = open("/dev/null", O_RDWR | O_CLOEXEC), r = 0;

	if (nothing < 0)
		return -errno;
	if (dup3(nothing, context->async_fd, O_CLOEXEC) < 0 ||
		dup3(nothing, context->cmd_fd, O_CLOEXEC) < 0)
		r = -errno;
	close(nothing);
	return r;
}

/* Releases librdmacm's contexts of a device that was left. Returns negative errno: to be tried
 * again. */
static int release_context(struct pl_verbs *v)
{
	int r = 0;

	if (v->of_cm == NULL)
		return 0;
	if (v->left != NULL && !listed(v->left))
		r = close_behind(v->left);
	if (r < 0)
		return r;
	v->left = NULL;
	rdma_free_devices(v->of_cm);
	v->of_cm = NULL;
	return 0;
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
		pl_diag_set(diag, "port %u of %s is not on Ethernet; pathline supports RoCE only",
			v->options.port, v->options.device);
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
			"%s has room for only %d queue pairs, %d receives of each, %d completions",
			v->options.device, device.max_qp, device.max_qp_wr, device.max_cqe);
		return -EINVAL;
	}
	v->mtu = (uint16_t)(128u << port.active_mtu);
	v->depth = (uint8_t)(device.max_qp_rd_atom < 128 ? device.max_qp_rd_atom : 128);
	return 0;
}

/* ---- its address ---- */

/* Chooses from the table of addresses. Returns -EADDRNOTAVAIL with diag when none is usable. */
static int choose_gid(struct pl_verbs *v, struct pl_diag *diag)
{
	struct verbs_gid *gids = calloc(GIDS_MAX, sizeof(*gids));
	const struct verbs_gid *home = pl_addr_is_unspecified(&v->home.addr) ? NULL : &v->home;
	int chosen;

	if (gids == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	chosen = verbs_gid_find(gids, verbs_gids(v->context, v->options.port, gids, GIDS_MAX), home,
		v->options.gid);
	v->no_gid = chosen < 0;
	if (chosen >= 0) {
		v->gid = gids[chosen];
		if (home == NULL)
			v->home = v->gid;
	} else if (v->options.gid >= 0) {
		pl_diag_set(diag, "port %u of %s has no address with index %d", v->options.port,
			v->options.device, v->options.gid);
	} else {
		pl_diag_set(diag,
			"port %u of %s has no address for RoCEv2: give its interface an IP address",
			v->options.port, v->options.device);
	}
	free(gids);
	return chosen >= 0 ? 0 : -EADDRNOTAVAIL;
}

int verbs_address_again(struct pl_verbs *v, struct pl_diag *diag)
{
	int r = choose_gid(v, diag);

	if (r == 0)
		verbs_listen_again(v);
	return r;
}

int pl_verbs_address(struct pl_verbs *v, struct pl_diag *diag)
{
	struct ibv_gid_entry now;

	if (v->context == NULL) {
		pl_diag_set(diag, "%s does not exist", v->options.device);
		return -ENODEV;
	}
	if (!v->no_gid &&
		ibv_query_gid_ex(v->context, v->options.port, v->gid.index, &now, 0) == 0 &&
		memcmp(now.gid.raw, v->gid.addr.b, sizeof(now.gid.raw)) == 0 &&
		(now.gid_type == IBV_GID_TYPE_ROCE_V2) == v->gid.roce2)
		return 0;
	return verbs_address_again(v, diag);
}

/* ---- opened and closed ---- */

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
	r = watch(v, v->channel->fd);
	if (r == 0)
		r = watch(v, v->context->async_fd);
	if (r == 0 && v->cm != NULL)
		r = watch(v, v->cm->fd);
	if (r == 0)
		r = -ibv_req_notify_cq(v->cq, 0);
	return r < 0 ? verbs_failed(diag, v->options.device, -r) : 0;
}

static int make_tables(struct pl_verbs *v, struct pl_diag *diag)
{
	v->qps = calloc(v->options.max_qps, sizeof(*v->qps));
	v->connections = calloc(v->options.max_qps, sizeof(*v->connections));
	v->done_cap = v->options.max_qps * v->options.receives;
	v->done = calloc(v->done_cap, sizeof(*v->done));
	v->news = calloc(NEWS_MAX, sizeof(*v->news));
	if (v->qps == NULL || v->connections == NULL || v->done == NULL || v->news == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	v->epoll = epoll_create1(EPOLL_CLOEXEC);
	return v->epoll < 0 ? verbs_failed(diag, v->options.device, errno) : 0;
}

/* Makes the objects of the device, apart from the owner's. */
static int start(struct pl_verbs *v, struct pl_diag *diag)
{
	char netdev[16];
	int r = open_device(v, v->options.device, diag);

	if (r == 0)
		r = look_at_port(v, diag);
	if (r == 0)
		r = choose_gid(v, diag);
	if (r == 0 && v->qps == NULL)
		r = make_tables(v, diag);
	if (r == 0)
		r = make_queues(v, diag);
	v->in_sysfs = r == 0 && access(v->context->device->dev_path, F_OK) == 0;
	if (r == 0)
		verbs_netdev(v->options.device, v->options.port, netdev, v->mac);
	return r;
}

int pl_verbs_open(
	struct pl_verbs **ret, const struct pl_verbs_options *options, struct pl_diag *diag)
{
	struct pl_verbs *v = calloc(1, sizeof(*v));
	int r = 0;

	if (v == NULL)
		return -ENOMEM;
	/* For libibverbs: objects of a removed device can then be released like all others. */
	(void)setenv("RDMAV_ALLOW_DISASSOC_DESTROY", "1", 0);
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
		r = start(v, diag);
	if (r < 0) {
		pl_verbs_close(v);
		return r;
	}
	*ret = v;
	return 0;
}

static void unwatch(struct pl_verbs *v, int fd)
{
	(void)epoll_ctl(v->epoll, EPOLL_CTL_DEL, fd, NULL);
}

static void end_objects(struct pl_verbs *v)
{
	for (uint32_t i = 0; v->qps != NULL && i < v->options.max_qps; i++) {
		if (v->qps[i].qp != NULL)
			ibv_destroy_qp(v->qps[i].qp);
		v->qps[i].qp = NULL;
	}
	for (unsigned int i = 0; i < REGIONS_MAX; i++) {
		if (v->regions[i] != NULL)
			ibv_dereg_mr(v->regions[i]);
		v->regions[i] = NULL;
	}
	if (v->cq != NULL)
		ibv_destroy_cq(v->cq);
	v->cq = NULL;
	if (v->channel != NULL) {
		unwatch(v, v->channel->fd);
		ibv_destroy_comp_channel(v->channel);
	}
	v->channel = NULL;
	while (v->n_domains > 0)
		ibv_dealloc_pd(v->domains[--v->n_domains].pd);
}

void pl_verbs_leave(struct pl_verbs *v)
{
	verbs_connections_done(v);
	end_objects(v);
	if (v->cm != NULL) {
		unwatch(v, v->cm->fd);
		rdma_destroy_event_channel(v->cm);
	}
	v->cm = NULL;
	if (v->context != NULL) {
		unwatch(v, v->context->async_fd);
		if (v->own_context)
			ibv_close_device(v->context);
		else
			v->left = v->context;
	}
	v->context = NULL;
	v->own_context = false;
	/* The device may still be there and be opened again, or go only later. */
	if (v->left != NULL && !listed(v->left))
		(void)release_context(v);
	pl_count(&v->counters.immediates_lost, v->done_head - v->done_tail);
	v->done_tail = v->done_head;
	v->news_tail = v->news_head;
	v->told_gone = v->undrained = false;
}

int pl_verbs_again(struct pl_verbs *v, struct pl_diag *diag)
{
	int r = release_context(v);

	if (r < 0)
		return verbs_failed(diag, "cannot close the removed device", -r);
	r = start(v, diag);
	if (r == 0) {
		verbs_listen_again(v);
		if (v->deaf) {
			pl_diag_set(diag, "cannot listen for connections again");
			r = -EADDRNOTAVAIL;
		}
	}
	if (r < 0)
		pl_verbs_leave(v);
	return r;
}

void pl_verbs_close(struct pl_verbs *v)
{
	if (v == NULL)
		return;
	pl_verbs_leave(v);
	v->left = NULL;
	(void)release_context(v); /* closes nothing then */
	if (v->epoll >= 0)
		close(v->epoll);
	free(v->qps);
	free(v->connections);
	free(v->done);
	free(v->news);
	free(v);
}
