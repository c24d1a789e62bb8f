/* SPDX-License-Identifier: BSD-2-Clause */
/* Carries frames between the nodes of a lab. */
#include "lab/wires.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "dataplane/agenda.h"
#include "dataplane/drop_event.h"
#include "lab/change.h"
#include "lab/plan.h"
#include "lab/truth_account.h"
#include "wire/layers.h"

#define BATCH        32
#define FRAME_BYTES  9216 /* longest frame read */
#define FRAME_MOST   2048 /* longest frame carried: the MTU is 2000 at most (program.h) */
#define PACKET_BYTES (PL_DP_HEADROOM + FRAME_MOST)
#define PACKETS_MAX  262144
#define SOCKET_BYTES (4 << 20)
#define VLAN_AT      12 /* behind the MAC addresses */
#define ROUNDS       4  /* batches of a socket in a turn */

/* One direction of a link. */
struct direction {
	unsigned int link, from; /* sending side */
	int fd;                  /* receives what `from` sends; -1: a bare link */
	struct pl_dp_port *port;
	struct pl_dp_link *dp;
	uint64_t at_ns; /* time of the last call of the queue */
	struct pl_lab_wire_account account;
};

struct pl_lab_wires {
	const struct pl_lab_topology *t;
	struct direction *d; /* two per link */
	unsigned int n;
	struct pl_dp_agenda agenda; /* next time of each direction, by its number */
	int epoll;
	struct pl_dp_pool *pool;
	uint8_t *frames;                                        /* BATCH of FRAME_BYTES */
	void (*event)(void *arg, const struct pl_event *event); /* NULL: none */
	void *arg;
};

/* ---- sockets ---- */

static int open_end(const char *interface)
{
	struct sockaddr_ll sa = { .sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_ALL),
		.sll_ifindex = (int)if_nametoindex(interface) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), one = 1;
	int bytes = SOCKET_BYTES;

	if (fd < 0)
		return -errno;
	/* A large buffer where permitted. Frames sent by the socket must not come back. */
	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof(bytes)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));
	if (setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one, sizeof(one)) < 0 ||
		setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)) < 0 ||
		bind(fd, (struct sockaddr *)&sa, sizeof(sa)) < 0) {
		int r = -errno;

		close(fd);
		return r;
	}
	return fd;
}

static struct pl_lab_impairments of_topology(
	const struct pl_lab_wires *w, const struct direction *d)
{
	const struct pl_lab_link *l = &w->t->links[d->link];
	struct pl_lab_impairments i;

	pl_lab_impairments_of(&l->quality, &i);
	/* A switch has the rate and queue itself, so that its telemetry reports them. */
	if (w->t->nodes[l->end[d->from].node].kind == PL_LAB_SWITCH)
		i.port.rate_bps = 0;
	return i;
}

static int open_direction(
	struct pl_lab_wires *w, struct direction *d, uint64_t seed, struct pl_diag *diag)
{
	struct pl_lab_impairments i;
	struct epoll_event e = { .events = EPOLLIN, .data.u32 = (uint32_t)(d - w->d) };
	char interface[IF_NAMESIZE];
	int r;

	pl_lab_wire_name(d->link, d->from, interface);
	d->fd = open_end(interface);
	if (d->fd < 0 || epoll_ctl(w->epoll, EPOLL_CTL_ADD, d->fd, &e) < 0) {
		r = d->fd < 0 ? d->fd : -errno;
		pl_diag_set(diag, "cannot open a packet socket on %s: %s", interface,
			strerrordesc_np(-r));
		return r;
	}
	i = of_topology(w, d);
	r = pl_dp_port_new(&d->port, &i.port, diag);
	return r == 0 ? pl_dp_link_new(&d->dp, &i.link, seed + (uint64_t)(d - w->d), diag) : r;
}

int pl_lab_wires_new(struct pl_lab_wires **ret, const struct pl_lab_topology *t, uint64_t seed,
	struct pl_diag *diag)
{
	struct pl_lab_wires *w = calloc(1, sizeof(*w));
	uint32_t thing; /* the direction's number */
	int r = -ENOMEM;

