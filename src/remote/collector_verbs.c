/* SPDX-License-Identifier: BSD-2-Clause */
/* A collector's NIC in hardware, or in the kernel (soft-RoCE): verbs/verbs.h. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/num.h"
#include "remote/collector_nic.h"
#include "verbs/verbs.h"

/* Events that wait until the collector asks for their kind. */
#define WAITING_MAX 256

struct collector_nic {
	struct pl_verbs *verbs;
	struct pl_verbs_self self;
	char name[PL_VERBS_NAME_MAX + sizeof("verbs:")];
	uint32_t broken[WAITING_MAX];
	unsigned int n_broken;
	bool have_event; /* the next event of a connection, found while looking for another kind */
	struct pl_verbs_news event;
	uint8_t port_state; /* PL_VERBS_PORT_UP or PL_VERBS_PORT_DOWN, not reported yet */
	bool addresses;     /* change of addresses, not reported yet */
	bool gone, listens;
};

static void nic_close(struct collector_nic *nic)
{
	pl_verbs_close(nic->verbs);
	free(nic);
}

static int nic_open(struct collector_nic **ret, const struct pl_collector_options *wanted,
	uint32_t max_qps, struct pl_diag *diag)
{
	struct collector_nic *nic = calloc(1, sizeof(*nic));
	struct pl_verbs_options options;
	int r;

	if (nic == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	r = pl_verbs_parse(&options, wanted->uri + strlen(PL_COLLECTOR_VERBS), diag);
	options.max_qps = max_qps;
	options.receives = COLLECTOR_RECEIVES;
	if (r == 0)
		r = pl_verbs_open(&nic->verbs, &options, diag);
	if (r < 0) {
		free(nic);
		return r;
	}
	pl_verbs_self(nic->verbs, &nic->self);
	snprintf(nic->name, sizeof(nic->name), "%s%s", PL_COLLECTOR_VERBS, nic->self.device);
	*ret = nic;
	return 0;
}

static const char *nic_name(const struct collector_nic *nic)
{
	return nic->name;
}

static const uint8_t *nic_mac(const struct collector_nic *nic)
{
	return nic->self.mac;
}

static uint16_t nic_mtu(const struct collector_nic *nic)
{
	return nic->self.mtu;
}

static uint8_t nic_depth(const struct collector_nic *nic)
{
	return nic->self.depth;
}

static int nic_fd(const struct collector_nic *nic)
{
	return pl_verbs_fd(nic->verbs);
}

static int nic_region_add(struct collector_nic *nic, const struct pl_rdma_region *region,
	uint32_t *ret_key, struct pl_diag *diag)
{
	return pl_verbs_region_add(nic->verbs, region, ret_key, diag);
}

/* The kernel finds the route. Our address may have changed, or have another index. */
static int nic_path(struct collector_nic *nic, const struct pl_addr *peer, struct pl_roce_path *ret)
{
	int r = pl_verbs_address(nic->verbs, NULL);

	pl_verbs_self(nic->verbs, &nic->self);
	if (r < 0)
		return r;
	*ret = (struct pl_roce_path){ .src = nic->self.gid, .dst = *peer };
	return pl_addr_is_v4(peer) == pl_addr_is_v4(&nic->self.gid) ? 0 : -ENETUNREACH;
}

static int nic_qp_add(struct collector_nic *nic, const struct pl_rdma_qp *qp,
	const uint32_t *connection, uint32_t *ret_qpn)
{
	if (connection != NULL)
		return pl_verbs_connection_qp(nic->verbs, *connection, qp, ret_qpn, NULL);
	return pl_verbs_qp_add(nic->verbs, qp, ret_qpn, NULL);
}

static void nic_qp_remove(struct collector_nic *nic, uint32_t qpn)
{
	(void)pl_verbs_qp_remove(nic->verbs, qpn);
}

static int nic_qp_status(
	const struct collector_nic *nic, uint32_t qpn, struct pl_rdma_qp_status *ret)
{
	(void)nic;
	(void)qpn;
	*ret = (struct pl_rdma_qp_status){ .packets = 0 };
	return 0;
}

/* ---- what happens ---- */

/* Sorts events by kind, up to the next one of a connection. */
static void sort_news(struct collector_nic *nic)
{
	struct pl_verbs_news news;

	while (!nic->have_event && nic->n_broken < WAITING_MAX &&
		pl_verbs_news(nic->verbs, &news)) {
		switch (news.kind) {
		case PL_VERBS_BROKEN:
			nic->broken[nic->n_broken++] = news.qpn;
			break;
		case PL_VERBS_CONNECTION:
			nic->event = news;
			nic->have_event = true;
			break;
		case PL_VERBS_GONE:
			nic->gone = true;
			break;
		case PL_VERBS_ADDRESSES:
			nic->addresses = true;
			break;
		default:
			nic->port_state = news.kind;
			break;
		}
	}
}

static uint32_t nic_completions(
	struct collector_nic *nic, struct pl_rdma_completion *ret, uint32_t max)
{
	uint32_t n = pl_verbs_completions(nic->verbs, ret, max);

	sort_news(nic);
	/* Completions of a queue pair come before its end. */
	while (n < max && nic->n_broken > 0)
		ret[n++] = (struct pl_rdma_completion){ .qpn = nic->broken[--nic->n_broken],
			.kind = PL_RDMA_DONE_ERROR };
	return n;
}

static int nic_listen(struct collector_nic *nic, uint16_t port, uint64_t silent_ns,
	struct pl_addr **ret_own, uint32_t *ret_n, struct pl_diag *diag)
{
	(void)silent_ns; /* librdmacm does not repeat a REP */
	*ret_own = malloc(sizeof(**ret_own));
	if (*ret_own == NULL) {
		pl_diag_set(diag, "%s", strerror(ENOMEM));
		return -ENOMEM;
	}
	nic->listens = true;
	**ret_own = nic->self.gid;
	*ret_n = 1;
	return pl_verbs_listen(nic->verbs, port, diag);
}

static bool nic_event(struct collector_nic *nic, struct pl_connection_event *ret)
{
	sort_news(nic);
	if (!nic->have_event)
		return false;
	nic->have_event = false;
	*ret = nic->event.connection;
	return true;
}

static int nic_accept(
	struct collector_nic *nic, uint32_t id, const struct pl_connection_terms *terms)
{
	return pl_verbs_accept(nic->verbs, id, terms, NULL);
}

/* librdmacm always sends its own reason; the collector's reason goes with it as private data. */
static void nic_reject(struct collector_nic *nic, uint32_t id, uint16_t reason)
{
	const uint8_t told[2] = { (uint8_t)(reason >> 8), (uint8_t)reason };

	(void)pl_verbs_reject(nic->verbs, id, told, sizeof(told));
}

static void nic_disconnect(struct collector_nic *nic, uint32_t id)
{
	(void)pl_verbs_disconnect(nic->verbs, id);
}

/* Tells of changed addresses. Returns -EAGAIN with diag. */
static int tell_addresses(const struct collector_nic *nic, struct pl_diag *diag)
{
	char text[PL_ADDR_TEXT_MAX];

	if (pl_addr_is_unspecified(&nic->self.gid)) {
		pl_diag_set(diag, "%s has no address any more: no peer can connect", nic->name);
		return -EAGAIN;
	}
	pl_format_addr(text, &nic->self.gid);
	pl_diag_set(diag, "the addresses of %s changed: peers connect to %s%s", nic->name, text,
		nic->listens && !nic->self.listening ? ", not by RDMA-CM for now" : "");
	return -EAGAIN;
}

static int nic_step(struct collector_nic *nic, uint64_t now_ns, struct pl_diag *diag)
{
	uint8_t state;

	(void)now_ns;
	pl_verbs_step(nic->verbs);
	sort_news(nic);
	if (nic->gone) {
		pl_diag_set(diag, "%s failed or was removed", nic->name);
		return -ENODEV;
	}
	if (nic->addresses) {
		/* A change of the port is reported in the next turn. */
		nic->addresses = false;
		pl_verbs_self(nic->verbs, &nic->self);
		return tell_addresses(nic, diag);
	}
	state = nic->port_state;
	nic->port_state = 0;
	switch (state) {
	case PL_VERBS_PORT_DOWN:
		pl_diag_set(diag, "the port of %s is down", nic->name);
		return -ENETDOWN;
	case PL_VERBS_PORT_UP:
		pl_diag_set(diag, "the port of %s is up", nic->name);
		return -EAGAIN;
	default:
		return 0;
	}
}

static void nic_leave(struct collector_nic *nic)
{
	pl_verbs_leave(nic->verbs);
	nic->n_broken = 0;
	nic->port_state = 0;
	nic->have_event = nic->addresses = nic->gone = false;
}

static int nic_again(struct collector_nic *nic, struct pl_diag *diag)
{
	int r = pl_verbs_again(nic->verbs, diag);

	pl_verbs_self(nic->verbs, &nic->self);
	return r;
}

static void nic_flush(struct collector_nic *nic)
{
	(void)nic;
}

static uint64_t nic_next_ns(const struct collector_nic *nic)
{
	(void)nic;
	return UINT64_MAX;
}

static void nic_stats(struct collector_nic *nic, struct pl_collector_stats *ret)
{
	ret->verbs = nic->verbs;
}

static const struct collector_connection_ops connections = {
	.listen = nic_listen,
	.event = nic_event,
	.accept = nic_accept,
	.reject = nic_reject,
	.disconnect = nic_disconnect,
	.flush = nic_flush,
};

const struct collector_nic_ops collector_verbs = {
	.open = nic_open,
	.close = nic_close,
	.name = nic_name,
	.mac = nic_mac,
	.mtu = nic_mtu,
	.depth = nic_depth,
	.fd = nic_fd,
	.memory_check = pl_verbs_memory_check,
	.region_add = nic_region_add,
	.path = nic_path,
	.qp_add = nic_qp_add,
	.qp_remove = nic_qp_remove,
	.qp_status = nic_qp_status,
	.completions = nic_completions,
	.step = nic_step,
	.leave = nic_leave,
	.again = nic_again,
	.next_ns = nic_next_ns,
	.stats = nic_stats,
	.connections = &connections,
};
