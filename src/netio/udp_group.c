/* SPDX-License-Identifier: BSD-2-Clause */
/* Manages the UDP sockets that share an address and port, and the BPF program that chooses among
 * them. */
#include "netio/udp_group.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "netio/steer.h"

#define NO_PLACE UINT32_MAX /* the kernel then chooses by its own hash */

struct place {
	int fd;
	unsigned int share, lane; /* lane 0: the share's first socket */
};

struct sender {
	struct pl_prefix who;
	unsigned int share, lane;
};

struct pl_udp_group {
	struct pl_udp_group *next;
	struct sockaddr_storage address; /* as from getsockname */
	unsigned int shares, n_places, n_senders;
	struct sender senders[PL_UDP_SENDERS_MAX];
	struct pl_steer_sender steer_senders[PL_UDP_SENDERS_MAX];
	struct sock_filter code[PL_STEER_CODE_MAX];
	uint32_t *first;       /* place of each share's first socket */
	struct place places[]; /* in the kernel's order; room for all shares and their lanes */
};

/* Protects all groups; binding and closing are rare. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct pl_udp_group *groups;

static uint32_t find_place(const struct pl_udp_group *g, unsigned int share, unsigned int lane)
{
	for (uint32_t i = 0; i < g->n_places; i++) {
		if (g->places[i].share == share && g->places[i].lane == lane)
			return i;
	}
	return NO_PLACE;
}

static int set_int(int fd, int name, int value)
{
	return setsockopt(fd, SOL_SOCKET, name, &value, sizeof(value)) < 0 ? -errno : 0;
}

/* Attaches the program for the group's present sockets. A group that only ever had one socket
 * accepts none, and needs none. */
static int attach(struct pl_udp_group *g)
{
	struct pl_steer steer = { g->first, g->shares, g->steer_senders, g->n_senders };
	struct sock_fprog program = { .filter = g->code };
	int n;

	if (g->n_places == 0 || (g->shares == 1 && g->n_places == 1))
		return 0;
	for (unsigned int i = 0; i < g->shares; i++)
		g->first[i] = find_place(g, i, 0);
	for (unsigned int i = 0; i < g->n_senders; i++) {
		const struct sender *s = &g->senders[i];

		g->steer_senders[i] = (struct pl_steer_sender){ s->who, s->share,
			find_place(g, s->share, s->lane) };
	}
	n = pl_steer_cbpf(&steer, g->code, PL_STEER_CODE_MAX);
	if (n < 0)
		return n;
	program.len = (unsigned short)n;
	return setsockopt(g->places[0].fd, SOL_SOCKET, SO_ATTACH_REUSEPORT_CBPF, &program,
		       sizeof(program)) < 0
		       ? -errno
		       : 0;
}

static struct pl_udp_group *find_group(const struct sockaddr_storage *address)
{
	struct pl_udp_group *g = groups;

	while (g != NULL && memcmp(&g->address, address, sizeof(*address)) != 0)
		g = g->next;
	return g;
}

static struct pl_udp_group *new_group(const struct sockaddr_storage *address, unsigned int shares)
{
	struct pl_udp_group *g =
		calloc(1, sizeof(*g) + (size_t)shares * (1 + PL_UDP_LANES) * sizeof(g->places[0]));

	if (g == NULL)
		return NULL;
	g->first = calloc(shares, sizeof(*g->first));
	if (g->first == NULL) {
		free(g);
		return NULL;
	}
	g->address = *address;
	g->shares = shares;
	g->next = groups;
	groups = g;
	return g;
}

static void end_group(struct pl_udp_group *g)
{
	struct pl_udp_group **at = &groups;

	while (*at != g)
		at = &(*at)->next;
	*at = g->next;
	free(g->first);
	free(g);
}