	if (w == NULL)
		return -ENOMEM;
	w->t = t;
	w->d = calloc((size_t)2 * t->n_links + 1, sizeof(*w->d));
	w->frames = malloc((size_t)BATCH * FRAME_BYTES);
	w->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (w->d == NULL || w->frames == NULL || w->epoll < 0)
		goto fail;
	r = pl_dp_pool_new(&w->pool, PACKET_BYTES, PACKETS_MAX);
	for (unsigned int i = 0; i < 2 * t->n_links && r == 0; i++) {
		struct direction *d = &w->d[i];

		*d = (struct direction){ .link = i / 2, .from = i % 2, .fd = -1 };
		w->n++;
		r = pl_dp_agenda_add(&w->agenda, &thing);
		if (r == 0 && !t->links[i / 2].quality.bare)
			r = open_direction(w, d, seed, diag);
	}
	if (r < 0)
		goto fail;
	*ret = w;
	return 0;
fail:
	pl_lab_wires_free(w);
	return r;
}

void pl_lab_wires_free(struct pl_lab_wires *w)
{
	if (w == NULL)
		return;
	for (unsigned int i = 0; i < w->n; i++) {
		if (w->d[i].fd >= 0)
			close(w->d[i].fd);
		if (w->d[i].port != NULL)
			pl_dp_port_free(w->d[i].port);
		if (w->d[i].dp != NULL)
			pl_dp_link_free(w->d[i].dp);
	}
	if (w->pool != NULL)
		pl_dp_pool_free(w->pool);
	pl_dp_agenda_done(&w->agenda);
	if (w->epoll >= 0)
		close(w->epoll);
	free(w->frames);
	free(w->d);
	free(w);
}

void pl_lab_wires_tell(
	struct pl_lab_wires *w, void (*event)(void *arg, const struct pl_event *event), void *arg)
{
	w->event = event;
	w->arg = arg;
}

int pl_lab_wires_fd(const struct pl_lab_wires *w)
{
	return w->epoll;
}

/* ---- what becomes of frames ---- */

/* Drops a packet: at its queue, or on the link. Reports it and frees it. */
static void drop(struct pl_lab_wires *w, const struct direction *d, struct pl_dp_packet *pkt,
	bool on_link, uint64_t at_ns)
{
	const struct pl_lab_link *l = &w->t->links[d->link];
	const struct pl_lab_end *from = &l->end[d->from], *to = &l->end[!d->from];
	struct pl_dp_drop_place place = { .node = from->node + 1, .port = from->port };
	struct pl_layers layers;
	struct pl_event e;

	if (w->event != NULL) {
		place.ts_ns = pl_clock_real_ns() - (pl_clock_mono_ns() - at_ns);
		if (on_link)
			place = (struct pl_dp_drop_place){ .ts_ns = place.ts_ns,
				.on_link = true,
				.node = to->node + 1,
				.port = to->port,
				.peer_node = from->node + 1,
				.peer_port = from->port };
		if (pl_layers_walk(&layers, pl_cursor(pkt->data, pkt->len), PL_LINK_ETHERNET,
			    true) != PL_V_OK)
			layers.flow = (struct pl_flow){ .have = 0 };
		pl_dp_drop_event(&e, &place, &layers.flow, pkt->drop);
		w->event(w->arg, &e);
	}
	pl_dp_packet_free(pkt);
}

/* ---- frames ---- */

/*
 * Moves packets from the queue to the link, each at the time its last bit leaves the queue. That
 * time does not depend on when the machine gets to it: the queue is as deep as on a real link.
 */
static void leave_queue(struct pl_lab_wires *w, struct direction *d, uint64_t now_ns)
{
	struct pl_dp_packet *pkt, *copy;
	uint64_t at;

	while ((at = pl_dp_port_next(d->port)) <= now_ns) {
		d->at_ns = at > d->at_ns ? at : d->at_ns;
		pkt = pl_dp_port_dequeue(d->port, d->at_ns);
		if (pkt == NULL)
			break;
		if (!pl_dp_link_send(d->dp, pkt, pkt->out_ns, &copy))
			drop(w, d, pkt, true, d->at_ns);
	}
	d->at_ns = now_ns;
}

static void deliver(struct pl_lab_wires *w, struct direction *d, struct pl_dp_packet *pkt)
{
	/* The interface at the opposite end of the link. */
	const struct direction *back = &w->d[2 * d->link + !d->from];

	if (send(back->fd, pkt->data, pkt->len, MSG_DONTWAIT) == (ssize_t)pkt->len) {
		d->account.delivered++;
		d->account.delivered_bytes += pkt->len;
	} else {
		d->account.refused++;
	}
	pl_dp_packet_free(pkt);
}

