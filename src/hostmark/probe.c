/* SPDX-License-Identifier: BSD-2-Clause */
/* Probes: their times, and their socket. */
#include "hostmark/probe.h"

#include <errno.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/num.h"

struct pl_probe {
	struct pl_probe_options o;
	struct pl_probe_stats stats;
	int fd;               /* -1: to be opened with the next probe */
	uint16_t sport;       /* port of its first socket, in network byte order; 0: none yet */
	uint64_t block, slot; /* of the next probe */
	uint64_t number;
};

static const struct pl_stat rows[] = {
#define PL_STAT(...) PL_STAT_ROW(struct pl_probe_stats, __VA_ARGS__)
#include "hostmark/probe_stats.def"
#undef PL_STAT
};
const struct pl_stats pl_probe_stats_list = { rows, sizeof(rows) / sizeof(rows[0]) };

int pl_probe_resolve(struct pl_sockaddr *ret, const char *target, struct pl_diag *diag)
{
	char text[256];
	struct pl_addr addr;

	/* An IPv6 address without brackets has colons, too. */
	if (pl_parse_addr(target, &addr) == 0) {
		pl_sockaddr_set(ret, &addr, PL_PROBE_PORT);
		return 0;
	}
	if (strchr(target, ':') != NULL && target[strlen(target) - 1] != ']')
		return pl_udp_resolve(target, ret, diag);
	if (snprintf(text, sizeof(text), "%s:%u", target, PL_PROBE_PORT) >= (int)sizeof(text))
		return pl_diag_fail(diag, -EINVAL, "a host's name of more than %zu characters",
			sizeof(text) - 8);
	return pl_udp_resolve(text, ret, diag);
}

/* Adds "take proto=udp dst=ADDRESS dport=PORT" before the other rules. */
int pl_probe_add_rule(
	struct pl_tap_rules *rules, const struct pl_sockaddr *to, struct pl_diag *diag)
{
	char address[PL_ADDR_TEXT_MAX], text[PL_ADDR_TEXT_MAX + 64];
	struct pl_tap_rules own = { 0 };
	struct pl_addr addr;
	uint16_t port;
	int r;

	addr = pl_sockaddr_get(&to->sa, &port);
	(void)pl_format_addr(address, &addr);
	snprintf(text, sizeof(text), "take proto=udp dst=%s dport=%u", address, port);
	r = pl_tap_rules_add(&own, text, diag);
	if (r == 0 && rules->n == PL_TAP_RULES_MAX)
		r = pl_diag_fail(diag, -E2BIG, "at most %d rules, with that of the probes",
			PL_TAP_RULES_MAX);
	if (r < 0)
		return r;
	memmove(&rules->rules[1], &rules->rules[0], rules->n * sizeof(rules->rules[0]));
	rules->rules[0] = own.rules[0];
	rules->n++;
	return 0;
}

/* ---- the socket ---- */

static void close_socket(struct pl_probe *p)
{
	if (p->fd >= 0)
		close(p->fd);
	p->fd = -1;
}

/* Binds a new socket to the same port, so that it continues the flow. */
static int bind_port(struct pl_probe *p)
{
	struct sockaddr_storage own = { .ss_family = p->o.to.sa.ss_family };
	socklen_t len = p->o.to.len;
	/* The port has the same place in addresses of both versions. */
	uint16_t *port = &((struct sockaddr_in *)&own)->sin_port;

	*port = p->sport;
	if (bind(p->fd, (struct sockaddr *)&own, len) < 0 ||
		getsockname(p->fd, (struct sockaddr *)&own, &len) < 0)
		return -errno;
	p->sport = *port;
	return 0;
}

