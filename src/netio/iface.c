/* SPDX-License-Identifier: BSD-2-Clause */
/* Follows the interface of a port, and reads the keys of its URI. */
#include "netio/iface.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/num.h"

#define RETRY_NS 250000000L

static int watch(int poll_fd, int fd)
{
	struct epoll_event e = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(poll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

void pl_iface_init(struct pl_iface *iface)
{
	iface->data_fd = iface->timer_fd = iface->beside_fd = iface->kept_fd = iface->port.fd =
		iface->link.fd = -1;
	iface->kept = 0;
}

int pl_iface_open(struct pl_iface *iface, const char *name, const struct pl_iface_ops *ops,
	struct pl_diag *diag)
{
	int r;

	pl_iface_init(iface);
	iface->ops = ops;
	r = pl_link_open(&iface->link, name, diag);
	if (r < 0)
		return r;
	if (!iface->link.set_up) {
		pl_diag_set(diag, "%s is down; bring it up: ip link set %s up", name, name);
		return -ENETDOWN;
	}
	iface->port.fd = epoll_create1(EPOLL_CLOEXEC);
	iface->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
	r = iface->port.fd < 0 || iface->timer_fd < 0 ? -errno : 0;
	if (r == 0)
		r = watch(iface->port.fd, iface->link.fd);
	if (r == 0)
		r = watch(iface->port.fd, iface->timer_fd);
	if (r == 0 && iface->port.sends) {
		iface->kept_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
		r = iface->kept_fd < 0 ? -errno : watch(iface->port.fd, iface->kept_fd);
	}
	if (r < 0)
		pl_diag_set(diag, "%s: %s", name, strerror(-r));
	/* Without a carrier, pl_iface_wait reports the interface when it has one. */
	iface->up = iface->link.up;
	return r;
}

void pl_iface_close(struct pl_iface *iface)
{
	pl_link_close(&iface->link);
	if (iface->timer_fd >= 0)
		close(iface->timer_fd);
	if (iface->kept_fd >= 0)
		close(iface->kept_fd);
	if (iface->port.fd >= 0)
		close(iface->port.fd);
}

int pl_iface_set_data(struct pl_iface *iface, int fd)
{
	/* Closing a descriptor removes it from the epoll set. The socket of a port that sends is
	 * not added: it has nothing to receive, and each transmitted frame would wake the waiting
	 * thread (0.25 us). */
	int r = fd >= 0 && iface->port.mode == PL_PORT_RECV ? watch(iface->port.fd, fd) : 0;

	/* A port whose socket cannot be polled is not open: opening is tried again. */
	iface->data_fd = r == 0 ? fd : -1;
	return r;
}

int pl_iface_set_beside(struct pl_iface *iface, int fd)
{
	iface->beside_fd = fd;
	return watch(iface->port.fd, fd);
}

static void set_timer(struct pl_iface *iface, bool on)
{
	struct itimerspec t = { 0 };

	if (on)
		t.it_value.tv_nsec = t.it_interval.tv_nsec = RETRY_NS;
	(void)timerfd_settime(iface->timer_fd, 0, &t, NULL);
}

static int went(struct pl_iface *iface, const char *what, struct pl_diag *diag)
{
	if (iface->up)
		iface->port.stats.outages++;
	iface->up = false;
	pl_diag_set(diag, "interface %s %s; waiting for it", iface->link.name, what);
	return -ENETDOWN;
}

/* Opens the port again on an interface that is up. Returns -EAGAIN on success and -ENETDOWN on a
 * new error, both with diag; 0 when there is nothing to report. */
static int take_up(struct pl_iface *iface, struct pl_diag *diag)
{
	struct pl_diag why = { .text = "" };
	int r = iface->data_fd < 0 ? iface->ops->again(iface, &why) : 0;

	/* -ENETDOWN: the interface went down again; the link monitor will report it. */
	set_timer(iface, r < 0);
	if (r >= 0) {
		iface->up = true;
		iface->told[0] = '\0';
		pl_diag_set(diag, "interface %s is up", iface->link.name);
		return -EAGAIN;
	}
	if (r == -ENETDOWN || strncmp(iface->told, why.text, sizeof(iface->told) - 1) == 0)
		return 0;
	snprintf(iface->told, sizeof(iface->told), "%s", why.text);
	pl_diag_set(diag, "interface %s is back, but cannot be opened: %s; trying again",
		iface->link.name, why.text);
	return -ENETDOWN;
}

/* Handles changes of the interface up to the first to report: -ENETDOWN or -EAGAIN with diag. 0:
 * none. */
static int follow(struct pl_iface *iface, struct pl_diag *diag)
{
	char before[IF_NAMESIZE];
	int r;

	for (;;) {
		memcpy(before, iface->link.name, sizeof(before));
		switch (pl_link_next(&iface->link)) {
		case PL_LINK_SAME:
			return 0;
		case PL_LINK_DOWN:
			/* There is nothing to retry, and the timer is read only while the interface
			 * is up. */
			set_timer(iface, false);
			return went(iface, "is down", diag);
		case PL_LINK_GONE:
			iface->ops->lost(iface);
			set_timer(iface, false);
			return went(iface, "is gone", diag);
		case PL_LINK_BACK:
		case PL_LINK_UP:
			r = iface->link.up && !iface->up ? take_up(iface, diag) : 0;
			if (r < 0)
				return r;
			break;
		case PL_LINK_RENAMED:
			pl_diag_set(
				diag, "interface %s is now called %s", before, iface->link.name);
			/* A new name does not change whether frames arrive. */
			return iface->up ? -EAGAIN : -ENETDOWN;
		}
	}
}

static int tell_kept(struct pl_iface *iface, struct pl_diag *diag)
{
	const int r = iface->kept;
	uint64_t times;

	(void)!read(iface->kept_fd, &times, sizeof(times));
	pl_diag_set(diag, "%s", iface->kept_words.text);
	iface->kept = 0;
	return r;
}

int pl_iface_wait(struct pl_iface *iface, int timeout_ms, struct pl_diag *diag)
{
	struct pollfd p[4] = { { .fd = iface->data_fd, .events = POLLIN },
		{ .fd = iface->link.fd, .events = POLLIN },
		{ .fd = iface->timer_fd, .events = POLLIN },
		{ .fd = iface->beside_fd, .events = POLLIN } };
	int r, error = 0;
	socklen_t len = sizeof(error);

	if (iface->kept < 0)
		return tell_kept(iface, diag);
	/* A change may be pending from the last call, which returned another one. */
	if (iface->link.again)
		timeout_ms = 0;
	if (poll(p, 4, timeout_ms) <= 0 && !iface->link.again)
		return 0;
	/* A packet socket reports the loss of its interface as a socket error; it is cleared,
	 * because the link monitor reports more. */
	if ((p[0].revents & POLLERR) != 0)
		(void)getsockopt(iface->data_fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (p[1].revents != 0 || iface->link.again) {
		r = follow(iface, diag);
		if (r < 0)
			return r;
	}
	if (p[2].revents != 0 && iface->link.ifindex != 0 && iface->link.up && !iface->up) {
		uint64_t times;

		(void)!read(iface->timer_fd, &times, sizeof(times));
		r = take_up(iface, diag);
		if (r < 0)
			return r;
	}
	return (p[0].revents & POLLIN) != 0 || p[3].revents != 0;
}

void pl_iface_look(struct pl_iface *iface)
{
	const uint64_t one = 1;
	int r = iface->kept < 0 ? 0 : pl_iface_wait(iface, 0, &iface->kept_words);

	if (r < 0) {
		iface->kept = r;
		(void)!write(iface->kept_fd, &one, sizeof(one));
	}
}

/* ---- which frames ---- */

/* Calls use() for each item of "a,b,c", on a copy that it may change. Stops at its first negative
 * result. */
static int each_item(const char *key, const char *text,
	int (*use)(void *arg, const char *item, struct pl_diag *diag), void *arg,
	struct pl_diag *diag)
{
	while (true) {
		size_t len = strcspn(text, ",");
		char item[64];
		int r;

		if (len == 0 || len >= sizeof(item)) {
			pl_diag_set(
				diag, "'%s=' in the URI: an item that is empty or too long", key);
			return -EINVAL;
		}
		memcpy(item, text, len);
		item[len] = '\0';
		r = use(arg, item, diag);
		if (r < 0)
			return r;
		if (text[len] == '\0')
			return 0;
		text += len + 1;
	}
}

static int add_port(void *arg, const char *item, struct pl_diag *diag)
{
	uint64_t v;

	if (pl_parse_u64(item, &v) < 0 || v == 0 || v > 65535) {
		pl_diag_set(diag, "'port=%s' in the URI: not a UDP port, 1 to 65535", item);
		return -EINVAL;
	}
	pl_filter_rules_add_port(arg, (uint16_t)v);
	return 0;
}

static int add_vlan(void *arg, const char *item, struct pl_diag *diag)
{
	uint64_t v;

	if (pl_parse_u64(item, &v) < 0 || v == 0 || v > 4094) {
		pl_diag_set(diag, "'vlan=%s' in the URI: not a VLAN id, 1 to 4094", item);
		return -EINVAL;
	}
	pl_filter_rules_add_vlan(arg, (uint16_t)v);
	return 0;
}

static int add_addr(void *arg, const char *item, struct pl_diag *diag)
{
	struct pl_filter_rules *rules = arg;

	if (rules->naddrs == PL_FILTER_ADDRS_MAX) {
		pl_diag_set(diag, "'dst=' in the URI: more than %d addresses", PL_FILTER_ADDRS_MAX);
		return -EINVAL;
	}
	if (pl_parse_addr(item, &rules->addrs[rules->naddrs]) < 0) {
		pl_diag_set(diag, "'dst=%s' in the URI: not an IPv4 or IPv6 address", item);
		return -EINVAL;
	}
	rules->naddrs++;
	return 0;
}

/* Parses the number behind the colon of "dscp:0x17" or "udp:4790", at most max. -EINVAL with
 * diag. */
static int kind_number(const char *item, uint64_t max, uint64_t *ret, struct pl_diag *diag)
{
	if (pl_parse_u64(strchr(item, ':') + 1, ret) == 0 && *ret <= max)
		return 0;
	pl_diag_set(diag, "'also=%s' in the URI: not a number up to %u behind the ':'", item,
		(unsigned int)max);
	return -EINVAL;
}

static int add_data_port(struct pl_filter_data *data, const char *item, struct pl_diag *diag)
{
	uint64_t v;
	int r = kind_number(item, 65535, &v, diag);

	if (r < 0)
		return r;
	if (data->nports == PL_FILTER_DATA_PORTS_MAX) {
		pl_diag_set(diag, "'also=' in the URI: more than %d UDP ports",
			PL_FILTER_DATA_PORTS_MAX);
		return -EINVAL;
	}
	data->ports[data->nports++] = (uint16_t)v;
	return 0;
}

static int add_kind(void *arg, const char *item, struct pl_diag *diag)
{
	struct pl_filter_rules *rules = arg;
	struct pl_filter_data *data = &rules->data;
	uint64_t v;
	int r;

	if (strcmp(item, "roce1") == 0) {
		rules->roce1 = 1;
	} else if (strcmp(item, "ioam") == 0) {
		data->ioam = 1;
	} else if (strcmp(item, "int") == 0) {
		data->in_band = 1;
	} else if (strcmp(item, "gre") == 0) {
		data->gre = 1;
	} else if (strncmp(item, "udp:", 4) == 0) {
		return add_data_port(data, item, diag);
	} else if (strncmp(item, "dscp:", 5) == 0) {
		r = kind_number(item, 63, &v, diag);
		if (r < 0)
			return r;
		data->dscps |= UINT64_C(1) << v;
	} else {
		pl_diag_set(diag,
			"'also=%s' in the URI: not one of ioam, int, dscp:N, udp:PORT, gre and roce1",
			item);
		return -EINVAL;
	}
	return 0;
}

int pl_iface_rules(const struct pl_uri *uri, struct pl_filter_rules *ret, struct pl_diag *diag)
{
	const char *ports = pl_uri_get(uri, "port"), *addrs = pl_uri_get(uri, "dst"),
		   *vlans = pl_uri_get(uri, "vlan"), *also = pl_uri_get(uri, "also");
	int r;

	memset(ret, 0, sizeof(*ret));
	ret->any_vlan = vlans == NULL;
	/* "port=none": no reports, only the packets that `also` asks for. */
	r = ports != NULL && strcmp(ports, "none") == 0
		    ? 0
		    : each_item("port", ports != NULL ? ports : "32766,54321", add_port, ret, diag);
	if (r == 0 && addrs != NULL)
		r = each_item("dst", addrs, add_addr, ret, diag);
	if (r == 0 && vlans != NULL)
		r = each_item("vlan", vlans, add_vlan, ret, diag);
	if (r == 0 && also != NULL)
		r = each_item("also", also, add_kind, ret, diag);
	return r;
}

int pl_iface_tap_rules(const struct pl_uri *uri, struct pl_filter_rules *ret, struct pl_diag *diag)
{
	static const char *const reports[] = { "port", "dst", "vlan", "also" };

	for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]); i++) {
		if (pl_uri_get(uri, reports[i]) == NULL)
			continue;
		pl_diag_set(diag,
			"'%s' in the URI chooses among reports, and a tap takes every packet; leave it "
			"out and use --rule",
			reports[i]);
		return -EINVAL;
	}
	memset(ret, 0, sizeof(*ret));
	ret->any_vlan = ret->all = 1;
	return 0;
}

