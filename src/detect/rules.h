/* SPDX-License-Identifier: BSD-2-Clause */
/* Internal to detect/. */
#pragma once

#include "detect/events.h"

/* What is 0 gets its default. */
struct pl_detect_options pl_detect_with_defaults(const struct pl_detect_options *given);
