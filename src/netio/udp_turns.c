/* SPDX-License-Identifier: BSD-2-Clause */
/* Chooses the UDP socket that is read next. */
#include "netio/udp_turns.h"

#include <assert.h>
#include <errno.h>
#include <linux/sock_diag.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Bytes of the socket buffer that a small datagram takes: the least, and the usual number. */
#define CHARGE_MIN   512
#define CHARGE_USUAL 768

int pl_udp_room(int fd, struct pl_udp_room *ret)
{
	uint32_t info[SK_MEMINFO_VARS] = { 0 };
	socklen_t len = sizeof(info);

	*ret = (struct pl_udp_room){ 0 };
	if (getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) < 0)
		return -errno;
	*ret = (struct pl_udp_room){ info[SK_MEMINFO_RMEM_ALLOC], info[SK_MEMINFO_RCVBUF],
		info[SK_MEMINFO_DROPS] };
	return 0;
}

static uint32_t between(uint32_t low, uint32_t x, uint32_t high)
{
	return x < low ? low : x > high ? high : x;
}

void pl_udp_turns_start(struct pl_udp_turns *t, uint32_t rcvbuf)
{
	struct pl_udp_room room;

	t->bound = 1;
	t->much = between(1, rcvbuf / CHARGE_USUAL / 4, PL_BATCH_MAX);
	t->sample = between(4 * PL_HEAVY_PART, rcvbuf / CHARGE_USUAL / 8, PL_HEAVY_SAMPLE);
	if (pl_udp_room(t->sockets[0].fd, &room) == 0)
		t->sockets[0].drops_told = t->sockets[0].drops_looked = room.drops;
}

/* ---- turns ---- */

/* Returns the next lane that may be read; 0: none. */
static unsigned int next_lane(const struct pl_udp_turns *t)
{
	for (unsigned int k = 1; k < t->bound; k++) {
		unsigned int lane = (t->last_lane + k - 1) % (t->bound - 1) + 1;

		if (t->sockets[lane].behind == 0)
			return lane;
	}
	return 0;
}

unsigned int pl_udp_turns_next(const struct pl_udp_turns *t)
{
	if (t->bound == 1 || t->at != 0 || (t->more && t->streak < PL_UDP_FIRST_TURNS))
		return 0;
	return next_lane(t);
}

static void count_turn(struct pl_udp_turns *t, unsigned int i, bool much)
{
	if (i != 0) {
		t->last_lane = i;
		t->streak = 0;
	} else {
		t->more = much;
		t->streak = t->at == 0 ? t->streak + 1 : 1;
	}
	t->at = i;
	if (i == 0 && next_lane(t) == 0)
		t->streak = 0;
}

/* Updates the lanes that wait for socket i: n more of its datagrams were read, or all. */
static void let_follow(struct pl_udp_turns *t, unsigned int i, uint32_t n, bool emptied)
{
	for (unsigned int lane = 1; lane < t->bound; lane++) {
		struct pl_udp_socket *s = &t->sockets[lane];

		if (s->after == i && s->behind > 0)
			s->behind = emptied || n >= s->behind ? 0 : s->behind - n;
	}
}

static bool is_followed(const struct pl_udp_turns *t, unsigned int i)
{
	for (unsigned int lane = 1; lane < t->bound; lane++) {
		if (t->sockets[lane].after == i && t->sockets[lane].behind > 0)
			return true;
	}
	return false;
}

/* ---- drops ---- */

static void tell_drops(struct pl_udp_turns *t, unsigned int i)
{
	struct pl_udp_socket *s = &t->sockets[i];
	struct pl_udp_room room;
	uint32_t n;

	if (pl_udp_room(s->fd, &room) < 0)
		return;
	/* Unsigned arithmetic copes with a wrap of the kernel's 32-bit counter. */
	n = room.drops - s->drops_told;
	s->drops_told = room.drops;
	t->dropped += n;
	if (i == 0)
		return;
	t->flood_dropped += n;
	for (unsigned int k = 0; s->senders == 1 && k < t->n_floods; k++) {
		if (t->floods[k].lane == i)
			t->floods[k].drops += n;
	}
}

void pl_udp_turns_drops(struct pl_udp_turns *t)
{
	for (unsigned int i = 0; i < t->bound; i++)
		tell_drops(t, i);
}

/* ---- to lanes and back ---- */

static struct pl_port_flood *find_flood(struct pl_udp_turns *t, const struct pl_prefix *who)
{
	for (unsigned int k = 0; k < t->n_floods; k++) {
		if (t->floods[k].who.bits == who->bits &&
			pl_addr_equal(&t->floods[k].who.addr, &who->addr))
			return &t->floods[k];
	}
	return NULL;
}

/* Returns an entry to overwrite for a sender: the next free one, or that of the sender who left its
 * lane longest ago; NULL when all have lanes. */
static struct pl_port_flood *room_for(struct pl_udp_turns *t)
{
	struct pl_port_flood *oldest = NULL;

	if (t->n_floods < PL_PORT_FLOODS)
		return &t->floods[t->n_floods];
	for (unsigned int k = 0; k < t->n_floods; k++) {
		struct pl_port_flood *f = &t->floods[k];

		if (f->lane == 0 && (oldest == NULL || f->since_ns < oldest->since_ns))
			oldest = f;
	}
	return oldest;
}

static int add_lane(struct pl_udp_turns *t)
{
	struct pl_udp_socket *s = &t->sockets[t->bound];
	int r = pl_udp_group_add_lane(t->group, s->fd, t->share, t->bound);

	if (r < 0) {
		s->fd = -1;
		return r;
	}
	t->bound++;
	return 0;
}