int pl_iface_ring(const struct pl_uri *uri, uint32_t *ret, struct pl_diag *diag)
{
	uint64_t v = *ret;
	int r = pl_uri_get_size(uri, "ring", 64, 1u << 20, &v, diag);

	if (r < 0)
		return r;
	if ((v & (v - 1)) != 0) {
		pl_diag_set(
			diag, "'ring=%s' in the URI: not a power of two", pl_uri_get(uri, "ring"));
		return -EINVAL;
	}
	*ret = (uint32_t)v;
	return 0;
}

struct numbers {
	const char *key;
	uint32_t *list, max, n, cap;
};

static int add_numbers(void *arg, const char *item, struct pl_diag *diag)
{
	struct numbers *self = arg;
	char text[64], *dash;
	uint64_t from, to;

	snprintf(text, sizeof(text), "%s", item);
	dash = strchr(text, '-');
	if (dash != NULL)
		*dash++ = '\0';
	if (pl_parse_u64(text, &from) < 0 || pl_parse_u64(dash != NULL ? dash : text, &to) < 0 ||
		from > to || to > self->max) {
		pl_diag_set(diag, "'%s=%s' in the URI: not a number or N-M, up to %u", self->key,
			item, self->max);
		return -EINVAL;
	}
	for (uint64_t v = from; v <= to; v++) {
		for (uint32_t i = 0; i < self->n; i++) {
			if (self->list[i] == v) {
				pl_diag_set(diag, "'%s=' in the URI names %u twice", self->key,
					(unsigned int)v);
				return -EINVAL;
			}
		}
		if (self->n == self->cap) {
			pl_diag_set(diag, "'%s=' in the URI: more than %u", self->key, self->cap);
			return -EINVAL;
		}
		self->list[self->n++] = (uint32_t)v;
	}
	return 0;
}

int pl_iface_numbers(const char *key, const char *text, uint32_t max, uint32_t *ret, uint32_t cap,
	struct pl_diag *diag)
{
	struct numbers self = { .key = key, .list = ret, .max = max, .cap = cap };
	int r = each_item(key, text, add_numbers, &self, diag);

	return r < 0 ? r : (int)self.n;
}
