/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Writes into headers of a parsed packet, with the checksums over what is written kept right by the
 * difference (RFC 1624): IPv4, TCP, UDP (0 in IPv4 stays: there is none), UDP-Lite, DCCP, ICMPv6. A
 * packet that does not have the field is left as it is. A checksum that was wrong stays wrong.
 */
#pragma once

#include "dataplane/field.h"

/* Whether set can write the field. */
bool pl_dp_field_is_written(enum pl_dp_field field);
/* An address of the other IP version than the packet's is no field that it has. */
void pl_dp_field_write(struct pl_dp_packet *pkt, enum pl_dp_field field, const uint64_t value[2]);

/* Takes 1 from TTL or hop limit (RFC 1812 5.2.2, RFC 8200 3). False: nothing is left, the packet is
 * as it was. True for what is neither. */
bool pl_dp_ttl_take(struct pl_dp_packet *pkt);

/* -ENOBUFS: no room for a tag. */
int pl_dp_vlan_push(struct pl_dp_packet *pkt, uint16_t id);
void pl_dp_vlan_pop(struct pl_dp_packet *pkt);
