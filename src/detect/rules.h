/* SPDX-License-Identifier: BSD-2-Clause */
/* Defaults of the options. Internal to detect/. */
#pragma once

#include "detect/events.h"

/* Options with defaults for those that are 0. */
struct pl_detect_options pl_detect_with_defaults(const struct pl_detect_options *given);
