/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes header fields of a parsed packet and updates the checksums over them by the difference
 * (RFC 1624): IPv4, TCP, UDP (0, no checksum, stays), UDP-Lite, DCCP, ICMPv6. A packet without the
 * field is not changed. A wrong checksum stays wrong.
 */
#pragma once

#include "dataplane/field.h"

/* Returns true when the action set can write the field. */
bool pl_dp_field_is_written(enum pl_dp_field field);
/* Writes a field. An address of another IP version than the packet's changes nothing. */
void pl_dp_field_write(struct pl_dp_packet *pkt, enum pl_dp_field field, const uint64_t value[2]);

/* Decrements TTL or hop limit (RFC 1812 5.2.2, RFC 8200 3). False: it is 1 or 0, and the packet is
 * unchanged. True for packets that are not IP. */
bool pl_dp_ttl_take(struct pl_dp_packet *pkt);

/* Push and pop the outer VLAN tag; type: PL_ETH_VLAN (802.1Q) or PL_ETH_QINQ (802.1ad). -ENOBUFS: no
 * room for a tag. */
int pl_dp_vlan_push(struct pl_dp_packet *pkt, uint16_t type, uint16_t id);
void pl_dp_vlan_pop(struct pl_dp_packet *pkt);
