/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to detect/. */
#pragma once

#include "detect/events.h"

/* The options, with defaults for those that are 0. */
struct pl_detect_options pl_detect_with_defaults(const struct pl_detect_options *given);
