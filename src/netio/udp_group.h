/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A group: the sockets of this process that are bound to one address and port. Each first socket
 * receives its share of the source addresses; lanes are further sockets of a share for senders that
 * flood it. A classic BPF program chooses by source address (netio/steer.h).
 *
 * The program names a socket by its place in the kernel's group: a newly bound socket goes to the
 * end, and the last one takes the place of one that is closed. To know the places, all sockets of a
 * group are bound and closed here. Thread-safe.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/addr.h"

#define PL_UDP_LANES       4   /* for each first socket */
#define PL_UDP_SENDERS_MAX 128 /* senders of a group that may have lanes at a time */

struct pl_udp_group;

/*
 * Binds the first socket of share `share` of `shares` and returns the group of its address. With
 * one share it is bound without SO_REUSEPORT, so no other process gets the address. On negative
 * errno *ret is NULL and the caller closes the socket; otherwise pl_udp_group_close does.
 */
int pl_udp_group_bind(struct pl_udp_group **ret, int fd, const struct sockaddr *sa, socklen_t len,
	unsigned int share, unsigned int shares);

/* Binds a lane, 1 to PL_UDP_LANES, of the share. It receives nothing until pl_udp_group_steer. On
 * negative errno the lane's socket is closed. */
int pl_udp_group_add_lane(
	struct pl_udp_group *group, int fd, unsigned int share, unsigned int lane);

/* Steers the sender's datagrams, if they are of the share, to that lane; 0: to the first socket
 * again. -ENOSPC: too many senders have lanes; other negative errno: the kernel rejected the
 * program, and nothing changed. */
int pl_udp_group_steer(struct pl_udp_group *group, const struct pl_prefix *who, unsigned int share,
	unsigned int lane);

/* Closes a socket of the group; the group ends with its last. */
void pl_udp_group_close(struct pl_udp_group *group, int fd);
