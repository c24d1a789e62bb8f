/* SPDX-License-Identifier: BSD-2-Clause */
/* pathline gen packets: a kind of pathline gen with options of its own. */
#pragma once

#include "cli/command.h"

extern const struct pl_command pl_gen_packets;
