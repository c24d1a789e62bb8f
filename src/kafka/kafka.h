/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kafka by librdkafka. A build without it (PL_HAVE_KAFKA is 0) has only uri.h, message.h,
 * statistics.h and this; callers that need more tell the user pl_kafka_check's text (exit code
 * PL_EXIT_UNAVAILABLE).
 */
#pragma once

#include "base/diag.h"

/* Returns 0, or -ENOTSUP with diag when the build has no librdkafka. */
int pl_kafka_check(struct pl_diag *diag);

/* Text for users: the library's version, or "none: " and the reason. */
const char *pl_kafka_library(void);
