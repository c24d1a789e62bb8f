/* SPDX-License-Identifier: BSD-2-Clause */
/* The Community ID, version 1, seed 0 (github.com/corelight/community-id-spec): a text that Zeek,
 * Suricata, Wireshark and others compute alike for a flow, in both directions. */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "record/packet.h"

/* "1:", 28 characters of base64 and the NUL. */
#define PL_COMMUNITY_ID_MAX 31

/* True when records of the kind have its fields: those of packets and flows. */
bool pl_community_id_of_kind(enum pl_flat_kind kind);

/* Computes it for such a record. False when the record lacks its ports: a later fragment, or a packet
 * that was cut before them. */
bool pl_community_id(char ret[PL_COMMUNITY_ID_MAX], enum pl_flat_kind kind, const void *record);

/* Puts it behind the members of the record's JSON object, which the buffer ends with and has room for
 * (record/json.h). Without one the object stays as it is. */
void pl_community_id_json(struct pl_buf *buf, enum pl_flat_kind kind, const void *record);
