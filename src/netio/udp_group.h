/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The sockets of this process that are bound to one address and port: first ones, each with its
 * share of the source addresses, and lanes beside them, each for senders that would fill a first
 * one. A classic BPF program chooses by source address (netio/steer.h).
 *
 * The program knows a socket by its place in the kernel's group: a socket that is bound goes to the
 * end, the last one takes the place of one that is closed. So that places are known, all of a group
 * are bound and closed here. Any thread may call.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#include "base/addr.h"

#define PL_UDP_LANES       4   /* beside each first socket */
#define PL_UDP_SENDERS_MAX 128 /* of a group that may have lanes at a time */

struct pl_udp_group;

/*
 * Binds the first socket of share `share` of `shares`, and gives the group of its address. One that
 * is alone is bound alone: nobody else gets the address. Negative errno: the group is NULL, and the
 * socket the caller's. Else it is closed by pl_udp_group_close.
 */
int pl_udp_group_bind(struct pl_udp_group **ret, int fd, const struct sockaddr *sa, socklen_t len,
	unsigned int share, unsigned int shares);

/* Binds a lane, 1 to PL_UDP_LANES, beside the first socket of the share. It gets nothing yet.
 * Negative errno, and the lane's socket is closed. */
int pl_udp_group_add_lane(
	struct pl_udp_group *group, int fd, unsigned int share, unsigned int lane);

/* From now on what the sender sends, if it is of the share, reaches that lane; 0: the first socket
 * again. -ENOSPC: too many have lanes; other negative errno: the kernel takes no program, all is as
 * it was. */
int pl_udp_group_steer(struct pl_udp_group *group, const struct pl_prefix *who, unsigned int share,
	unsigned int lane);

/* Closes a socket of the group; the group ends with its last. */
void pl_udp_group_close(struct pl_udp_group *group, int fd);
