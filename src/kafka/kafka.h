/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Kafka by librdkafka, which a build may be without (PL_HAVE_KAFKA is 0): then uri.h, message.h,
 * statistics.h and this are all there is, and who wants more tells its user what pl_kafka_check
 * says (exit code PL_EXIT_UNAVAILABLE).
 */
#pragma once

#include "base/diag.h"

/* -ENOTSUP with diag, which names what the build was without. */
int pl_kafka_check(struct pl_diag *diag);

/* For people: the library's version, or "none: " and why. */
const char *pl_kafka_library(void);