static void move(struct pl_lab_wires *w, struct direction *d, uint64_t now_ns)
{
	struct pl_dp_packet *pkt;
	uint64_t a, b;

	leave_queue(w, d, now_ns);
	while ((pkt = pl_dp_link_recv(d->dp, now_ns)) != NULL)
		deliver(w, d, pkt);
	a = pl_dp_port_next(d->port);
	b = pl_dp_link_next(d->dp);
	a = a < b ? a : b;
	/* The direction must not be due at now_ns again, or the loop of pl_lab_wires_run would not
	 * end. */
	pl_dp_agenda_set(&w->agenda, (uint32_t)(d - w->d), a > now_ns ? a : now_ns + 1);
}

/* Reinserts the VLAN tag, which the kernel removes from a frame and gives as auxdata. Returns the
 * frame's length. */
static uint32_t put_vlan_back(struct msghdr *m, uint8_t *frame, uint32_t len)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c != NULL; c = CMSG_NXTHDR(m, c)) {
		struct tpacket_auxdata aux;
		uint16_t tag[2];

		if (c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
			continue;
		memcpy(&aux, CMSG_DATA(c), sizeof(aux));
		if ((aux.tp_status & TP_STATUS_VLAN_VALID) == 0 || len < VLAN_AT ||
			len + sizeof(tag) > FRAME_BYTES)
			continue;
		tag[0] = htons((aux.tp_status & TP_STATUS_VLAN_TPID_VALID) != 0 ? aux.tp_vlan_tpid
										: ETH_P_8021Q);
		tag[1] = htons(aux.tp_vlan_tci);
		memmove(frame + VLAN_AT + sizeof(tag), frame + VLAN_AT, len - VLAN_AT);
		memcpy(frame + VLAN_AT, tag, sizeof(tag));
		len += (uint32_t)sizeof(tag);
	}
	return len;
}

static void take(struct pl_lab_wires *w, struct direction *d, const uint8_t *frame, uint32_t len,
	uint64_t now_ns)
{
	struct pl_dp_packet *pkt;

	d->account.received++;
	d->account.received_bytes += len;
	if (len > FRAME_MOST) {
		d->account.too_long++;
		return;
	}
	pkt = pl_dp_packet_of(w->pool, frame, len);
	if (pkt == NULL) {
		d->account.no_packet++;
		return;
	}
	pkt->headers = (struct pl_dp_headers){ PL_DP_NONE, PL_DP_NONE, PL_DP_NONE, PL_DP_NONE, 0, 0,
		0, false };
	/* Packets that left earlier must not fill the queue. */
	leave_queue(w, d, now_ns);
	if (!pl_dp_port_enqueue(d->port, pkt, now_ns))
		drop(w, d, pkt, false, now_ns);
	/* If the packet can leave at once, the next one must not find it queued. */
	leave_queue(w, d, now_ns);
}

/* Returns true when more may wait. Packets get the time after recvmmsg(): an earlier one would
 * shorten their delay. */
