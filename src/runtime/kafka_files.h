/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that a Kafka client opens, which it does after rights are given up. */
#pragma once

#include "runtime/confine.h"

/* Adds the files of a kafka:// URI: its file of properties, and the files that properties of either name by "….location" (certificates, keys) or as a keytab. A wrong URI or file adds none; opening it reports the error. -ENOMEM, -E2BIG. */
int pl_kafka_files(const char *uri, struct pl_confine *confine);
