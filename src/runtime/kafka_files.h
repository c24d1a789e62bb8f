/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that a Kafka client opens, which it does after rights are given up. */
#pragma once

#include "runtime/confine.h"

/* Those of a kafka:// URI: its file of properties, and what properties of either name by
 * "….location" (certificates, keys) or as a keytab. A URI or file that is wrong names none; opening
 * tells of it. -ENOMEM, -E2BIG. */
int pl_kafka_files(const char *uri, struct pl_confine *confine);