static int open_socket(struct pl_probe *p)
{
	int r;

	p->fd = socket(p->o.to.sa.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (p->fd < 0)
		return -errno;
	r = setsockopt(p->fd, SOL_SOCKET, SO_BINDTODEVICE, p->o.dev,
		    (socklen_t)strnlen(p->o.dev, IFNAMSIZ - 1)) < 0
		    ? -errno
		    : bind_port(p);
	if (r < 0)
		close_socket(p);
	return r;
}

static int send_one(struct pl_probe *p)
{
	uint8_t payload[PL_PROBE_BYTES] = { 0 };
	int r = p->fd >= 0 ? 0 : open_socket(p);

	if (r < 0)
		return r;
	for (unsigned int i = 0; i < 8; i++)
		payload[i] = (uint8_t)(p->number >> (56 - 8 * i));
	if (sendto(p->fd, payload, sizeof(payload), MSG_DONTWAIT,
		    (const struct sockaddr *)&p->o.to.sa, p->o.to.len) < 0)
		r = -errno;
	p->number++;
	return r;
}

static uint64_t *cause_of(struct pl_probe_stats *s, int error)
{
	switch (error) {
	case 0:
		return &s->sent;
	case ENETUNREACH:
	case EHOSTUNREACH:
	case EADDRNOTAVAIL:
		return &s->unreachable;
	case ENETDOWN:
	case ENODEV:
	case ENXIO:
		return &s->down;
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
		return &s->full;
	case EPERM:
	case EACCES:
		return &s->refused;
	default:
		return &s->failed;
	}
}

/* ---- when ---- */

uint64_t pl_probe_due_ns(const struct pl_probe *p)
{
	return p->block * p->o.period_ns + p->o.from_ns +
	       (uint64_t)((unsigned __int128)p->slot * p->o.period_ns / p->o.in_block);
}

static void next(struct pl_probe *p)
{
	if (++p->slot < p->o.in_block)
		return;
	p->slot = 0;
	p->block++;
}

/* Sets the next probe to the first one after that time. */
static void begin_at(struct pl_probe *p, uint64_t now_ns)
{
	p->block = now_ns / p->o.period_ns - 1;
	p->slot = 0;
	while (pl_probe_due_ns(p) <= now_ns)
		next(p);
}

/* Skips probes before the last one that is due; also after a clock was set forward. */
static void skip_missed(struct pl_probe *p, uint64_t now_ns)
{
	const uint64_t due = pl_probe_due_ns(p), blocks = (now_ns - due) / p->o.period_ns;
	struct pl_probe behind;

	p->block += blocks;
	p->stats.missed += blocks * p->o.in_block;
	behind = *p;
	for (next(&behind); pl_probe_due_ns(&behind) <= now_ns; next(&behind)) {
		next(p);
		p->stats.missed++;
	}
}

void pl_probe_send(struct pl_probe *p, uint64_t now_ns)
{
	const uint64_t due = pl_probe_due_ns(p);
	int r;

	if (due > now_ns) {
		/* The clock was set back. */
		if (due - now_ns > 2 * p->o.period_ns)
			begin_at(p, now_ns);
		return;
	}
	skip_missed(p, now_ns);
	r = send_one(p);
	++*cause_of(&p->stats, -r);
	/* An interface that went and came back needs another socket. */
	if (r < 0 && r != -EAGAIN)
		close_socket(p);
	next(p);
}

const struct pl_probe_stats *pl_probe_stats(const struct pl_probe *p)
{
	return &p->stats;
}

/* ---- open and close ---- */

int pl_probe_open(struct pl_probe **ret, const struct pl_probe_options *options, uint64_t now_ns,
	struct pl_diag *diag)
{
	struct pl_probe *p = calloc(1, sizeof(*p));
	int r;

	if (p == NULL)
		return pl_diag_fail(diag, -ENOMEM, "%s", strerror(ENOMEM));
	p->o = *options;
	p->fd = -1;
	begin_at(p, now_ns);
	r = open_socket(p);
	if (r < 0) {
		pl_diag_set(diag, "%s: no socket for probes: %s", p->o.dev, strerror(-r));
		pl_probe_close(p);
		return r;
	}
	*ret = p;
	return 0;
}

void pl_probe_close(struct pl_probe *p)
{
	if (p == NULL)
		return;
	close_socket(p);
	free(p);
}
