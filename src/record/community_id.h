/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The Community ID, version 1, seed 0 (github.com/corelight/community-id-spec): a text that Zeek,
 * Suricata, Wireshark and others compute alike of a flow, in both directions.
 */
#pragma once

#include <stdbool.h>

#include "record/packet.h"

/* "1:", 28 characters of base64 and the NUL. */
#define PL_COMMUNITY_ID_MAX 31

/* Whether records of the kind have what it is made of: those of packets and flows. */
bool pl_community_id_of_kind(enum pl_flat_kind kind);

/* Of such a record. False: it lacks its ports, as a later fragment does, a packet that was cut before
 * them, and SCTP, of which a tap has no ports. */
bool pl_community_id(char ret[PL_COMMUNITY_ID_MAX], enum pl_flat_kind kind, const void *record);