/* Returns the lane with the fewest senders for one that leaves socket `from`: an empty or new lane
 * first; 0: none. A lane that waits for another socket cannot wait for this one too. */
static unsigned int choose_lane(struct pl_udp_turns *t, unsigned int from)
{
	unsigned int best = 0;

	for (unsigned int lane = 1; lane < t->bound; lane++) {
		const struct pl_udp_socket *s = &t->sockets[lane];

		if (lane == from || (s->behind > 0 && s->after != from))
			continue;
		if (best == 0 || s->senders < t->sockets[best].senders)
			best = lane;
	}
	if (best != 0 && t->sockets[best].senders == 0)
		return best;
	if (t->bound < 1 + PL_UDP_LANES && t->sockets[t->bound].fd >= 0) {
		int r = add_lane(t);

		if (r == 0)
			return t->bound - 1;
		t->error = -r;
	}
	return best;
}

static void move(struct pl_udp_turns *t, unsigned int from, const struct pl_prefix *who,
	uint32_t used, uint64_t now_ns)
{
	struct pl_port_flood *known = find_flood(t, who), *f = known;
	struct pl_udp_socket *s;
	unsigned int lane;
	int r;

	/* A sender with a lane is not moved again: older datagrams of it are still in this
	 * socket. */
	if (f != NULL && f->lane != 0)
		return;
	lane = choose_lane(t, from);
	if (lane == 0)
		return;
	if (f == NULL)
		f = room_for(t);
	if (f == NULL)
		return;
	tell_drops(t, lane);
	r = pl_udp_group_steer(t->group, who, t->share, lane);
	if (r < 0) {
		t->error = -r;
		return;
	}
	if (known == NULL) {
		*f = (struct pl_port_flood){ .who = *who };
		t->n_floods += f == &t->floods[t->n_floods];
	}
	f->lane = (uint8_t)lane;
	f->since_ns = now_ns;
	f->times++;
	t->moved++;
	s = &t->sockets[lane];
	s->senders++;
	s->networks += who->bits < 128;
	s->after = from;
	s->behind = used / CHARGE_MIN + 1;
	s->busy_ns = now_ns;
}

static void give_back(struct pl_udp_turns *t, unsigned int lane, uint64_t now_ns)
{
	struct pl_udp_socket *s = &t->sockets[lane];

	tell_drops(t, lane);
	for (unsigned int k = 0; k < t->n_floods; k++) {
		struct pl_port_flood *f = &t->floods[k];

		if (f->lane != lane)
			continue;
		if (pl_udp_group_steer(t->group, &f->who, t->share, 0) < 0)
			continue; /* retried after another PL_UDP_CALM_NS */
		f->lane = 0;
		f->since_ns = now_ns;
		s->senders--;
		s->networks -= f->who.bits < 128;
	}
	s->busy_ns = now_ns;
}

/* ---- who floods ---- */

/* Returns true when the socket fills faster than it is read: it dropped, or is half full. The
 * kernel's `used` may lag by a quarter. */
static bool is_pressed(struct pl_udp_socket *s, struct pl_udp_room *room)
{
	bool dropped;

	if (pl_udp_room(s->fd, room) < 0)
		return false;
	dropped = room->drops != s->drops_looked;
	s->drops_looked = room->drops;
	return dropped || room->used >= room->size / 2;
}

/* Samples the senders of a socket that fills, and moves the heavy ones to lanes. From a lane only
 * single addresses of a network are moved. */
static void look(struct pl_udp_turns *t, unsigned int i, const struct pl_packet *packets,
	uint32_t n, uint64_t now_ns)
{
	struct pl_udp_socket *s = &t->sockets[i];
	struct pl_prefix who[2 * PL_HEAVY_PART];
	struct pl_udp_room room;
	uint32_t found;

	if ((i != 0 && s->networks == 0) || is_followed(t, i))
		return;
	if (!is_pressed(s, &room)) {
		s->heavy.sampled = 0;
		return;
	}
	if (s->heavy.sampled == 0)
		memset(&s->heavy, 0, sizeof(s->heavy));
	pl_heavy_add(&s->heavy, packets, n);
	if (s->heavy.sampled < t->sample)
		return;
	found = pl_heavy_senders(&s->heavy, who, 2 * PL_HEAVY_PART);
	for (uint32_t k = 0; k < found; k++) {
		if (i == 0 || who[k].bits == 128)
			move(t, i, &who[k], room.used, now_ns);
	}
	s->heavy.sampled = 0;
}

void pl_udp_turns_took(struct pl_udp_turns *t, unsigned int i, const struct pl_packet *packets,
	uint32_t n, uint64_t now_ns)
{
	struct pl_udp_socket *s = &t->sockets[i];
	const bool much = n >= t->much;

	if (much)
		s->busy_ns = now_ns;
	let_follow(t, i, n, !much);
	count_turn(t, i, much);
	if (much && t->sockets[1].fd >= 0)
		look(t, i, packets, n, now_ns);
	else if (i != 0 && n == 0 && s->senders > 0 && now_ns - s->busy_ns >= PL_UDP_CALM_NS)
		give_back(t, i, now_ns);
}

void pl_udp_turns_close(struct pl_udp_turns *t)
{
	for (unsigned int i = 0; i < 1 + PL_UDP_LANES; i++) {
		int fd = t->sockets[i].fd;

		if (fd >= 0 && i < t->bound && t->group != NULL)
			pl_udp_group_close(t->group, fd);
		else if (fd >= 0)
			close(fd);
		t->sockets[i].fd = -1;
	}
}
