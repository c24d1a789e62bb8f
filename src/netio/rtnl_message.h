/* SPDX-License-Identifier: BSD-2-Clause */
/* Requests to rtnetlink, built attribute by attribute, and their answers. */
#pragma once

#include <linux/rtnetlink.h>
#include <stddef.h>
#include <stdint.h>

#include "base/addr.h"

#define PL_RTNL_REQUEST_BYTES 4096

struct pl_rtnl_request {
	union {
		struct nlmsghdr h;
		uint8_t bytes[PL_RTNL_REQUEST_BYTES];
	} u;
};

/* Begins a request of this type with acknowledgement. Returns its fixed part, `bytes` of zeros. */
void *pl_rtnl_begin(struct pl_rtnl_request *q, uint16_t type, uint16_t flags, size_t bytes);
/* Appends zeroed, aligned room to the message. Asserts that it fits. */
void *pl_rtnl_room(struct pl_rtnl_request *q, size_t bytes);
void pl_rtnl_add(struct pl_rtnl_request *q, uint16_t type, const void *data, size_t bytes);
void pl_rtnl_add_addr(struct pl_rtnl_request *q, uint16_t type, const struct pl_addr *addr);
uint8_t pl_rtnl_family(const struct pl_addr *addr); /* AF_INET or AF_INET6 */
/* Begins a nested attribute. Returns its offset, for pl_rtnl_nest_end. */
uint32_t pl_rtnl_nest(struct pl_rtnl_request *q, uint16_t type);
void pl_rtnl_nest_end(struct pl_rtnl_request *q, uint32_t at);
/* Sends the request in the calling thread's network namespace and waits for the answer: 0 or
 * negative errno. */
int pl_rtnl_ask(struct pl_rtnl_request *q);

struct pl_rtnl_answer {
	union {
		struct nlmsghdr h;
		uint8_t bytes[8192];
	} u;
};

/* As pl_rtnl_ask for a question: its answer is of this type, with a fixed part of `body` bytes.
 * -EPROTO: it is not. */
int pl_rtnl_get(struct pl_rtnl_request *q, struct pl_rtnl_answer *ret, uint16_t type, size_t body);