/* Adds a bound socket to the group of its address; creates the group if there is none. */
static int join(struct pl_udp_group **ret, int fd, unsigned int share, unsigned int shares)
{
	struct sockaddr_storage address;
	socklen_t len = sizeof(address);
	struct pl_udp_group *g;
	int r;

	memset(&address, 0, sizeof(address));
	if (getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return -errno;
	g = find_group(&address);
	if (g == NULL)
		g = new_group(&address, shares);
	if (g == NULL)
		return -ENOMEM;
	/* Sockets of another source on this address could not be told apart from these. */
	if (g->shares != shares || find_place(g, share, 0) != NO_PLACE)
		return -EADDRINUSE;
	g->places[g->n_places++] = (struct place){ fd, share, 0 };
	r = attach(g);
	if (r < 0 && --g->n_places == 0)
		end_group(g);
	if (r == 0)
		*ret = g;
	return r;
}

int pl_udp_group_bind(struct pl_udp_group **ret, int fd, const struct sockaddr *sa, socklen_t len,
	unsigned int share, unsigned int shares)
{
	int r;

	*ret = NULL;
	r = shares > 1 ? set_int(fd, SO_REUSEPORT, 1) : 0;
	if (r < 0)
		return r;
	pthread_mutex_lock(&lock);
	r = bind(fd, sa, len) < 0 ? -errno : join(ret, fd, share, shares);
	pthread_mutex_unlock(&lock);
	return r;
}

/* Binds fd to the group's address. SO_REUSEPORT on the first place lets a socket that was bound
 * alone share it. */
static int bind_beside(const struct pl_udp_group *g, int fd)
{
	int r = set_int(g->places[0].fd, SO_REUSEPORT, 1);

	if (r == 0)
		r = set_int(fd, SO_REUSEPORT, 1);
	if (r == 0 && bind(fd, (const struct sockaddr *)&g->address,
			      g->address.ss_family == AF_INET ? sizeof(struct sockaddr_in)
							      : sizeof(struct sockaddr_in6)) < 0)
		r = -errno;
	return r;
}

int pl_udp_group_add_lane(struct pl_udp_group *group, int fd, unsigned int share, unsigned int lane)
{
	int r;

	assert(share < group->shares && lane >= 1 && lane <= PL_UDP_LANES);
	pthread_mutex_lock(&lock);
	assert(find_place(group, share, lane) == NO_PLACE);
	r = bind_beside(group, fd);
	if (r == 0) {
		group->places[group->n_places++] = (struct place){ fd, share, lane };
		r = attach(group);
		group->n_places -= r < 0;
	}
	if (r < 0)
		close(fd);
	pthread_mutex_unlock(&lock);
	return r;
}

static int steer(struct pl_udp_group *g, const struct sender *s)
{
	unsigned int i = 0, n = g->n_senders;
	struct sender before;
	int r;

	while (i < n && (g->senders[i].share != s->share || g->senders[i].who.bits != s->who.bits ||
				!pl_addr_equal(&g->senders[i].who.addr, &s->who.addr)))
		i++;
	if (i == n && s->lane == 0)
		return 0;
	if (i == PL_UDP_SENDERS_MAX)
		return -ENOSPC;
	before = g->senders[i];
	g->senders[i] = *s;
	if (s->lane == 0)
		g->senders[i] = g->senders[--g->n_senders];
	else if (i == n)
		g->n_senders++;
	r = attach(g);
	if (r == 0)
		return 0;
	if (s->lane == 0)
		g->senders[g->n_senders] = g->senders[i];
	g->senders[i] = before;
	g->n_senders = n;
	return r;
}

int pl_udp_group_steer(struct pl_udp_group *group, const struct pl_prefix *who, unsigned int share,
	unsigned int lane)
{
	const struct sender sender = { *who, share, lane };
	int r;

	pthread_mutex_lock(&lock);
	r = steer(group, &sender);
	pthread_mutex_unlock(&lock);
	return r;
}

/* Removes the senders of a share. */
static void forget_share(struct pl_udp_group *g, unsigned int share)
{
	for (unsigned int i = 0; i < g->n_senders;) {
		if (g->senders[i].share == share)
			g->senders[i] = g->senders[--g->n_senders];
		else
			i++;
	}
}

void pl_udp_group_close(struct pl_udp_group *group, int fd)
{
	unsigned int i = 0;

	pthread_mutex_lock(&lock);
	while (group->places[i].fd != fd)
		i++;
	forget_share(group, group->places[i].share);
	close(fd);
	group->places[i] = group->places[--group->n_places];
	/* On failure the old program stays: for places that no longer exist the kernel chooses
	 * itself. */
	(void)attach(group);
	if (group->n_places == 0)
		end_group(group);
	pthread_mutex_unlock(&lock);
}