static bool take_batch(struct pl_lab_wires *w, struct direction *d, uint64_t *now_ns)
{
	union {
		char bytes[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
		struct cmsghdr align;
	} control[BATCH];
	struct mmsghdr m[BATCH];
	struct iovec v[BATCH];
	int n;

	for (unsigned int i = 0; i < BATCH; i++) {
		v[i] = (struct iovec){ w->frames + (size_t)i * FRAME_BYTES, FRAME_BYTES };
		m[i] = (struct mmsghdr){ .msg_hdr = { .msg_iov = &v[i],
						 .msg_iovlen = 1,
						 .msg_control = control[i].bytes,
						 .msg_controllen = sizeof(control[i].bytes) } };
	}
	n = recvmmsg(d->fd, m, BATCH, MSG_DONTWAIT, NULL);
	*now_ns = pl_clock_mono_ns();
	for (int i = 0; i < n; i++) {
		uint8_t *frame = w->frames + (size_t)i * FRAME_BYTES;

		take(w, d, frame, put_vlan_back(&m[i].msg_hdr, frame, m[i].msg_len), *now_ns);
	}
	return n == BATCH;
}

uint64_t pl_lab_wires_run(struct pl_lab_wires *w, uint64_t now_ns)
{
	struct epoll_event events[64];
	int n = epoll_wait(w->epoll, events, 64, 0);
	uint32_t thing;

	for (int i = 0; i < n; i++) {
		struct direction *d = &w->d[events[i].data.u32];

		for (unsigned int k = 0; k < ROUNDS && take_batch(w, d, &now_ns); k++)
			;
		move(w, d, now_ns);
	}
	/* The agenda finds the few of thousands of links that are due. */
	while (pl_dp_agenda_first(&w->agenda, &thing) <= now_ns)
		move(w, &w->d[thing], now_ns);
	return pl_dp_agenda_first(&w->agenda, &thing);
}

/* ---- changes ---- */

/* Makes a changed direction due now: its times may differ. */
static void changed(struct pl_lab_wires *w, const struct direction *d)
{
	pl_dp_agenda_set(&w->agenda, (uint32_t)(d - w->d), 0);
}

static int change(struct direction *d, const char *const *words, unsigned int n, bool set,
	struct pl_diag *diag)
{
	struct pl_lab_impairments i = { .port = *pl_dp_port_get(d->port),
		.link = *pl_dp_link_get(d->dp) };
	int r = 0;

	for (unsigned int k = 0; k < n && r == 0; k++)
		r = pl_lab_impair_word(&i, words[k], diag);
	if (r == 0 && set)
		r = pl_dp_port_set(d->port, &i.port, diag);
	if (r == 0 && set)
		return pl_dp_link_set(d->dp, &i.link, diag);
	return r == 0 ? pl_lab_impairments_check(&i, diag) : r;
}

int pl_lab_wires_impair(struct pl_lab_wires *w, const char *link, const char *const *words,
	unsigned int n, struct pl_diag *diag)
{
	unsigned int ends;
	int at = pl_lab_find_directions(w->t, link, &ends, diag), r = 0;

	if (at < 0)
		return at;
	for (unsigned int i = 0; i < 4 && r == 0; i++) {
		struct direction *d = &w->d[2 * (unsigned int)at + i % 2];

		if ((ends >> i % 2 & 1) == 0)
			continue;
		r = change(d, words, n, i >= 2, diag);
		changed(w, d);
	}
	return r;
}

static int restore(struct pl_lab_wires *w, struct direction *d, struct pl_diag *diag)
{
	const struct pl_lab_impairments as = of_topology(w, d);
	int r = pl_dp_port_set(d->port, &as.port, diag);

	if (r == 0)
		r = pl_dp_link_set(d->dp, &as.link, diag);
	changed(w, d);
	return r;
}

int pl_lab_wires_restore(struct pl_lab_wires *w, const char *link, struct pl_diag *diag)
{
	unsigned int ends;
	int at = pl_lab_find_directions(w->t, link, &ends, diag), r = 0;

	if (at < 0)
		return at;
	for (unsigned int i = 0; i < 2 && r == 0; i++) {
		if ((ends >> i & 1) != 0)
			r = restore(w, &w->d[2 * (unsigned int)at + i], diag);
	}
	return r;
}

/* Returns true when the direction has the topology's values. */
static bool is_restored(const struct pl_lab_wires *w, const struct direction *d)
{
	const struct pl_lab_impairments as = of_topology(w, d),
					is = { .port = *pl_dp_port_get(d->port),
						.link = *pl_dp_link_get(d->dp) };

	return pl_lab_impairments_same(&is, &as);
}

int pl_lab_wires_become(struct pl_lab_wires *w, const struct pl_lab_topology *t, struct pl_buf *out,
	struct pl_diag *diag)
{
	char name[PL_LAB_LINK_TEXT_MAX];
	int r = 0;

	w->t = t;
	for (unsigned int i = 0; i < t->n_links && r == 0; i++) {
		struct direction *d = &w->d[2 * i];

		if (t->links[i].quality.bare || (is_restored(w, d) && is_restored(w, d + 1)))
			continue;
		pl_lab_link_text(t, &t->links[i], name);
		pl_lab_change_tell(out, "link", "set", name);
		r = restore(w, d, diag);
		if (r == 0)
			r = restore(w, d + 1, diag);
	}
	return r;
}

/* ---- truth ---- */

/* The kernel resets its counter at each query. */
static void count_missed(struct direction *d)
{
	struct tpacket_stats stats;
	socklen_t len = sizeof(stats);

	if (getsockopt(d->fd, SOL_PACKET, PACKET_STATISTICS, &stats, &len) == 0)
		d->account.missed += stats.tp_drops;
}

void pl_lab_wires_truth(struct pl_lab_wires *w, uint64_t now_ns, struct pl_lab_truth_account *ret)
{
	for (unsigned int i = 0; i < w->n; i++) {
		struct direction *d = &w->d[i];
		const struct pl_lab_truth_link l = { .link = d->link,
			.from = d->from,
			.port = d->port,
			.dp = d->dp,
			.wire = &d->account };

		if (d->fd < 0)
			continue;
		count_missed(d);
		pl_lab_truth_link(w->t, &l, now_ns, ret);
	}
}
